"""writing.write: the new content is in place and its receipt says how far that is shown; or it is not."""

import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing import refusals
from draftproof.deploy.writing.receipt import ABSENT, FileState, Receipt
from draftproof.errors import DraftproofError
from draftproof.names import Sha256

Put = Callable[..., Receipt]
OLD, NEW = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n'


def sha256(data: bytes) -> Sha256:
    """The digest as the product writes it."""
    return Sha256(hashlib.sha256(data).hexdigest())


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A config with old content in a directory of its own."""
    directory = tmp_path / "model"
    directory.mkdir()
    path = directory / "config.json"
    path.write_bytes(OLD)
    return path


def test_replaces_and_proves_it(put: Put, target: Path) -> None:
    """A replaced file holds the new bytes, seen by another process, with a line for every level."""
    receipt = put(target, NEW)
    assert target.read_bytes() == NEW
    assert (receipt.sha256, receipt.old_sha256) == (sha256(NEW), sha256(OLD))
    assert receipt.state is FileState.NEW
    assert receipt.level >= Level.L2
    assert [item.level for item in receipt.evidence] == list(Level)


def test_leaves_nothing_beside_the_target(put: Put, target: Path) -> None:
    """After a create and a replace the directory holds the two files and no sidecar."""
    put(target, NEW)
    put(target.with_name("other.json"), NEW)
    assert sorted(path.name for path in target.parent.iterdir()) == ["config.json", "other.json"]


def test_creates_only_a_free_name(put: Put, target: Path) -> None:
    """``absent`` as the expected old content refuses a name that is taken."""
    with pytest.raises(refusals.Conflict):
        put(target, NEW, expected_old=ABSENT)
    assert target.read_bytes() == OLD
    assert put(target.with_name("new.json"), NEW, expected_old=ABSENT).old_sha256 == ABSENT


def test_another_old_content_is_a_conflict(put: Put, target: Path, ledger: Ledger) -> None:
    """Compare and swap: another old digest stops the write before anything is staged or recorded."""
    with pytest.raises(refusals.Conflict) as caught:
        put(target, NEW, expected_old=sha256(b"else"))
    assert caught.value.exit_code == 4
    assert target.read_bytes() == OLD
    assert ledger.read().entries == ()


def test_keeps_mode_owner_and_attributes(put: Put, target: Path) -> None:
    """The new inode wears what the old one wore."""
    target.chmod(0o640)
    os.setxattr(target, "user.origin", b"hand")
    put(target, NEW)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.getxattr(target, "user.origin") == b"hand"


def test_inherited_access_lists_do_not_stick(put: Put, target: Path) -> None:
    """A default access list of the directory would dress the new file otherwise than the old one."""
    # version 2; owner, user 1, group, mask: all; others: nothing (tag, permissions, id: little endian)
    entries = (
        "01000700ffffffff",
        "0200070001000000",
        "04000700ffffffff",
        "10000700ffffffff",
        "20000000ffffffff",
    )
    os.setxattr(target.parent, "system.posix_acl_default", bytes.fromhex("02000000" + "".join(entries)))
    (target.parent / "stranger").touch()
    assert os.listxattr(target.parent / "stranger") == ["system.posix_acl_access"]
    put(target, NEW)
    assert os.listxattr(target) == []
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


def test_memory_file_system_never_reaches_the_sync_level(put: Put) -> None:
    """On tmpfs fsync is a no-op: L2 holds, L3 is the first not reached, and the reason says so."""
    path = Path("/dev/shm") / f"draftproof-test-{os.getpid()}.json"  # noqa: S108 - a tmpfs is the point
    try:
        receipt = put(path, NEW, level=Level.L3)
    finally:
        path.unlink(missing_ok=True)
    assert receipt.level is Level.L2
    assert not receipt.is_enough
    document = receipt.as_dict()
    assert document["not_reached"] == {
        "level": "L3",
        "reason": "fsync is a no-op: tmpfs at /dev/shm lives in memory",
    }


def test_device_level_is_read_past_the_cache(put: Put, target: Path) -> None:
    """L4 on a real file system comes from a direct read, and L5 waits for another boot."""
    receipt = put(target, NEW, level=Level.L4)
    if not receipt.evidence[3].holds:
        pytest.skip(f"the tests' directory does not honour fsync: {receipt.evidence[3].how}")
    assert receipt.level is Level.L4
    assert receipt.evidence[4].facts["sha256"] == sha256(NEW)
    assert "still the boot" in receipt.evidence[5].how


def symlink(target: Path) -> Path:
    """A link to the target, as in a snapshot of a hub cache."""
    link = target.with_name("link.json")
    link.symlink_to(target.name)
    return link


def linked_parent(target: Path) -> Path:
    """The target through a linked directory."""
    link = target.parent.with_name("alias")
    link.symlink_to(target.parent.name)
    return link / target.name


def hub_blob(target: Path) -> Path:
    """A blob of a hub cache by its own path."""
    blobs = target.parent / "models--org--name" / "blobs"
    blobs.mkdir(parents=True)
    blob = blobs / ("a" * 40)
    blob.write_bytes(OLD)
    return blob


def fifo(target: Path) -> Path:
    """A named pipe; opening it would hang."""
    path = target.with_name("pipe.json")
    os.mkfifo(path)
    return path


def directory(target: Path) -> Path:
    """A directory under the target's name."""
    path = target.with_name("dir.json")
    path.mkdir()
    return path


def hard_link(target: Path) -> Path:
    """A second name for the file."""
    target.with_name("stock.json").hardlink_to(target)
    return target


def open_parent(target: Path) -> Path:
    """A directory that everybody may write."""
    target.parent.chmod(0o777)
    return target


def no_write_bit(target: Path) -> Path:
    """A file that says read-only."""
    target.chmod(0o444)
    return target


def dotted(target: Path) -> Path:
    """A path that leaves and comes back; never resolved by its text."""
    return Path(str(target.parent / "x") + "/../config.json")


def no_parent(target: Path) -> Path:
    """A directory that does not exist."""
    return target.parent / "none" / "config.json"


def long_name(target: Path) -> Path:
    """No room for a temporary name."""
    return target.with_name("n" * 151 + ".json")


REFUSED = [
    (symlink, "write-through-symlink", 1),
    (linked_parent, "write-through-symlink", 1),
    (hub_blob, "write-into-hub-cache", 1),
    (fifo, "write-not-regular", 1),
    (directory, "write-not-regular", 1),
    (hard_link, "write-many-names", 1),
    (open_parent, "write-parent-foreign-writable", 1),
    (no_write_bit, "write-read-only", 1),
    (dotted, "write-escapes-root", 1),
    (no_parent, "write-parent-missing", 3),
    (long_name, "write-name-too-long", 1),
]


@pytest.mark.parametrize(
    ("place", "error_id", "exit_code"), REFUSED, ids=lambda value: getattr(value, "__name__", "")
)
def test_refuses_a_dangerous_place(
    put: Put, target: Path, place: Callable[[Path], Path], error_id: str, exit_code: int
) -> None:
    """Each dangerous target has its own id, and every file is as it was."""
    path = place(target)
    with pytest.raises(DraftproofError) as caught:
        put(path, NEW)
    assert (caught.value.id, caught.value.exit_code) == (error_id, exit_code)
    assert target.read_bytes() == OLD
    assert not [path for path in target.parent.iterdir() if "draftproof" in path.name]


def test_refuses_a_target_outside_its_root(put: Put, target: Path, tmp_path: Path) -> None:
    """A root bounds the write; the same path below it is written."""
    with pytest.raises(refusals.EscapesRoot):
        put(target, NEW, root=str(tmp_path / "elsewhere"))
    assert put(target, NEW, root=str(tmp_path)).state is FileState.NEW


@pytest.mark.parametrize(
    ("content", "error_id"),
    [
        (b'{"a": 1, "a": 2}\n', "write-content-duplicate-keys"),
        (b'{"a": 1', "write-content-unparsable"),
        (b"", "write-content-unparsable"),
        (b'{"a": NaN}\n', "write-content-unparsable"),
        (b'\xef\xbb\xbf{"a": 1}\n', "write-content-unparsable"),
        (b'{"a": 1}\nEOF\n', "write-content-unparsable"),
        (b"null\n", "write-content-unparsable"),
    ],
)
def test_refuses_json_that_readers_would_take_differently(
    put: Put, target: Path, ledger: Ledger, content: bytes, error_id: str
) -> None:
    """Content that is not strict JSON never reaches a host when the name promises JSON."""
    with pytest.raises(refusals.WriteRefused) as caught:
        put(target, content)
    assert caught.value.id == error_id
    assert target.read_bytes() == OLD
    assert ledger.read().entries == ()


def test_other_content_is_taken_as_it_is(put: Put, target: Path) -> None:
    """A file whose name does not promise JSON may hold anything, nothing at all included."""
    for content in (b"", b"\x00\xff", b"a" * 3_000_000):
        assert put(target.with_name("model.bin"), content).state is FileState.NEW
        assert target.with_name("model.bin").read_bytes() == content


def test_waiting_writers_take_turns(put: Put, target: Path) -> None:
    """Four writers that each add one, retrying on conflict, lose no acknowledged update."""
    target = target.with_name("count.txt")
    target.write_text("0")
    rounds, writers = 6, 4

    def work() -> None:
        done = 0
        while done < rounds:
            old = target.read_bytes()
            try:
                receipt = put(target, b"%d" % (int(old) + 1), expected_old=sha256(old))
            except refusals.Conflict:
                continue
            assert receipt.evidence[1].holds
            done += 1

    threads = [threading.Thread(target=work) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text() == str(rounds * writers)


def test_a_write_is_recorded_before_and_after(put: Put, target: Path, ledger: Ledger) -> None:
    """The ledger holds intent and receipt, and both contents; nothing of the content itself."""
    receipt = put(target, NEW)
    intent, proof = ledger.read().entries
    assert (intent.kind, proof.kind, proof.facts["of"]) == ("write", "receipt", receipt.ledger_entry)
    assert ledger.objects.fetch(sha256(NEW)) == NEW
    assert ledger.objects.fetch(sha256(OLD)) == OLD
    for path in [ledger.directory, *ledger.directory.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_local_write_is_fast_enough_to_be_used_always(put: Put, target: Path) -> None:
    """A verified write of a small file takes well under two seconds even on a busy machine."""
    start = time.monotonic()
    put(target, NEW)
    assert time.monotonic() - start < 2
