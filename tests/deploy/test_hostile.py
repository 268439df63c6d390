"""What a hostile name, disk, ledger, plan or host can do to the verbs of writing: told, and nothing lost."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from draftproof.deploy.fleet.plan import PlanRefused, parse_plan
from draftproof.deploy.ledger.history import all_intents
from draftproof.deploy.ledger.ledger import GENESIS, Ledger, LedgerDamaged, parse_ledger
from draftproof.deploy.ledger.objects import Objects, ObjectsUnusable
from draftproof.deploy.place import Place
from draftproof.deploy.writing.receipt import FileState
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.host.local import LocalHost
from draftproof.host.program import frames_of
from draftproof.host.protocol import Answer, CommandResult
from draftproof.host.talk import talk
from loop_images import mounted_tmpfs
from promises.bench import MeddlingHost

OLD, NEW = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n'
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A call with --json and a ledger of its own: exit status and object."""

    def call(*argv: object) -> tuple[int, dict[str, Any]]:
        words = [os.fsdecode(word) if isinstance(word, bytes) else str(word) for word in argv]
        code = main([*words, "--ledger", str(tmp_path / "ledger"), "--json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document

    return call


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The new content."""
    path = tmp_path / "new.json"
    path.write_bytes(NEW)
    return path


NAMES = [
    b"a\nb.json",
    b"\x1b[2J\x1b]0;x\x07.json",
    b"\xff\xfe.json",
    "\u202ejson.x".encode(),
    b" -rf .json",
    b"'$(id)`.json",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_written_and_told_without_an_escape(
    run: Run, source: Path, tmp_path: Path, name: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """Line feeds, escapes, no UTF-8, a turned direction, blanks, quotes: written, read, shown escaped."""
    (tmp_path / "model").mkdir()
    target = os.fsencode(tmp_path / "model") + b"/" + name
    assert run("write", source, target)[0] == 0
    assert Path(os.fsdecode(target)).read_bytes() == NEW
    assert run("write", source, target)[1]["old_sha256"] == hashlib.sha256(NEW).hexdigest()
    main(["history", "--ledger", str(tmp_path / "ledger")])
    said = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in said)
    assert said.count("\n") == 6


def test_a_device_that_never_ends_ends(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRC is /dev/zero: told as too much, nothing written; a pipe is read to its end; a directory is none."""
    monkeypatch.setattr("draftproof.cli.ledger_option._LARGEST_SOURCE", 1 << 20)
    (tmp_path / "model").mkdir()
    code, document = run("write", "/dev/zero", tmp_path / "model" / "x")
    assert (code, document["error"]["found"]) == (3, "more than 1 MiB")
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(NEW,))
    writer.start()
    assert run("write", tmp_path / "pipe", tmp_path / "model" / "x")[0] == 0
    writer.join()
    assert (tmp_path / "model" / "x").read_bytes() == NEW
    assert run("write", tmp_path, tmp_path / "model" / "x")[0] == 3


@pytest.mark.parametrize("verb", ["write", "expect"])
def test_the_ledger_is_no_target(run: Run, source: Path, tmp_path: Path, verb: str) -> None:
    """By its name, or through a link above it: the write that would damage the record is refused."""
    (tmp_path / "model").mkdir()
    run("write", source, tmp_path / "model" / "config.json")
    (tmp_path / "alias").symlink_to("ledger")
    for name in ("ledger/ledger.jsonl", "ledger/head", "ledger/new", "alias/ledger.jsonl"):
        code, document = run(verb, source, tmp_path / name)
        assert (code, document["error"]["id"]) == (1, "write-into-ledger")
    assert run("history")[0] == 0


def test_a_state_directory_inside_the_model(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG_STATE_HOME in the very directory that is written into: both are whole."""
    (tmp_path / "model").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "model"))
    assert main(["write", str(source), str(tmp_path / "model" / "config.json"), "--json"]) == 0
    assert main(["history", "--json"]) == 0
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "draftproof"]


def line_of(kind: str, facts: object) -> bytes:
    """A first entry that fits the chain."""
    return json.dumps({"seq": 1, "prev": GENESIS, "time": "t", "kind": kind, "facts": facts}).encode() + b"\n"


@pytest.mark.parametrize(
    "line",
    [
        line_of("write", {}),
        line_of("write", {"host": ""}),
        line_of("receipt", {"of": 7}),
        line_of("receipt", {"of": "1"}),
        line_of("receipt", {"of": [1]}),
        line_of("expect", 7),
        line_of("expect", None),
        b"[" * 100_000 + b"\n",
        b"\xff\n",
        b"{}\n",
        b"\n",
        b"[]\n",
    ],
)
def test_a_ledger_that_somebody_else_wrote_is_damaged(line: bytes) -> None:
    """A chain that fits and facts that do not, depth without end, no UTF-8: one error, never a crash."""
    with pytest.raises(LedgerDamaged):
        all_intents(parse_ledger(line, "ledger.jsonl"))


def test_a_damaged_ledger_stops_the_write(run: Run, source: Path, tmp_path: Path) -> None:
    """It would be appended to: nothing is written, and no program is left holding the lock."""
    target = tmp_path / "model" / "config.json"
    target.parent.mkdir()
    run("write", source, target)
    book = tmp_path / "ledger" / "ledger.jsonl"
    book.write_bytes(book.read_bytes().replace(b'"L2"', b'"L7"', 1))
    target.write_bytes(OLD)
    for verb in ("write", "expect"):
        code, document = run(verb, source, target)
        assert (code, document["error"]["id"]) == (1, "ledger-damaged")
    assert target.read_bytes() == OLD
    assert subprocess.run(["flock", "-n", target.parent, "true"], check=False).returncode == 0
    assert [path.name for path in target.parent.iterdir()] == ["config.json"]


def test_a_receipt_that_cannot_be_recorded_is_told_all_the_same(tmp_path: Path) -> None:
    """The ledger fails after the file was published: the receipt stands with a note, never "not done"."""
    target = tmp_path / "config.json"
    target.write_bytes(OLD)
    ledger = Ledger(tmp_path / "ledger")

    def spoil() -> None:
        book = tmp_path / "ledger" / "ledger.jsonl"
        book.unlink()
        book.mkdir()

    order = WriteOrder(Place("", str(target)), NEW, "test")
    receipt = verified_write(MeddlingHost(before_reading=spoil), order, ledger)
    assert (receipt.state, target.read_bytes()) == (FileState.NEW, NEW)
    assert any("could not be recorded" in note for note in receipt.notes)


@pytest.mark.root
def test_a_full_disk_under_the_ledger(tmp_path: Path) -> None:
    """No room to record the intent: nothing is sent, the old file stays, and no piece fills the disk."""
    with mounted_tmpfs(tmp_path / "state", 64 << 10) as state:
        (state / "filler").write_bytes(b"x" * 40_000)
        target = tmp_path / "big.bin"
        target.write_bytes(OLD)
        order = WriteOrder(Place("", str(target)), os.urandom(60_000), "test")
        with pytest.raises(ObjectsUnusable):
            verified_write(LocalHost(sys.executable), order, Ledger(state / "ledger"))
        assert target.read_bytes() == OLD
        assert not list(state.rglob("*.part"))
        Objects(state / "ledger" / "objects").keep(b"small")


PLAN = '[[files]]\nsource = "a"\npath = "/m/a"\n'


@pytest.mark.parametrize(
    "text",
    [
        PLAN.replace("/m/a", "/m/a\\u0000b"),
        PLAN.replace('"a"', '"a\\u0000b"'),
        PLAN + 'hosts = ["a\\u0000b"]\n',
        "x = " + "[" * 100_000,
    ],
)
def test_a_plan_without_sense_is_refused(text: str) -> None:
    """NULs and depth without end."""
    with pytest.raises(PlanRefused):
        parse_plan(text, Path("plan.toml"))


def test_a_host_that_says_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output without end fills no memory, and frames of any depth are no frames."""
    monkeypatch.setattr("draftproof.host.talk._MOST_SAID", 1 << 20)
    result = talk(["yes"], stdin=b"", answer=None, timeout_s=60)
    assert result.is_timed_out
    assert len(result.stdout) < 4 << 20
    assert frames_of(b"aa seen " + b"[" * 100_000 + b"\n", "aa") == {}


@dataclass(frozen=True)
class Limited:
    """This machine, its programs held to so much memory."""

    name: str = ""
    python: str = sys.executable

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """Run under the limit."""
        limited = ["prlimit", f"--as={200 << 20}", *argv]
        return LocalHost(self.python).run(limited, stdin=stdin, answer=answer, timeout_s=timeout_s)

    failure = LocalHost(sys.executable).failure


def test_a_target_larger_than_memory_is_read_in_pieces(tmp_path: Path) -> None:
    """A sparse file of 300 MB under the name: replaced, its digest recorded, its bytes not held or kept."""
    target = tmp_path / "shard.bin"
    with target.open("wb") as stream:
        stream.truncate(300 << 20)
    ledger = Ledger(tmp_path / "ledger")
    order = WriteOrder(Place("", str(target)), NEW, "test")
    receipt = verified_write(Limited(), order, ledger)
    assert receipt.state is FileState.NEW
    (intent,) = all_intents(ledger.read())
    assert not intent.is_old_kept
