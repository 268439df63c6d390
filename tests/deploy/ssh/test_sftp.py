"""host.sftp against a real SFTP-only account: the same write, what cannot be known there told."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

from draftproof.deploy.fleet.verify import verify
from draftproof.deploy.hosts import look
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing import refusals
from draftproof.deploy.writing.receipt import FileState, Receipt
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import CouldNotLook
from draftproof.host.program import request
from draftproof.host.sftp import SftpHost
from draftproof.names import Sha256
from loopback import Sshd
from sftp_account import NEW, NONCE, OLD, frames_of_write, frames_under

pytestmark = [pytest.mark.ssh, pytest.mark.root]


def target_in(directory: Path) -> Path:
    """A file with old content and a mode of its own."""
    path = directory / "with blank" / "config.json"
    path.parent.mkdir()
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The same in the test's own directory."""
    return target_in(tmp_path)


def put(
    sshd: Sshd, ledger: Ledger, path: Path, *, old: str | None = None, level: Level = Level.L2
) -> Receipt:
    """A verified write through the account that serves files only."""
    expected = Sha256(old) if old else None
    order = WriteOrder(Place("sftp", str(path)), NEW, "test", expected_old=expected, level=level)
    return verified_write(sshd.host("sftp"), order, ledger)


def test_the_account_runs_no_program(sshd: Sshd) -> None:
    """Otherwise the other tests here would test the usual way."""
    assert b"sftp connections only" in sshd.host("sftp").run(["true"], timeout_s=20).stdout


def test_replaces_and_says_what_is_not_known(sshd: Sshd, ledger: Ledger, target: Path) -> None:
    """Bytes, mode and pre-image as everywhere; at most L3, no conflict safety, both said."""
    receipt = put(sshd, ledger, target, level=Level.L7)
    assert (target.read_bytes(), target.stat().st_mode & 0o7777) == (NEW, 0o640)
    assert receipt.state is FileState.NEW
    assert Level.L2 <= receipt.level <= Level.L3
    assert not receipt.is_enough
    assert any("no lock and no compare-and-swap" in note for note in receipt.notes)
    assert ledger.objects.fetch(receipt.old_sha256) == OLD
    assert list(target.parent.iterdir()) == [target]


def test_verify_claims_no_more_than_the_write(sshd: Sshd, ledger: Ledger, target: Path) -> None:
    """Without an inode the file found later cannot be told from another with the same bytes."""
    put(sshd, ledger, target)
    verdict = verify(sshd.host("sftp"), Place("sftp", str(target)), NEW, ledger)
    assert verdict.diagnosis is None
    held = {item.level: item for item in verdict.evidence}
    assert "not shown over SFTP" in held[Level.L3].how
    assert not held[Level.L5].holds


def test_creates_and_never_overwrites(sshd: Sshd, ledger: Ledger, target: Path) -> None:
    """A free name is taken; with absent expected, a file there is a conflict."""
    path = target.with_name("new.json")
    assert put(sshd, ledger, path).old_sha256 == "absent"
    assert path.read_bytes() == NEW
    with pytest.raises(refusals.Conflict):
        put(sshd, ledger, target, old="absent")
    assert target.read_bytes() == OLD


def test_refuses_the_same_places(sshd: Sshd, ledger: Ledger, target: Path) -> None:
    """A link, a link above, a second name, a directory, a foreign-writable parent, no parent."""
    link = target.with_name("link.json")
    link.symlink_to(target.name)
    with pytest.raises(refusals.Symlink):
        put(sshd, ledger, link)
    above = target.parent.with_name("above")
    above.symlink_to(target.parent.name)
    with pytest.raises(refusals.Symlink):
        put(sshd, ledger, above / target.name)
    with pytest.raises(refusals.NotRegular):
        put(sshd, ledger, target.parent)
    with pytest.raises(refusals.ParentMissing):
        put(sshd, ledger, target.parent / "no" / "x.json")
    second = target.with_name("second.json")
    second.hardlink_to(target)
    with pytest.raises(refusals.ManyNames):
        put(sshd, ledger, target)
    target.parent.chmod(0o777)
    with pytest.raises(refusals.ForeignParent):
        put(sshd, ledger, target.with_name("new.json"))
    assert target.read_bytes() == OLD


def test_reads_absent_and_special(sshd: Sshd, target: Path) -> None:
    """What is there is told by kind, as everywhere."""
    for path, kind in ((target, "file"), (target.with_name("no"), "absent"), (target.parent, "other")):
        assert look(sshd.host("sftp"), Place("sftp", str(path)), nonce=NONCE).kind == kind


def test_a_key_that_is_not_on_record_ends_it(sshd: Sshd, target: Path) -> None:
    """Also without the ssh client before it, and though the configuration asks for trust on first use."""
    config = sshd.directory / "sftp-stranger"
    config.write_text(sshd.config.read_text().replace(f"{sshd.directory}/known_sftp", "/dev/null"))
    asked = {"nonce": NONCE, "path": str(target), "keep_bytes": 99, "is_device_asked": 0, "pid": 0, "port": 0}
    host = SftpHost("sftp", ("-F", str(config)))
    result = host.run(("sftp", "reader"), stdin=request(asked), answer=None, timeout_s=20)
    assert (result.exit_code, result.stdout) == (255, b"")
    assert b"HostKeyNotVerifiable" in result.stderr


def test_without_the_extra_it_is_named(
    sshd: Sshd, ledger: Ledger, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what the account is and what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(CouldNotLook) as caught:
        put(sshd, ledger, target)
    assert caught.value.id == "host-sftp-only"
    assert "draftproof[ssh-sftp]" in caught.value.next_step
    assert target.read_bytes() == OLD


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        ("fsync:error=EIO:when=1", "fsync of the file"),
        ("rename:error=EIO:when=1", "publish"),
        ("fchmod:error=EPERM:when=1", "copy owner and mode"),
    ],
)
def test_a_step_that_fails_publishes_nothing(sshd: Sshd, target: Path, fault: str, step: str) -> None:
    """The server's bare Failure is named by the step; the old file stays and nothing is left."""
    _, frames = frames_under(sshd, fault, target)
    assert frames["failed"]["step"] == step
    assert target.read_bytes() == OLD
    assert list(target.parent.iterdir()) == [target]


def test_a_directory_that_does_not_sync_is_told(sshd: Sshd, target: Path) -> None:
    """Published, its durability not acknowledged; the sync is not tried again."""
    _, frames = frames_under(sshd, "fsync:error=EIO:when=2", target)
    assert target.read_bytes() == NEW
    assert "Failure" in frames["receipt"]["directory_sync"]


def test_a_server_killed_at_the_rename_leaves_it_unknown(sshd: Sshd, target: Path) -> None:
    """No frame claims an end: whether the rename was done is for a reading to say."""
    code, frames = frames_under(sshd, "rename:signal=SIGKILL:when=1", target)
    assert code == 255
    assert not frames.keys() & {"receipt", "failed", "refused"}
    assert target.read_bytes() in {OLD, NEW}


def test_a_full_disk_publishes_nothing(sshd: Sshd, tmp_path: Path) -> None:
    """A file system with room for the old file alone; what was begun is taken away again."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", str(disk)], check=True)
    try:
        target = disk / "config.json"
        target.write_bytes(OLD)
        _, frames = frames_of_write(("-F", str(sshd.config)), target, NEW * 9000)
        assert frames["failed"]["step"] == "write"
        assert target.read_bytes() == OLD
        assert list(disk.iterdir()) == [target]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
