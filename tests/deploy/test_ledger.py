"""deploy.ledger.ledger: appended to only, chained, torn ends told from damage, nothing secret in it."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from draftproof.deploy.ledger.ledger import Ledger, LedgerDamaged, LedgerUnusable, parse_ledger
from draftproof.deploy.ledger.objects import ObjectsDamaged
from draftproof.deploy.place import Place
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import CouldNotLook
from draftproof.host.local import LocalHost
from loop_images import mounted_tmpfs


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    """A ledger of four entries."""
    for number in range(4):
        ledger.append("seen", {"host": "", "path": "/x", "of": number})
    return ledger


def file_of(ledger: Ledger) -> Path:
    """The ledger's text."""
    return ledger.directory / "ledger.jsonl"


def test_entries_come_back_in_order(filled: Ledger) -> None:
    """What was appended is read, numbered from 1."""
    entries = filled.read().entries
    assert [entry.seq for entry in entries] == [1, 2, 3, 4]
    assert [entry.facts["of"] for entry in entries] == [0, 1, 2, 3]


def test_absent_ledger_is_empty(ledger: Ledger) -> None:
    """Reading makes nothing."""
    assert ledger.read().entries == ()
    assert not ledger.directory.exists()


def test_every_cut_inside_the_last_line_is_torn_and_never_damage(filled: Ledger) -> None:
    """A crash may leave any part of the line being appended; the acknowledged ones stand."""
    data = file_of(filled).read_bytes()
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(last + 1, len(data)):
        text = parse_ledger(data[:cut], "test")
        assert len(text.entries) == 3
        assert text.torn == data[last:cut]
    assert len(data) - last > 100


def test_append_after_a_torn_line_keeps_its_bytes(filled: Ledger) -> None:
    """The unfinished line is set aside under its digest, and the chain goes on."""
    with file_of(filled).open("ab") as stream:
        stream.write(b'{"seq": 5, "pr')
    entry = filled.append("seen", {"host": "", "path": "/x", "of": 9})
    assert entry.seq == 5
    assert filled.read().torn == b""
    kept = [path.read_bytes() for path in filled.objects.directory.rglob("*") if path.is_file()]
    assert kept == [b'{"seq": 5, "pr']


def changed_value(data: bytes) -> bytes:
    """One digit of an old entry."""
    return data.replace(b'"of": 1', b'"of": 7')


def line_removed(data: bytes) -> bytes:
    """An entry taken out of the middle."""
    lines = data.splitlines(keepends=True)
    return b"".join(lines[:1] + lines[2:])


def lines_swapped(data: bytes) -> bytes:
    """Two entries exchanged."""
    lines = data.splitlines(keepends=True)
    return b"".join([lines[0], lines[2], lines[1], lines[3]])


def last_line_removed(data: bytes) -> bytes:
    """The latest acknowledged entry cut off at a line's end: only ``head`` remembers it."""
    return b"".join(data.splitlines(keepends=True)[:-1])


def zeroed(data: bytes) -> bytes:
    """A page of zeros in the middle."""
    return data[:150] + b"\0" * 60 + data[210:]


@pytest.mark.parametrize("damage", [changed_value, line_removed, lines_swapped, last_line_removed, zeroed])
def test_damage_is_refused_and_nothing_added(filled: Ledger, damage: Callable[[bytes], bytes]) -> None:
    """A chain that does not fit is never read from and never appended to."""
    path = file_of(filled)
    spoiled = damage(path.read_bytes())
    path.write_bytes(spoiled)
    with pytest.raises(LedgerDamaged):
        filled.read()
    with pytest.raises(LedgerDamaged):
        filled.append("seen", {})
    assert path.read_bytes() == spoiled


def test_killed_appender_leaves_a_readable_ledger(ledger: Ledger) -> None:
    """SIGKILL at many moments of a stream of appends: every acknowledged entry is there, none is damaged."""
    program = (
        "import sys;from pathlib import Path;from draftproof.deploy.ledger.ledger import Ledger\n"
        "b=Ledger(Path(sys.argv[1]))\n"
        "while True: print(b.append('seen',{'pad':'x'*3000}).seq,flush=True)\n"
    )
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(ledger.directory)], stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            acknowledged = [int(child.stdout.readline()) for _ in range(5)]
            child.kill()
            acknowledged += [int(line) for line in child.stdout.read().split(b"\n") if line]
        assert len(ledger.read().entries) >= acknowledged[-1]


def test_an_append_does_not_read_what_is_before_it(ledger: Ledger) -> None:
    """The bytes read by one append are the same after four entries and after four hundred."""

    def bytes_read() -> int:
        before = read_so_far()
        ledger.append("seen", {"host": "", "path": "/x", "of": 1})
        return read_so_far() - before

    counts = [bytes_read() for _ in range(400)]
    assert max(counts[10:20]) * 2 > max(counts[390:])
    assert file_of(ledger).stat().st_size > 20 * max(counts[390:])


def read_so_far() -> int:
    """Bytes this process has read by system calls."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(lines[0].removeprefix("rchar: "))


@pytest.mark.parametrize("words", [0, 2, 4])
def test_a_head_without_the_files_stamp_is_not_relied_on(filled: Ledger, words: int) -> None:
    """An older head, or one that a crash cut: the whole chain is read, and damage in it is found."""
    head = filled.directory / "head"
    head.write_text(" ".join(head.read_text().split()[:words]) + "\n")
    assert filled.append("seen", {}).seq == 5
    head.write_text(" ".join(head.read_text().split()[:words]) + "\n")
    path = file_of(filled)
    path.write_bytes(changed_value(path.read_bytes()))
    with pytest.raises(LedgerDamaged):
        filled.append("seen", {})


def test_a_forged_time_does_not_hide_a_change(filled: Ledger) -> None:
    """In place, of the same size, with the old modification time: the change time tells."""
    path = file_of(filled)
    before = path.stat()
    with path.open("r+b") as stream:
        stream.seek(path.read_bytes().index(b'"of": 1') + 6)
        stream.write(b"7")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_ino, after.st_mtime_ns) == (
        before.st_size,
        before.st_ino,
        before.st_mtime_ns,
    )
    with pytest.raises(LedgerDamaged):
        filled.append("seen", {})


def test_secrets_are_masked_by_their_keys(ledger: Ledger) -> None:
    """A credential under a telling key never reaches the file; ids and counts of tokens do."""
    ledger.append("seen", {"env": {"HF_TOKEN": "hf_x", "mask_token": "<m>"}, "list": [{"api_key": "k_y"}]})
    text = file_of(ledger).read_text()
    assert "hf_x" not in text
    assert "k_y" not in text
    assert json.loads(text)["facts"]["env"]["mask_token"].startswith("<m")


def test_files_are_the_owners_only(filled: Ledger) -> None:
    """0600 and 0700, whatever the umask."""
    filled.objects.keep(b"pre-image")
    for path in [filled.directory, *filled.directory.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_changed_object_is_refused(ledger: Ledger) -> None:
    """Kept bytes are checked against their name each time."""
    digest = ledger.objects.keep(b"pre-image")
    path = next(path for path in ledger.objects.directory.rglob(digest))
    path.write_bytes(b"other")
    with pytest.raises(ObjectsDamaged):
        ledger.objects.fetch(digest)
    ledger.objects.keep(b"pre-image")
    assert ledger.objects.fetch(digest) == b"pre-image"


def test_unusable_directory_is_named(tmp_path: Path) -> None:
    """A ledger below a file cannot be; the error says so and has exit status 3."""
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnusable) as caught:
        Ledger(tmp_path / "file" / "ledger").append("seen", {})
    assert caught.value.exit_code == 3


def test_a_clock_that_was_set_back_is_told(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain orders the entries, not the clock; which entries it was behind at is said."""
    start = datetime(2026, 3, 1, tzinfo=UTC)
    for minutes in (0, 5, -60, -59, 7):
        moment = start + timedelta(minutes=minutes)
        monkeypatch.setattr("draftproof.deploy.ledger.ledger.datetime", FixedClock(moment))
        ledger.append("seen", {"of": minutes})
    text = ledger.read()
    assert [entry.facts["of"] for entry in text.entries] == [0, 5, -60, -59, 7]
    assert text.set_back == (3,)


@dataclass(frozen=True)
class FixedClock:
    """A clock that stands."""

    moment: datetime

    def now(self, zone: tzinfo) -> datetime:
        """The one moment."""
        return self.moment.astimezone(zone)


@pytest.mark.parametrize("field", ["time", "kind", "facts"])
def test_values_of_other_types_are_damage(field: str) -> None:
    """A line that fits the chain and holds a number for a time, and the like."""
    document = {"seq": 1, "prev": "0" * 64, "time": "t", "kind": "seen", "facts": {}} | {field: 7}
    with pytest.raises(LedgerDamaged):
        parse_ledger(json.dumps(document).encode() + b"\n", "test")


@pytest.mark.parametrize("name", [".", "ledger.jsonl"])
@pytest.mark.parametrize("how", ["owner", "mode"])
def test_a_ledger_that_others_can_write_is_not_used(filled: Ledger, name: str, how: str) -> None:
    """Owned by somebody else, or open to all: neither believed nor added to, and no content is kept there."""
    path = filled.directory / name
    if how == "owner":
        os.chown(path, 65534, 65534)
    else:
        path.chmod(path.stat().st_mode | 0o002)
    before = {each: each.read_bytes() for each in filled.directory.rglob("*") if each.is_file()}
    for work in (filled.read, lambda: filled.append("seen", {}), filled.check_owner):
        with pytest.raises(LedgerUnusable) as caught:
            work()
        assert ("owner uid 65534" if how == "owner" else "mode") in caught.value.found
    assert {each: each.read_bytes() for each in filled.directory.rglob("*") if each.is_file()} == before


@pytest.mark.root
def test_a_ledger_that_may_not_be_read_is_told(filled: Ledger) -> None:
    """By a user without the right: an error, never an empty history."""
    os.seteuid(65534)
    try:
        for work in (filled.read, lambda: filled.append("seen", {})):
            with pytest.raises(LedgerUnusable) as caught:
                work()
            assert (caught.value.found, caught.value.exit_code) == ("Permission denied", 3)
    finally:
        os.seteuid(0)


@pytest.mark.root
def test_a_read_only_disk_under_the_ledger(tmp_path: Path) -> None:
    """It can be read and not added to; a write is not begun."""
    with mounted_tmpfs(tmp_path / "state", 1 << 20) as state:
        ledger = Ledger(state / "ledger")
        ledger.append("seen", {"of": 0})
        subprocess.run(["mount", "-o", "remount,ro", str(state)], check=True)
        assert len(ledger.read().entries) == 1
        with pytest.raises(LedgerUnusable) as caught:
            ledger.append("seen", {"of": 1})
        assert "Read-only file system" in caught.value.found
        (tmp_path / "config.json").write_bytes(b"{}")
        order = WriteOrder(Place("", str(tmp_path / "config.json")), b"[1]", "test")
        with pytest.raises(CouldNotLook) as unkept:
            verified_write(LocalHost(sys.executable), order, ledger)
        assert unkept.value.id == "ledger-unusable"
        assert (tmp_path / "config.json").read_bytes() == b"{}"


@pytest.mark.root
def test_a_disk_that_is_full_at_an_entry(tmp_path: Path) -> None:
    """What did not fit was never acknowledged; with room again the chain goes on."""
    with mounted_tmpfs(tmp_path / "state", 64 << 10) as state:
        ledger = Ledger(state / "ledger")
        ledger.append("seen", {"of": 0})
        (state / "filler").write_bytes(b"x" * 40_000)
        with pytest.raises(LedgerUnusable) as caught:
            ledger.append("seen", {"of": "y" * 30_000})
        assert "No space left" in caught.value.found
        assert len(ledger.read().entries) == 1
        (state / "filler").unlink()
        assert ledger.append("seen", {"of": 2}).seq == 2
        assert [entry.facts["of"] for entry in ledger.read().entries] == [0, 2]
