"""One look at one name in an open directory: what is there, never through a symbolic link.

Standard library only; part of the programs that run on a host (host.program).
"""

from __future__ import annotations

import os
import stat

from draftproof.host.ground import Refused, identity, sha256_of, xattrs_of

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from typing import Any

__all__ = ["OPEN_READ", "is_same", "look", "look_quietly"]

MOST_KEPT = 1 << 26  # bytes held in memory of one file; of a larger one the digest is all that is told
OPEN_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def look(directory: int, name: str) -> dict[str, Any] | None:
    """The regular file of that name: identity, digest, bytes, attributes; None where there is nothing."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise Refused("symlink", found=os.readlink(name, dir_fd=directory))
    if not stat.S_ISREG(status.st_mode):
        raise Refused("not-regular", found=stat.filemode(status.st_mode)[0])
    try:
        descriptor = os.open(name, OPEN_READ | os.O_NOATIME, dir_fd=directory)
    except PermissionError:
        descriptor = os.open(name, OPEN_READ, dir_fd=directory)  # O_NOATIME is for the owner only
    try:
        digest, length, data = sha256_of(descriptor, MOST_KEPT)
        seen = identity(os.fstat(descriptor))
        return {"sha256": digest, "length": length, "data": data, "xattrs": xattrs_of(descriptor), **seen}
    finally:
        os.close(descriptor)


def look_quietly(directory: int, name: str) -> dict[str, Any] | None:
    """As look, with None for what is no regular file."""
    try:
        return look(directory, name)
    except Refused:
        return None


def is_same(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """Whether two looks saw the same file with the same content; a forged mtime does not help."""
    if one is None or other is None:
        return one is other
    return all(one[key] == other[key] for key in ("dev", "ino", "ctime_ns", "size", "sha256"))
