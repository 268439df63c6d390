"""host.sftp_write step by step: servers that lie, other writers, planted names, places to refuse."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checkpoint.build import tensors_of, write_index, write_shard
from draftproof.checkpoint.ledger import Checkpoint, NoWeights, read_checkpoint
from draftproof.deploy.place import Place
from draftproof.deploy.remote_weights import read_remote_weights
from loopback import Sshd
from sftp_account import NEW, NONCE, OLD, SERVER, frames_of_write, frames_under, part_of, server_under

pytestmark = [pytest.mark.ssh, pytest.mark.root]
FOREIGN = b'{"taps": [7, 77]}\n'


def target_in(directory: Path) -> Path:
    """A file with old content and a mode of its own."""
    path = directory / "model" / "config.json"
    path.parent.mkdir()
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The same in the test's own directory."""
    return target_in(tmp_path)


def options(sshd: Sshd) -> tuple[str, str]:
    """For the account that serves files only."""
    return ("-F", str(sshd.config))


@contextmanager
def when(appears: Path, work: Callable[[], object], *, length: int) -> Iterator[None]:
    """``work`` is done once, as soon as that file has that length."""

    def meddle() -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if appears.exists() and appears.stat().st_size == length:
                work()
                return
            time.sleep(0.002)

    meddler = threading.Thread(target=meddle)
    meddler.start()
    try:
        yield
    finally:
        meddler.join()


def unchanged(target: Path) -> bool:
    """The old content, and nothing beside it."""
    return target.read_bytes() == OLD and list(target.parent.iterdir()) == [target]


def test_a_write_that_lies_is_not_published(sshd: Sshd, target: Path) -> None:
    """The server says that all bytes were written and none was: found before the rename."""
    lie = f"write,pwrite64:retval={len(NEW)}"
    _, frames = frames_under(sshd, lie, target, at=part_of(target))
    assert frames["refused"]["code"] == "staged-differs"
    assert unchanged(target)


def test_other_bytes_of_the_same_length_are_not_published(sshd: Sshd, target: Path) -> None:
    """Somebody writes into the temporary file before it is read back."""
    part = part_of(target)
    with when(part, lambda: part.write_bytes(FOREIGN), length=len(NEW)):
        _, frames = frames_under(sshd, "fsync:delay_enter=1500000:when=1", target, at=part)
    assert frames["refused"]["code"] == "staged-differs"
    assert unchanged(target)


def test_a_mode_that_was_not_set_is_not_published(sshd: Sshd, target: Path) -> None:
    """The server says that it changed the mode and did not."""
    _, frames = frames_under(sshd, "fchmod:retval=0", target)
    assert frames["refused"]["code"] == "staged-differs"
    assert "mode" in frames["refused"]["facts"]["found"]
    assert unchanged(target)


def test_a_planted_link_leads_nowhere(sshd: Sshd, target: Path) -> None:
    """A link under the temporary name: what it names is not written to."""
    victim = target.parent.with_name("victim")
    victim.write_bytes(b"victim")
    part_of(target).symlink_to(victim)
    _, frames = frames_of_write(options(sshd), target, NEW)
    assert frames["failed"]["step"] == "create the temporary file"
    assert (victim.read_bytes(), target.read_bytes()) == (b"victim", OLD)


def test_a_foreign_write_before_the_order_is_a_conflict(sshd: Sshd, target: Path) -> None:
    """Its bytes stay."""
    _, frames = frames_of_write(options(sshd), target, NEW, meanwhile=lambda: target.write_bytes(FOREIGN))
    assert frames["refused"]["code"] == "conflict"
    assert target.read_bytes() == FOREIGN


def test_another_expectation_is_a_conflict(sshd: Sshd, target: Path) -> None:
    """The order names what it replaces."""
    _, frames = frames_of_write(options(sshd), target, NEW, expected_old="0" * 64)
    assert frames["refused"]["code"] == "conflict"
    assert unchanged(target)


def test_a_late_order_is_refused(sshd: Sshd, target: Path) -> None:
    """After the deadline nothing is renamed."""
    _, frames = frames_of_write(options(sshd), target, NEW, late_by_ms=1)
    assert frames["refused"]["code"] == "late"
    assert unchanged(target)


def test_a_name_taken_in_the_last_moment_is_a_conflict(sshd: Sshd, target: Path) -> None:
    """Between the last look and the rename somebody creates the file; it is not overwritten."""
    path = target.with_name("new.json")
    part = part_of(path, None)

    def take() -> None:
        time.sleep(0.7)
        path.write_bytes(FOREIGN)

    delays = "link,linkat,rename,renameat,renameat2:delay_enter=2000000"
    with when(part, take, length=len(NEW)):
        _, frames = frames_under(sshd, delays, path)
    assert frames["refused"]["code"] == "conflict"
    assert path.read_bytes() == FOREIGN


def test_leftovers_of_others_are_named_and_stay(sshd: Sshd, target: Path) -> None:
    """Without a lock nobody knows whether their writer lives."""
    left = target.with_name(f".{target.name}.draftproof-0-0-0.part")
    left.write_bytes(b"half")
    _, frames = frames_of_write(options(sshd), target, NEW)
    assert frames["receipt"]["kept"] == [left.name]
    assert left.read_bytes() == b"half"


def test_a_server_without_fsync_is_told(sshd: Sshd, target: Path) -> None:
    """Published and not synced, which the receipt says: nothing of it counts as durable."""
    with server_under(sshd, f"{SERVER} -P fsync") as without:
        _, frames = frames_of_write(without, target, NEW)
    assert "no fsync@openssh.com" in frames["receipt"]["directory_sync"]
    assert target.read_bytes() == NEW


@pytest.mark.parametrize(
    "code",
    [
        "escapes-root",
        "dots",
        "hub-cache",
        "name-too-long",
        "read-only",
        "read-only file system",
        "mount-point",
        "foreign owner",
        "foreign owner, new file",
    ],
)
def test_refuses_as_the_python_program_does(sshd: Sshd, target: Path, code: str) -> None:
    """The same places by the same codes; nothing is changed."""
    path, root, expected = target, "/", code
    mounted: Path | None = None
    if code == "escapes-root":
        root = str(target.parent.parent / "elsewhere")
    elif code == "dots":
        path, expected = Path(f"{target.parent}/no/../{target.name}"), "escapes-root"
    elif code == "hub-cache":
        path = target.parent / "models--a--b" / "blobs" / "x"
        path.parent.mkdir(parents=True)
    elif code == "name-too-long":
        path = target.with_name("x" * 151)
    elif code == "read-only":
        target.chmod(0o440)
    elif code == "read-only file system":
        mounted, expected = target.parent, "read-only"
        subprocess.run(["mount", "--bind", "-o", "ro", str(mounted), str(mounted)], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(mounted)], check=True)
    elif code == "mount-point":
        mounted = target
        subprocess.run(["mount", "--bind", str(target), str(target)], check=True)
    else:
        os.chown(target.parent, 65534, 65534)
        expected = "parent-foreign-writable"
        path = target.with_name("new.json") if "new" in code else target
    try:
        _, frames = frames_of_write(options(sshd), path, NEW, root=root)
    finally:
        if mounted:
            subprocess.run(["umount", str(mounted)], check=True)
    assert frames["refused"]["code"] == expected
    assert target.read_bytes() == OLD
    assert not list(target.parent.glob(f"*{NONCE}*"))


def test_weights_are_read_by_their_headers(sshd: Sshd, tmp_path: Path) -> None:
    """Shards, links and an index of the account that serves files only, as a reading here has them."""
    names = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    shards = [tensors_of({"layers.0.w": (8, 16)}), tensors_of({"norm.weight": (16,)})]
    for name, tensors in zip(names, shards, strict=True):
        write_shard(tmp_path / name, tensors)
    write_index(tmp_path, dict(zip(names, shards, strict=True)))
    (tmp_path / names[1]).rename(tmp_path / "blob")
    (tmp_path / names[1]).symlink_to("blob")
    (tmp_path / "sub").mkdir()
    place = Place("sftp", str(tmp_path))
    here, there = read_checkpoint(tmp_path), read_remote_weights(sshd.host("sftp"), place)
    assert isinstance(here, Checkpoint)
    assert isinstance(there, Checkpoint)
    assert (there.tensors, there.shards, there.defects) == (here.tensors, here.shards, here.defects)
    (tmp_path / "blob").unlink()
    gone = read_remote_weights(sshd.host("sftp"), place)
    assert isinstance(gone, Checkpoint)
    assert [defect.id for defect in gone.defects] == [
        defect.id
        for defect in read_checkpoint(tmp_path).defects  # type: ignore[union-attr]
    ]
    missing = read_remote_weights(sshd.host("sftp"), Place("sftp", str(tmp_path / "no")))
    assert isinstance(missing, NoWeights)
    assert "No such file" in missing.reason
