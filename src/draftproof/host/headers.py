"""The program that lists a model directory and reads the beginning of each file of weights, and no more.

A header says which tensors a file holds, of what shape, and how long the file must be; the data stays there.
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH114, PTH116, PTH118, PTH119, PTH120, PTH208
from __future__ import annotations

import binascii
import os
import stat
import sys
import zlib

from draftproof.host.ground import Refused, Wire

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from typing import Any

__all__ = ["main"]

FIRST_FRAME_S = 30.0
MOST_NAMES = 10_000
START = 1024
PREFIX = 8
WEIGHTS, INDEX = ".safetensors", ".safetensors.index.json"


def beginning(path: str, name: str, room: int) -> bytes:
    """The header of a shard with its length, or a whole index, as far as it is whole. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        start = os.pread(descriptor, START, 0)
        wanted = size if name.endswith(INDEX) else PREFIX + int.from_bytes(start[:PREFIX], "little")
        if wanted > min(size, room):
            return start  # no header fits: the beginning shows what it is instead
        parts, at = [start], len(start)
        while at < wanted:
            part = os.pread(descriptor, min(wanted - at, 1 << 20), at)
            if not part:
                break
            parts.append(part)
            at += len(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def member(directory: str, name: str, room: int) -> dict[str, Any]:
    """One name: what it is, its size, where a link leads, and the beginning of what holds weights."""
    path = os.path.join(directory, name)
    told: dict[str, Any] = {"name": name, "kind": "file", "size": 0, "real": "", "error": ""}
    told.update({"head": None, "plain": None})  # plain: not packed, as a shell gives it
    real = os.path.realpath(path)
    if os.path.islink(path):
        is_beside = os.path.dirname(real) == os.path.realpath(directory)
        told["real"] = os.path.basename(real) if is_beside else real
    try:
        status = os.stat(path)
        told["size"] = status.st_size
        if stat.S_ISDIR(status.st_mode):
            told["kind"] = "directory"
        elif not stat.S_ISREG(status.st_mode):
            told["kind"] = "special"
        elif name.endswith((WEIGHTS, INDEX)):
            head = beginning(path, name, room)
            told["head"] = binascii.b2a_base64(zlib.compress(head, 1), newline=False).decode("ascii")
            told["num_head"] = len(head)
    except FileNotFoundError:
        told["kind"] = "dangling"
    except OSError as error:
        told["error"] = str(error.strerror)
    return told


def listing(path: str, room: int) -> dict[str, Any]:
    """Every name of the directory; ``error`` where it cannot be listed, or holds too much."""
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        return {"error": str(error.strerror), "members": []}
    if len(names) > MOST_NAMES:
        return {"error": f"{len(names)} names, more than are listed", "members": []}
    members = []
    for name in names:
        told = member(path, name, room)
        room -= told.get("num_head", 0)
        if room < 0:
            return {"error": "headers larger than are read at once", "members": []}
        members.append(told)
    return {"error": "", "members": members}


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
    wire.say("listing", **listing(ask["path"], ask["room_bytes"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
