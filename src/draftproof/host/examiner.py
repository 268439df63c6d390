"""The reader with two looks more: past the page cache, and through the eyes of a running process.

A program of its own, because most readings need neither and a small program starts sooner.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import sys

from draftproof.host.consumer import see_consumer
from draftproof.host.ground import Wire, sha256_of
from draftproof.host.reader import FIRST_FRAME_S, answer

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from typing import Any

__all__ = ["main"]

BLOCK = 4096
DEVICE_LIMIT = 1 << 30
MEMORY_ONLY = ("tmpfs", "ramfs", "devtmpfs")


def see_device(path: str, file_system_type: str) -> dict[str, Any]:
    """The digest of the file read past the page cache, or why that cannot be had here."""
    if file_system_type in MEMORY_ONLY:
        return {"reason": f"{file_system_type}: there is no device below it"}
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        length = os.fstat(descriptor).st_size
        if length > DEVICE_LIMIT:
            return {"reason": f"{length} bytes: more than this program reads past the cache"}
        try:
            direct = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        except OSError:
            return see_evicted(descriptor, length)
        try:
            # One block more than the file, so that a read of its end comes back short and is seen to end.
            buffer = mmap.mmap(-1, (length // BLOCK + 2) * BLOCK)
            got = os.preadv(direct, [buffer], 0)
        finally:
            os.close(direct)
        return {"sha256": hashlib.sha256(buffer[:got]).hexdigest(), "how": f"O_DIRECT read of {got} bytes"}
    except OSError as error:
        return {"reason": f"device read failed: {error.strerror}"}
    finally:
        os.close(descriptor)


def see_evicted(descriptor: int, length: int) -> dict[str, Any]:
    """The digest read after the file's pages were dropped, if the kernel says that none is left."""
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    if length:
        pages = (length + mmap.PAGESIZE - 1) // mmap.PAGESIZE
        mapping = mmap.mmap(descriptor, length, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        vector = (ctypes.c_ubyte * pages)()
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        call = ctypes.CDLL(None, use_errno=True).mincore
        if call(ctypes.c_void_p(address), ctypes.c_size_t(length), vector) != 0:
            return {"reason": f"mincore: {os.strerror(ctypes.get_errno())}"}
        left = sum(page & 1 for page in vector)
        if left:
            return {"reason": f"{left} of {pages} pages stay in memory: another process holds them"}
    digest, _, _ = sha256_of(descriptor, 0)
    return {"sha256": digest, "how": "read after the pages were dropped (mincore: none left)"}


def examine(ask: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    """What was asked for beyond the content; None where it was not."""
    device = consumer = None
    if ask["is_device_asked"] and seen["kind"] == "file":
        device = see_device(ask["path"], seen["file_system"]["type"])
    if ask["pid"] or ask["port"]:
        consumer = see_consumer(ask["path"], ask["pid"], ask["port"], seen)
    return {"device": device, "consumer": consumer}


def main() -> int:
    """Serve one request on standard input."""
    answer(Wire(FIRST_FRAME_S), examine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
