"""The bytes of one regular file, never more than a limit, never waiting on a pipe or a device."""

import os
import stat
from pathlib import Path

from draftproof.errors import CouldNotLook

__all__ = ["read_limited"]

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def read_limited(path: Path, limit: int) -> bytes:
    """The file's bytes; ``limit + 1`` of them where it is longer than ``limit``.

    Symbolic links are followed, as every loader follows them.

    Raises:
        CouldNotLook: missing, no permission, or anything but a regular file.
    """
    try:
        # Asked before opening: merely opening a device can act on it.
        _require_regular(os.stat(path).st_mode, path)  # noqa: PTH116 (Path.stat hides that links are followed)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            # Asked again of what was opened: the name may have changed hands in between.
            _require_regular(os.fstat(file.fileno()).st_mode, path)
            # None, which the types leave out: some files of /proc have nothing to give just now.
            data: bytes | None = file.read(limit + 1)
    except OSError as error:
        raise _could_not_look(path, found=f"{error.strerror or error} (errno {error.errno})") from error
    except ValueError as error:  # a NUL inside the path
        raise _could_not_look(path, found=str(error)) from error
    if data is None:
        raise _could_not_look(path, found="a file that has nothing to read yet and would be waited for")
    return data


def _require_regular(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        kind = stat.S_IFMT(mode)
        raise _could_not_look(path, found=_KINDS.get(kind, f"file kind {kind:#o}"))


def _could_not_look(path: Path, *, found: str) -> CouldNotLook:
    return CouldNotLook(
        str(path),
        expected="a regular file that can be read",
        found=found,
        where=str(path),
        means="nothing is known about its content; nothing may be concluded",
        next_step=f"ls -lL {str(path)!r}, then name the JSON file itself",
    )
