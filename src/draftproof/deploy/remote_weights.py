"""The weights of a model directory on another machine, as far as their headers tell; the data stays there.

The directory is laid out again here with files of the same names and lengths that hold their headers and no
more (the rest is a hole and takes no room), and read by the same reader as a directory of this machine.
"""

import base64
import os
import secrets
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from draftproof.checkpoint.files.members import is_in_hub_cache
from draftproof.checkpoint.ledger import ArtefactDefect, Checkpoint, NoWeights, read_checkpoint
from draftproof.deploy.place import Place
from draftproof.errors import CouldNotLook
from draftproof.host.calling import call
from draftproof.host.program import frames_of, request
from draftproof.host.protocol import Host

__all__ = ["read_remote_weights"]

_ROOM_BYTES = 64 << 20
"""For all headers of one directory together; those of a 27B model take less than one of them."""

_MOST_NAMES = 10_000
_LONGEST_FILE = 1 << 43
_TIMEOUT_S = 120.0


def read_remote_weights(host: Host, place: Place) -> Checkpoint | NoWeights:
    """Names, shapes, dtypes and lengths of every shard in the directory ``place``, one connection.

    Values are not at hand: whoever needs them must say that it could not look.
    """
    nonce = secrets.token_hex(16)
    ask: dict[str, str | int] = {"nonce": nonce, "path": place.path, "room_bytes": _ROOM_BYTES}
    try:
        result = call(host, "headers", stdin=request(ask), timeout_s=_TIMEOUT_S)
        frames = frames_of(result.stdout, nonce)
        if "listing" not in frames:
            raise host.failure(result)
        return _read(frames["listing"], place)
    except CouldNotLook as error:
        return NoWeights(f"{place}: {error.found}")


def _read(listing: Mapping[str, Any], place: Place) -> Checkpoint | NoWeights:
    """The directory laid out again and read. Raises CouldNotLook where it cannot be."""
    members: list[Mapping[str, Any]] = listing["members"]
    unreadable = [f"{each['name']}: {each['error']}" for each in members if each["error"]]
    if listing["error"] or unreadable or len(members) > _MOST_NAMES:
        return NoWeights(f"{place}: {listing['error'] or '; '.join(unreadable[:3]) or 'too many names'}")
    with tempfile.TemporaryDirectory(prefix="draftproof-") as scratch:
        try:
            for each in members:
                _lay_out(Path(scratch), each)
        except (OSError, ValueError, zlib.error) as error:
            return NoWeights(f"{place}: cannot be laid out here: {error}")
        read = read_checkpoint(Path(scratch))
        return _as_there(read, os.path.realpath(scratch), str(place))


def _lay_out(scratch: Path, member: Mapping[str, Any]) -> None:
    """One name of the directory. Raises ValueError where it could not be one's name or length."""
    name, kind, real, size = member["name"], member["kind"], member["real"], member["size"]
    if "/" in name or "\0" in name or name in {"", ".", ".."} or not 0 <= size <= _LONGEST_FILE:
        raise ValueError(f"{name!r} of {size} bytes is no file's name or length")
    path = scratch / name
    is_in_hub = is_in_hub_cache(Path(real))
    if is_in_hub and kind == "dangling":
        path.symlink_to(f"{scratch}/gone{real}")  # the same place may exist here
    elif kind == "dangling" or ("/" in real and not is_in_hub):
        path.symlink_to(real)
    elif kind == "directory":
        path.mkdir()
    elif kind == "special":
        os.mkfifo(path)
    else:
        head = _head(member)
        with path.open("wb") as stream:
            stream.write(head[:size])
            stream.truncate(size)


def _head(member: Mapping[str, Any]) -> bytes:
    """The beginning of a file, packed or not; empty where it was not wanted."""
    if member["plain"] is not None:
        return base64.b64decode(member["plain"], validate=True)[:_ROOM_BYTES]
    return b"" if member["head"] is None else _unpacked(member["head"])


def _unpacked(packed: str) -> bytes:
    """At most so many bytes as all headers may have, whatever the other side packed."""
    return zlib.decompressobj().decompress(base64.b64decode(packed, validate=True), _ROOM_BYTES)


def _as_there(read: Checkpoint | NoWeights, scratch: str, there: str) -> Checkpoint | NoWeights:
    """What was read, told of the place that it is about."""
    if isinstance(read, NoWeights):
        return replace(read, reason=read.reason.replace(scratch, there))
    defects = tuple(_told(defect, scratch, there) for defect in read.defects)
    return replace(read, root=Path(there), defects=defects)


def _told(defect: ArtefactDefect, scratch: str, there: str) -> ArtefactDefect:
    return replace(
        defect,
        expected=defect.expected.replace(scratch, there),
        found=defect.found.replace(scratch, there),
        where=defect.where.replace(scratch, there),
    )
