"""One path seen as any program that opens it would find it: links followed, the whole file read.

Standard library only; part of the programs that run on a host (host.program).
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH114, PTH116
from __future__ import annotations

import binascii
import os
import stat

from draftproof.host.ground import file_system, identity, sha256_of, xattrs_of

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from typing import Any

__all__ = ["see"]


def see(path: str, keep_bytes: int) -> dict[str, Any]:
    """The file under ``path``; ``kind`` is absent, other (no regular file), unreadable or file."""
    real = os.path.realpath(path)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return {"kind": "other", "real_path": real, "found": stat.filemode(status.st_mode)[0]}
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {"kind": "absent", "real_path": real, "is_dangling": os.path.islink(path)}
    except OSError as error:
        return {"kind": "unreadable", "real_path": real, "error": str(error.strerror)}
    try:
        digest, length, data = sha256_of(descriptor, keep_bytes)
        return {
            "kind": "file",
            "real_path": real,
            "sha256": digest,
            "length": length,
            "data": binascii.b2a_base64(data, newline=False).decode("ascii")
            if length <= keep_bytes
            else None,
            "identity": identity(os.fstat(descriptor)),
            "xattrs": xattrs_of(descriptor),
            "file_system": file_system(descriptor),
        }
    finally:
        os.close(descriptor)
