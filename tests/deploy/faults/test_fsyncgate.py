"""A disk that runs full below the file system: fsync fails once, then lies; it is asked once and believed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import FileState
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.host.local import LocalHost
from loop_images import FILE_SYSTEMS, image_mounted, mounted_tmpfs, needs
from totals import record

pytestmark = [pytest.mark.root]
OLD = b"old " * 100
MEMORY = 400 << 20
NEW_BYTES = 4 << 20


def fill(directory: Path, *, leave: int) -> None:
    """Take all but ``leave`` bytes of a file system."""
    free = os.statvfs(directory)
    with (directory / "filler").open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, free.f_bavail * free.f_frsize - leave)


@pytest.mark.parametrize("file_system", FILE_SYSTEMS)
def test_a_failed_sync_is_told_and_the_old_file_stays(tmp_path: Path, file_system: str) -> None:
    """The writes succeed, the sync does not: L0, the reason named, the target and its directory as before."""
    if needs(file_system):
        pytest.skip(f"{needs(file_system)} is not installed")
    with mounted_tmpfs(tmp_path / "memory", MEMORY) as memory:
        image = memory / "image"
        with image_mounted(image, file_system, is_new=True) as place:
            (place / "model").mkdir()
            target = place / "model" / "weights.bin"
            target.write_bytes(OLD)
            subprocess.run(["sync", "-f", str(place)], check=True)
            fill(memory, leave=256 << 10)
            order = WriteOrder(Place("", str(target)), os.urandom(NEW_BYTES), "test")
            receipt = verified_write(LocalHost(sys.executable), order, Ledger(tmp_path / "ledger"))
            is_told = "fsync of the file failed" in receipt.evidence[1].how
            record("S3 fsync fails once", file_system, {"points": 1, "told": int(is_told)})
            assert (receipt.level, receipt.state) == (Level.L0, FileState.OLD)
            assert is_told
            assert target.read_bytes() == OLD
            (memory / "filler").unlink()
