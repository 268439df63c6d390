"""The witness in processes of their own: what it records and leaves alone, and what that proves."""

import hashlib
import json
import os
import stat
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.runtimes.witness.record import hook_directory, read_record

HEADER = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
SAFETENSORS = struct.pack("<Q", len(HEADER)) + HEADER + b"\0\0\0\0"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A directory with a config and a safetensors file."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"block_size": 16}\n')
    (folder / "model.safetensors").write_bytes(SAFETENSORS)
    return folder


def watched(code: str, record: Path, *options: str, path: str = "") -> "subprocess.CompletedProcess[str]":
    """Run code under the witness."""
    hook = str(hook_directory())
    environment = {
        **os.environ,
        "PYTHONPATH": f"{hook}:{path}" if path else hook,
        "DRAFTPROOF_WITNESS": str(record),
    }
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def witness(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """The verb's status and document."""
    capsys.readouterr()
    code = main(["witness", *map(str, words), "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["schema"] in ("draftproof.witness/1", "draftproof.error/1")
    return code, document


def test_what_a_process_opens(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Inode and digest of each opening, in a file of mode 0600; the verb calls it L7."""
    record = tmp_path / "w.jsonl"
    names = [str(model / "config.json"), str(model / "model.safetensors")]
    code = f"[open(name, 'rb').close() for name in {names!r}]"
    ran = watched(code, record)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    told = read_record(record)
    assert told.num_processes == 1
    config, weights = told.opened
    data = (model / "config.json").read_bytes()
    assert (config.path, config.ino) == (str(model / "config.json"), (model / "config.json").stat().st_ino)
    assert (config.sha256, config.hashed) == (hashlib.sha256(data).hexdigest(), "whole")
    assert (weights.sha256, weights.hashed) == (hashlib.sha256(SAFETENSORS[:-4]).hexdigest(), "header")
    status, document = witness(record, model, capsys=capsys)
    assert status == 0
    assert [one["evidence"]["level"] for one in document["files"]] == ["L7", "L7"]
    assert all(one["evidence"]["holds"] for one in document["files"])


def test_a_file_replaced_since(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other bytes were opened than lie there now: the process runs with the old ones."""
    record = tmp_path / "w.jsonl"
    watched(f"open({str(model / 'config.json')!r}).read()", record)
    new = model / "new"
    new.write_text('{"block_size": 8}\n')
    new.rename(model / "config.json")
    code, document = witness(record, model / "config.json", capsys=capsys)
    assert code == 1
    assert "opened other content" in document["files"][0]["evidence"]["how"]


def test_the_same_bytes_in_another_inode(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replacement by the same content does not take the proof away, and is said."""
    record = tmp_path / "w.jsonl"
    watched(f"open({str(model / 'config.json')!r}).read()", record)
    (model / "new").write_bytes((model / "config.json").read_bytes())
    (model / "new").rename(model / "config.json")
    code, document = witness(record, model / "config.json", capsys=capsys)
    assert code == 0
    assert "replaced since" in document["files"][0]["evidence"]["how"]


def test_a_file_that_nobody_opened(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No opening on record is neither good nor bad: status 3."""
    record = tmp_path / "w.jsonl"
    watched("pass", record)
    code, document = witness(record, model, capsys=capsys)
    assert code == 3
    assert {one["evidence"]["holds"] for one in document["files"]} == {False}


def test_against_the_receipt_of_a_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A receipt names place and digest: the level above it, without the file at hand."""
    source, target, record = tmp_path / "s.json", tmp_path / "config.json", tmp_path / "w.jsonl"
    source.write_text('{"block_size": 16}\n')
    assert main(["write", str(source), str(target), "--ledger", str(tmp_path / "ledger"), "--json"]) == 0
    (tmp_path / "receipt.json").write_text(capsys.readouterr().out)
    watched(f"open({str(target)!r}).read()", record)
    assert witness(record, tmp_path / "receipt.json", capsys=capsys)[0] == 0
    target.write_text("{}")
    watched(f"open({str(target)!r}).read()", record)
    assert witness(record, tmp_path / "receipt.json", capsys=capsys)[0] == 1


def test_it_is_the_seventh_level_of_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``verify`` takes the record: what was opened last counts, and what nobody opened is told."""
    source, target, record = tmp_path / "s.json", tmp_path / "config.json", tmp_path / "w.jsonl"
    plan, ledger = tmp_path / "plan.toml", str(tmp_path / "ledger")
    source.write_text('{"block_size": 16}\n')
    plan.write_text(f'[[files]]\nsource = "{source}"\npath = "{target}"\n')
    assert main(["write", str(source), str(target), "--ledger", ledger]) == 0

    def seventh() -> dict[str, Any]:
        capsys.readouterr()
        argv = ["verify", str(plan), "--ledger", ledger, "--witness", str(record), "--json"]
        assert main(argv) == 0
        (verdict,) = json.loads(capsys.readouterr().out)["files"]
        evidence: dict[str, Any] = verdict["evidence"][7]
        assert [item["level"] for item in verdict["evidence"]] == [f"L{number}" for number in range(8)]
        return evidence

    watched(f"open({str(source)!r}).read()", record)
    assert f"{record}: no opening is recorded" in seventh()["how"]
    watched(f"open({str(target)!r}).read()", record)
    assert (seventh()["holds"], "opened this inode" in seventh()["how"]) == (True, True)
    right = target.read_bytes()
    (tmp_path / "other").write_bytes(right)
    (tmp_path / "other").replace(target)
    assert (seventh()["holds"], "replaced since" in seventh()["how"]) == (True, True)
    target.write_text("{}")
    watched(f"open({str(target)!r}).read()", record)
    target.write_bytes(right)
    assert not seventh()["holds"]


@pytest.mark.parametrize("start", ["spawn", "fork", "forkserver"])
def test_children(start: str, model: Path, tmp_path: Path) -> None:
    """Workers of every kind write under their own number."""
    script = tmp_path / "main.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "def read(path):\n    open(path).read()\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context({start!r})\n"
        f"    child = context.Process(target=read, args=({str(model / 'config.json')!r},))\n"
        "    child.start(); child.join(); print(child.pid)\n"
    )
    record = tmp_path / "w.jsonl"
    ran = watched(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", record)
    if ran.returncode or not read_record(record).opened:  # spawn needs a main module that is a file
        environment = {**os.environ, "PYTHONPATH": str(hook_directory()), "DRAFTPROOF_WITNESS": str(record)}
        ran = subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
        )
    (opened,) = read_record(record).opened
    assert opened.pid == int(ran.stdout)


def test_only_reading_of_models_is_recorded(tmp_path: Path) -> None:
    """Writing, other files, descriptors and directories are nobody's business here."""
    record = tmp_path / "w.jsonl"
    code = (
        "import os, pathlib\n"
        "pathlib.Path('config.json').write_text('{}')\n"
        "open('notes.txt', 'w').close(); open('notes.txt').close()\n"
        "open(os.open('notes.txt', os.O_RDONLY)).close()\n"
        "os.mkdir('x.safetensors'); os.open('x.safetensors', os.O_RDONLY)\n"
        "open('config.json', 'r+').close()\n"
    )
    ran = watched(f"import os; os.chdir({str(tmp_path)!r})\n{code}", record)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert read_record(record).opened == ()


def test_links_are_followed_and_named(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hub snapshot's link and its blob are one file."""
    link = tmp_path / "snapshot"
    link.mkdir()
    (link / "config.json").symlink_to(model / "config.json")
    record = tmp_path / "w.jsonl"
    watched(f"open({str(link / 'config.json')!r}).read()", record)
    (opened,) = read_record(record).opened
    assert (opened.path, opened.real) == (str(link / "config.json"), str(model / "config.json"))
    assert witness(record, link / "config.json", capsys=capsys)[0] == 0


def test_the_environment_s_own_sitecustomize_runs(tmp_path: Path) -> None:
    """What an installation customises stays as it was."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('own')\n")
    assert watched("print('then')", tmp_path / "w.jsonl", path=str(tmp_path / "own")).stdout == "own\nthen\n"


def test_without_a_record_nothing_is_done(tmp_path: Path) -> None:
    """No variable, or a relative name: no hook, no file."""
    for name in ("", "w.jsonl"):
        environment = {**os.environ, "PYTHONPATH": str(hook_directory()), "DRAFTPROOF_WITNESS": name}
        code = "import sys; print(type(sys.meta_path[0]).__name__)"
        ran = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "AroundSafetensors" not in ran.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "pipe", "open to others", "no directory"])
def test_a_record_that_must_not_be_written(kind: str, model: Path, tmp_path: Path) -> None:
    """A link, a pipe, a file that others may read, no place: nothing is written, and the process goes on."""
    record, victim = tmp_path / "w.jsonl", tmp_path / "victim"
    victim.write_text("")
    victim.chmod(0o600)
    if kind == "link":
        record.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(record)
    elif kind == "open to others":
        record.write_text("")
        record.chmod(0o644)
    else:
        record = tmp_path / "none" / "w.jsonl"
    ran = watched(f"print(open({str(model / 'config.json')!r}).read())", record)
    assert ran.stdout == '{"block_size": 16}\n\n'
    assert ran.stderr == ""
    assert victim.read_text() == ""
    if kind == "open to others":
        assert record.read_text() == ""


@pytest.mark.parametrize(
    "text",
    [
        "nonsense\n",
        "[]\n",
        '{"v": 2, "event": "start"}\n',
        '{"v": 1, "event": "opened", "pid": true}\n',
        '{"v": 1}\n',
    ],
)
def test_a_record_that_is_none(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that the witness did not write spoils the whole."""
    record = tmp_path / "w.jsonl"
    record.write_text(text)
    record.chmod(0o600)
    with pytest.raises(RefusedInput) as raised:
        read_record(record)
    assert "line 1" in raised.value.where
    assert witness(record, capsys=capsys)[0] == 1


def test_a_record_that_anybody_may_write(tmp_path: Path) -> None:
    """It proves nothing."""
    record = tmp_path / "w.jsonl"
    record.write_text("")
    record.chmod(0o666)
    with pytest.raises(RefusedInput):
        read_record(record)


def test_a_record_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None, a directory, a pipe: could not look, and nobody waits."""
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "none", tmp_path, tmp_path / "pipe"):
        with pytest.raises(CouldNotLook):
            read_record(place)
        assert witness(place, capsys=capsys)[0] == 3


def test_how_to_start(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a record the verb says which directory and which variable."""
    code, document = witness(capsys=capsys)
    assert code == 0
    assert (Path(document["directory"]) / "sitecustomize.py").is_file()
    assert document["variable"] == "DRAFTPROOF_WITNESS"
    assert main(["witness"]) == 0
    assert document["directory"] in capsys.readouterr().out
