"""File systems on loop devices: one that runs full under its feet, and one whose power can be cut."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["FILE_SYSTEMS", "cut", "image_mounted", "mounted_tmpfs", "needs"]

FILE_SYSTEMS = ("ext4", "xfs", "btrfs")
_MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
_SIZE = {"ext4": 64 << 20, "xfs": 320 << 20, "btrfs": 160 << 20}
"""The least, in bytes, that each makes without complaint."""


def needs(file_system: str) -> str:
    """The program that makes this file system, empty where it is there."""
    program = _MAKE[file_system][0]
    return "" if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") else program


@contextmanager
def mounted_tmpfs(place: Path, size: int) -> Iterator[Path]:
    """A memory file system of ``size`` bytes."""
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def image_mounted(image: Path, file_system: str, *, is_new: bool, size: int = 0) -> Iterator[Path]:
    """The image mounted; made first where ``is_new``; an existing one is recovered as after a power cut."""
    if is_new:
        with image.open("wb") as stream:
            stream.truncate(size or _SIZE[file_system])
        subprocess.run([*_MAKE[file_system], str(image)], check=True, stdout=subprocess.DEVNULL)
    place = Path(tempfile.mkdtemp(prefix="draftproof-mount-"))
    options = "loop,nouuid" if file_system == "xfs" else "loop"
    subprocess.run(["mount", "-t", file_system, "-o", options, str(image), str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()


def cut(image: Path, copy: Path) -> Path:
    """What the block device had been given at one moment: a clone of the backing file, which XFS can make."""
    subprocess.run(["cp", "--reflink=always", str(image), str(copy)], check=True)
    return copy
