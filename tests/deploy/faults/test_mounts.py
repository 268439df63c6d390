"""Mounts and namespaces: what a sync is worth, what cannot be replaced, what a served process sees."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.process import Process
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing import refusals
from draftproof.deploy.writing.receipt import Receipt
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.host.local import LocalHost

pytestmark = [pytest.mark.root]
OLD, NEW = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n'
Mount = Callable[..., None]
Put = Callable[..., Receipt]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Mount with these words; the last word is unmounted at the end."""
    with ExitStack() as stack:

        def call(*words: object) -> None:
            subprocess.run(["mount", *map(str, words)], check=True)
            stack.callback(subprocess.run, ["umount", "-l", str(words[-1])], check=True)

        yield call


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """A verified write on this machine."""

    def write(path: Path, *, level: Level = Level.L2, pid: int = 0) -> Receipt:
        process = Process(pid)
        order = WriteOrder(Place("", str(path)), NEW, "test", level=level, process=process, patience_s=10)
        return verified_write(LocalHost(sys.executable), order, Ledger(tmp_path / "ledger"))

    return write


def folders(tmp_path: Path, *names: str) -> list[Path]:
    """Directories of these names."""
    paths = [tmp_path / name for name in names]
    for path in paths:
        path.mkdir()
    return paths


def overlay(mount: Mount, tmp_path: Path, options: str) -> Path:
    """An overlay whose lower layer holds the old config."""
    lower, upper, work, merged = folders(tmp_path, "lower", "upper", "work", "merged")
    (lower / "config.json").write_bytes(OLD)
    layers = f"lowerdir={lower},upperdir={upper},workdir={work}{options}"
    mount("-t", "overlay", "-o", layers, "overlay", merged)
    return merged / "config.json"


def test_a_volatile_overlay_syncs_nothing(mount: Mount, put: Put, tmp_path: Path) -> None:
    """Fsync answers 0 and does nothing: L2 holds, L3 says why it does not."""
    target = overlay(mount, tmp_path, ",volatile")
    receipt = put(target, level=Level.L3)
    assert (target.read_bytes(), receipt.level) == (NEW, Level.L2)
    assert receipt.evidence[3].how.startswith("fsync is a no-op: overlay ")
    assert "volatile" in receipt.evidence[3].how


def test_an_overlay_is_written_through_its_upper_layer(mount: Mount, put: Put, tmp_path: Path) -> None:
    """A container's root file system: the lower file stays, the merged one is new, the swap is atomic."""
    target = overlay(mount, tmp_path, "")
    receipt = put(target, level=Level.L3)
    assert (target.read_bytes(), receipt.level) == (NEW, Level.L3)
    assert (tmp_path / "lower" / "config.json").read_bytes() == OLD
    assert [path.name for path in target.parent.iterdir()] == ["config.json"]


def test_a_single_file_mount_is_refused(mount: Mount, put: Put, tmp_path: Path) -> None:
    """``docker -v config.json:/x/config.json``: a rename cannot replace it, and is not tried."""
    (place,) = folders(tmp_path, "place")
    (tmp_path / "host.json").write_bytes(OLD)
    (place / "config.json").touch()
    mount("--bind", tmp_path / "host.json", place / "config.json")
    with pytest.raises(refusals.MountPoint):
        put(place / "config.json")
    assert (tmp_path / "host.json").read_bytes() == OLD


def test_a_read_only_mount_is_refused(mount: Mount, put: Put, tmp_path: Path) -> None:
    """Nothing is staged where nothing can be written."""
    (place,) = folders(tmp_path, "place")
    (place / "config.json").write_bytes(OLD)
    mount("--bind", "-o", "ro", place, place)
    with pytest.raises(refusals.ReadOnly):
        put(place / "config.json")


def test_an_immutable_file_is_refused(put: Put, tmp_path: Path) -> None:
    """Chattr +i is a wish that is honoured."""
    (place,) = folders(tmp_path, "place")
    target = place / "config.json"
    target.write_bytes(OLD)
    subprocess.run(["chattr", "+i", str(target)], check=True)
    try:
        with pytest.raises(refusals.ReadOnly) as caught:
            put(target)
    finally:
        subprocess.run(["chattr", "-i", str(target)], check=True)
    assert "immutable" in caught.value.found
    assert target.read_bytes() == OLD


def test_a_full_disk_changes_nothing(mount: Mount, put: Put, tmp_path: Path) -> None:
    """No room for the new content: the old one stays, the step and the reason are named."""
    (place,) = folders(tmp_path, "place")
    mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", place)
    (place / "config.json").write_bytes(OLD)
    with (place / "filler").open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(b"x" * 4096)
        except OSError:
            filled = stream.tell()
    assert filled > 40_000
    receipt = put(place / "config.json")
    assert (receipt.level, receipt.state.value) == (Level.L0, "old")
    assert "No space left" in receipt.evidence[1].how
    assert sorted(path.name for path in place.iterdir()) == ["config.json", "filler"]


@pytest.fixture
def container(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A process in a mount namespace of its own, over whose ``place`` another directory is mounted."""
    place, hidden = folders(tmp_path, "place", "hidden")
    (place / "config.json").write_bytes(OLD)
    (hidden / "config.json").write_bytes(OLD)
    with served(f"mount --bind {hidden} {place}") as process:
        yield place / "config.json", process.pid
        process.kill()


def test_a_process_elsewhere_does_not_see_the_write(put: Put, container: tuple[Path, int]) -> None:
    """L6 fails with what it sees instead: its mount hides the file that we wrote."""
    target, pid = container
    receipt = put(target, pid=pid)
    assert receipt.evidence[2].holds
    assert not receipt.evidence[6].holds
    assert f"process {pid} sees" in receipt.evidence[6].how


def served(script: str) -> subprocess.Popen[bytes]:
    """A process in a mount namespace of its own, once it has mounted what the script mounts."""
    call = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        f"{script} && echo ready && exec sleep 60",
    ]
    process = subprocess.Popen(call, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_a_process_that_pinned_the_old_inode_is_told_stale(put: Put, tmp_path: Path) -> None:
    """A single-file mount elsewhere in another namespace keeps the old inode: ``//deleted``."""
    place, inside = folders(tmp_path, "place", "in side")
    (place / "config.json").write_bytes(OLD)
    (inside / "c.json").touch()
    with served(f"mount --bind {place}/config.json '{inside}/c.json' && mount -t tmpfs x {place}") as process:
        receipt = put(place / "config.json", pid=process.pid)
        process.kill()
    assert not receipt.evidence[6].holds
    assert f"its mount at {inside}/c.json is stale (//deleted)" in receipt.evidence[6].how


def test_a_directory_mounted_elsewhere_shows_the_new_file(put: Put, tmp_path: Path) -> None:
    """A container that mounts the directory under another path sees the same inode there."""
    place, inside = folders(tmp_path, "place", "inside")
    (place / "config.json").write_bytes(OLD)
    with served(f"mount --bind {place} {inside} && mount -t tmpfs x {place}") as process:
        receipt = put(place / "config.json", pid=process.pid)
        process.kill()
    assert receipt.evidence[6].holds
    assert receipt.evidence[6].how.endswith(f"at {inside}/config.json")


def test_a_process_that_maps_the_file_has_read_it(put: Put, tmp_path: Path) -> None:
    """L7: the inode is mapped; one that started before the write is told to be restarted instead."""
    (place,) = folders(tmp_path, "place")
    target = place / "shard.bin"
    target.write_bytes(OLD)
    put(target)
    script = (
        "import mmap,sys,time;f=open(sys.argv[1],'rb');m=mmap.mmap(f.fileno(),0,prot=1);"
        "print('ready',flush=True);time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(target)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        from_before = put(target, pid=process.pid)
        time.sleep(0.1)
        process.kill()
    assert "started before the file was written" in from_before.evidence[7].how
    assert from_before.evidence[6].holds


def test_a_vanished_process_cannot_be_asked(put: Put, tmp_path: Path) -> None:
    """No process, no view: cannot tell, and never "fine"."""
    (place,) = folders(tmp_path, "place")
    with subprocess.Popen(["true"]) as process:
        process.wait()
    receipt = put(place / "config.json", pid=process.pid)
    assert receipt.evidence[6].how.startswith("cannot tell: process")
    assert not receipt.evidence[7].holds
    assert os.path.exists(place / "config.json")  # noqa: PTH110 - the write itself was done
