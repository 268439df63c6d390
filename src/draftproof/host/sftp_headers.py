"""A model directory listed over SFTP, and the beginning of each file of weights read, as by host.headers."""

import base64
import stat
from pathlib import PurePosixPath
from typing import Any

import asyncssh

__all__ = ["listing"]

_MOST_NAMES = 10_000
_START = 1024
_PREFIX = 8
_WEIGHTS, _INDEX = ".safetensors", ".safetensors.index.json"


async def listing(client: asyncssh.SFTPClient, path: str, room: int) -> dict[str, Any]:
    """Every name of the directory; ``error`` where it cannot be listed, or holds too much."""
    try:
        here = str(await client.realpath(path))
        names = sorted(str(name) for name in await client.listdir(path))
    except (asyncssh.SFTPError, UnicodeDecodeError) as error:
        return {"error": str(error), "members": []}
    names = [name for name in names if name not in {".", ".."}]
    if len(names) > _MOST_NAMES:
        return {"error": f"{len(names)} names, more than are listed", "members": []}
    members = []
    for name in names:
        told, length = await _member(client, PurePosixPath(here), name, room)
        room -= length
        if room < 0:
            return {"error": "headers larger than are read at once", "members": []}
        members.append(told)
    return {"error": "", "members": members}


async def _member(
    client: asyncssh.SFTPClient, here: PurePosixPath, name: str, room: int
) -> tuple[dict[str, Any], int]:
    """One name: what it is, its size, where a link leads, its beginning; and that one's length."""
    path, head = str(here / name), None
    told: dict[str, Any] = {"name": name, "kind": "file", "size": 0, "real": "", "error": "", "head": None}
    try:
        if await client.islink(path):
            told["real"] = await _leads_to(client, here, path)
        attributes = await client.stat(path)
        mode, told["size"] = attributes.permissions or 0, attributes.size
        if stat.S_ISDIR(mode):
            told["kind"] = "directory"
        elif not stat.S_ISREG(mode):
            told["kind"] = "special"
        elif name.endswith((_WEIGHTS, _INDEX)):
            head = await _beginning(client, path, name, room)
    except asyncssh.SFTPNoSuchFile:
        told["kind"] = "dangling"
    except asyncssh.SFTPError as error:
        told["error"] = str(error)
    told["plain"] = None if head is None else base64.b64encode(head).decode("ascii")
    return told, len(head or b"")


async def _leads_to(client: asyncssh.SFTPClient, here: PurePosixPath, path: str) -> str:
    """Where a link leads in the end; only the name of a file beside it."""
    try:
        real = PurePosixPath(str(await client.realpath(path)))
    except asyncssh.SFTPError:
        real = here / str(await client.readlink(path))
    return real.name if real.parent == here else str(real)


async def _beginning(client: asyncssh.SFTPClient, path: str, name: str, room: int) -> bytes:
    """The header of a shard with its length, or a whole index, as far as it is whole."""
    async with client.open(path, "rb", encoding=None) as stream:
        size = (await stream.stat()).size or 0
        start: bytes = await stream.read(_START, 0)
        wanted = size if name.endswith(_INDEX) else _PREFIX + int.from_bytes(start[:_PREFIX], "little")
        if wanted > min(size, room):
            return start  # no header fits: the beginning shows what it is instead
        rest: bytes = await stream.read(wanted - len(start), len(start)) if wanted > len(start) else b""
        return start + rest
