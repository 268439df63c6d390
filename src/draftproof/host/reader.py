"""The program that says what is under a path, as any program that opens it would find it.

It shares no state with the writer: another process, the path resolved again, the whole file read.
On request it reads past the page cache, and looks through the eyes of a running process.
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH120
from __future__ import annotations

import base64
import ctypes
import fcntl
import hashlib
import mmap
import os
import sys
import time
from typing import Any

from draftproof.host.consumer import see_consumer
from draftproof.host.ground import Refused, Wire, machine, sha256_of
from draftproof.host.seeing import see

__all__ = ["main"]

FIRST_FRAME_S = 30.0
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
    digest, _, _ = sha256_of(descriptor)
    return {"sha256": digest, "how": "read after the pages were dropped (mincore: none left)"}


def wait_quiet(path: str, wait_ms: int) -> bool:
    """Whether no writer of ours holds the directory's lock, waited for; then no late publication can come."""
    until = time.monotonic() + wait_ms / 1000
    try:
        descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return True  # no directory, no writer in it
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    return False
                time.sleep(0.05)
            else:
                return True
    finally:
        os.close(descriptor)


def main() -> int:
    """Serve one request on standard input."""
    wire = Wire(FIRST_FRAME_S)
    try:
        ask = wire.document()
        wire.nonce = ask["nonce"]
        wire.end()
    except Refused as refused:
        wire.say("refused", code=refused.code, facts=refused.facts)
        return 0
    path = base64.b64decode(ask["path"]).decode("utf-8", "surrogateescape")
    is_quiet = wait_quiet(path, ask["settle_ms"]) if ask["settle_ms"] else False
    seen = see(path, ask["keep_bytes"])
    device = consumer = None
    if ask["is_device_asked"] and seen["kind"] == "file":
        device = see_device(path, seen["file_system"]["type"])
    if ask["pid"]:
        consumer = see_consumer(path, ask["pid"], seen)
    wire.say("seen", seen=seen, is_quiet=is_quiet, device=device, consumer=consumer, machine=machine())
    return 0


if __name__ == "__main__":
    sys.exit(main())
