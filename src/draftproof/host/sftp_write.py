"""The write over SFTP: create beside the target, sync, read back, rename over it, sync the directory.

Everything is done from here: a link that is cut before the rename was sent changes nothing; one that is cut
while the rename is under way leaves the outcome unknown, and nothing is said about it.
Source: OpenSSH's PROTOCOL for posix-rename@openssh.com and fsync@openssh.com, which also syncs a directory.
"""

import base64
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import asyncssh

from draftproof.host.program import fields_of
from draftproof.host.protocol import Answer
from draftproof.host.sftp_place import Refusal, Session, Trouble, content, identity, sha256_hex

__all__ = ["carry_out"]

Say = Callable[[str, dict[str, Any]], bytes]
_HUB = ("models--", "datasets--", "spaces--")
_HUB_FOLDERS = ("blobs", "snapshots", "refs")
_LONGEST_NAME = 150
_LIMITS = (
    "over SFTP: no lock and no compare-and-swap, a foreign write just before the rename is lost",
    "over SFTP: inode and extended attributes are not shown; the attributes are not carried over",
)
_NO_FSYNC = "not asked: the server has no fsync@openssh.com"


@dataclass(frozen=True, slots=True)
class _Old:
    """The file before: its bytes and attributes."""

    data: bytes
    shown: dict[str, Any]

    @property
    def sha256(self) -> str:
        return sha256_hex(self.data)


async def carry_out(session: Session, ask: dict[str, Any], say: Say, answer: Answer | None) -> None:
    """One write, from the request to the receipt.

    Raises:
        Refusal: it must not be done; nothing was changed.
        Trouble: the server could not do a step; nothing was published.
        asyncssh.Error: the connection is gone; after the rename was sent the outcome is unknown.
    """
    path = PurePosixPath(ask["path"])
    _check_path(path, PurePosixPath(ask["root"]))
    mode = await _check_parent(session, path)
    old = await _look(session.client, path)
    file_system = session.file_system(str(path))
    if "ro" in (*file_system["options"].split(","), *file_system["super_options"].split(",")):
        raise Refusal("read-only", found="the file system is mounted read-only")
    is_kept = old is not None and len(old.data) <= ask["keep_bytes"]
    line = say(
        "preimage",
        {
            "old": old.shown if old else None,
            "data": base64.b64encode(old.data).decode("ascii") if old and is_kept else None,
            "machine": session.machine,
            "file_system": file_system,
        },
    )
    order = answer(line) if answer else None
    if not order:
        return
    head = fields_of(order)
    start = order.index(b"\n") + 1 + int(order.split(b" ", 2)[1])
    await _put(session, path, old, (head, order[start:]), _Ground(ask["nonce"], mode, say))


@dataclass(frozen=True, slots=True)
class _Ground:
    """What the steps after the order need besides it."""

    nonce: str
    parent_owner: int | None
    say: Say


async def _put(
    session: Session,
    path: PurePosixPath,
    old: _Old | None,
    job: tuple[dict[str, str | int], bytes],
    ground: _Ground,
) -> None:
    """Stage, verify, publish and sync; what was done is said after each step."""
    client, (head, body) = session.client, job
    if head["expected_old"] != (old.sha256 if old else "absent"):
        raise Refusal("conflict", found=old.sha256 if old else "absent")
    tail = f"{ground.nonce}-{str(head['expected_old'])[:16]}-{str(head['sha256'])[:16]}.part"
    part = path.with_name(f".{path.name}.draftproof-{tail}")
    try:
        is_synced = await _write(client, part, body, old, ground.parent_owner)
        await _check_staged(client, part, head, old)
        ground.say("staged", {"sha256": head["sha256"], "length": len(body)})
        await _check_moment(client, path, old, int(head["deadline_ms"]))
        how = await _publish(client, part, path, is_new=old is None)
    except Refusal as refusal:
        refusal.facts["kept"] = await _remove(client, part)
        raise
    except Trouble as trouble:
        left = await _remove(client, part)
        trouble.error += "".join(f"; left there: {name}" for name in left)
        raise
    directory = await _sync_directory(client, path.parent) if is_synced else _NO_FSYNC
    published = identity(await client.stat(str(path)))
    facts = {"published": how, "identity": published, "directory_sync": directory, "limits": [*_LIMITS]}
    left = await _leftovers(client, path)
    ground.say(
        "receipt", {**facts, "file_sync": "ok" if is_synced else _NO_FSYNC, "removed": [], "kept": left}
    )


def _check_path(path: PurePosixPath, root: PurePosixPath) -> None:
    parts = str(path).split("/")[1:]
    if ".." in parts or not path.is_relative_to(root) or path == root:
        raise Refusal("escapes-root", found=str(path))
    for above, below in pairwise(parts):
        if above.startswith(_HUB) and below in _HUB_FOLDERS:
            raise Refusal("hub-cache", found=str(path))
    if len(path.name.encode("utf-8", "surrogateescape")) > _LONGEST_NAME:
        raise Refusal("name-too-long", found=len(path.name))


async def _check_parent(session: Session, path: PurePosixPath) -> int | None:
    """The directory's owner, once nobody else can change names in it and no link leads there."""
    client, parent = session.client, str(path.parent)
    try:
        real = str(await client.realpath(parent))
        attributes = await client.stat(parent)
    except asyncssh.SFTPError as error:
        raise Refusal("parent-missing", found=f"{parent}: {error}") from error
    if real != parent:
        raise Refusal("symlink", found=parent, resolved=f"{real}/{path.name}")
    mode = attributes.permissions or 0
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise Refusal("parent-foreign-writable", found=f"mode {stat.S_IMODE(mode):04o}")
    if any(words[4].replace("\\040", " ") == str(path) for words in session.mounts):
        raise Refusal("mount-point", found=str(path))
    return attributes.uid


async def _look(client: asyncssh.SFTPClient, path: PurePosixPath) -> _Old | None:
    """The regular file under a name, None where there is nothing."""
    try:
        attributes = await client.lstat(str(path))
    except asyncssh.SFTPNoSuchFile:
        return None
    except asyncssh.SFTPError as error:
        raise Trouble("look at the target", error) from error
    mode = attributes.permissions or 0
    if stat.S_ISLNK(mode):
        raise Refusal("symlink", found=str(await client.readlink(str(path))))
    if not stat.S_ISREG(mode):
        raise Refusal("not-regular", found=stat.filemode(mode)[0])
    if not mode & 0o222:
        raise Refusal("read-only", found=f"mode {stat.S_IMODE(mode):04o}: no write bit at all")
    names = [each for each in await client.readdir(str(path.parent)) if each.filename == path.name]
    words = str(names[0].longname).split() if names else []
    if len(words) > 1 and words[1].isdigit() and words[1] != "1":
        raise Refusal("many-names", found=int(words[1]))
    try:
        data = await content(client, str(path))
    except asyncssh.SFTPError as error:
        raise Trouble("read the target", error) from error
    shown = {"sha256": sha256_hex(data), "length": len(data), "xattrs": None, **identity(attributes)}
    return _Old(data, shown)


async def _write(
    client: asyncssh.SFTPClient,
    part: PurePosixPath,
    body: bytes,
    old: _Old | None,
    parent_owner: int | None,
) -> bool:
    """Create, fill, dress and sync the temporary file, once; whether the server can sync.

    Raises Refusal where the directory is a stranger's: who we are there only a file of ours shows.
    """
    step = "create the temporary file"
    try:
        async with client.open(str(part), "xb", encoding=None) as stream:
            step = "look at the temporary file"
            if parent_owner not in ((await stream.stat()).uid, 0, None):
                raise Refusal("parent-foreign-writable", found=f"owner uid {parent_owner}")
            step = "write"
            await stream.write(body)
            step = "copy owner and mode"
            if old is not None:
                await _dress(stream, old.shown)
            step = "fsync of the file"
            try:
                await stream.fsync()
            except asyncssh.SFTPOpUnsupported:
                return False
    except asyncssh.SFTPError as error:
        raise Trouble(step, error) from error
    return True


async def _dress(stream: asyncssh.SFTPClientFile, like: dict[str, Any]) -> None:
    mine = await stream.stat()
    if (mine.uid, mine.gid) != (like["uid"], like["gid"]):
        await stream.setstat(asyncssh.SFTPAttrs(uid=like["uid"], gid=like["gid"]))
    await stream.setstat(asyncssh.SFTPAttrs(permissions=like["mode"]))


async def _check_staged(
    client: asyncssh.SFTPClient,
    part: PurePosixPath,
    head: dict[str, str | int],
    old: _Old | None,
) -> None:
    """Read the temporary file by its name. Raises Refusal where it is not the order."""
    try:
        data = await content(client, str(part))
        attributes = identity(await client.lstat(str(part)))
    except asyncssh.SFTPError as error:
        raise Trouble("read the temporary file", error) from error
    if (sha256_hex(data), len(data)) != (head["sha256"], head["length"]):
        raise Refusal("staged-differs", found=sha256_hex(data), length=len(data))
    keys = ("mode", "uid", "gid") if old else ()
    for key in keys:
        if old and attributes[key] != old.shown[key]:
            raise Refusal("staged-differs", found=f"{key} {attributes[key]!r}, not {old.shown[key]!r}")


async def _publish(
    client: asyncssh.SFTPClient, part: PurePosixPath, path: PurePosixPath, *, is_new: bool
) -> str:
    """Give the new content its name; the plain rename of version 3 never overwrites."""
    try:
        if is_new:
            await client.rename(str(part), str(path))
            return "rename to a free name"
        await client.posix_rename(str(part), str(path))
    except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection):
        raise
    except asyncssh.SFTPError as error:
        if is_new and await client.lexists(str(path)):
            raise Refusal("conflict", found="appeared while we wrote") from error
        raise Trouble("publish", error) from error
    return "posix-rename"


async def _check_moment(
    client: asyncssh.SFTPClient, path: PurePosixPath, old: _Old | None, deadline_ms: int
) -> None:
    """The last look before the rename: the old file untouched, the time not up. Raises Refusal."""
    now = await _look(client, path)
    is_same = now is old if now is None or old is None else (now.data, now.shown) == (old.data, old.shown)
    if not is_same:
        raise Refusal("conflict", found="changed while we wrote")
    if time.monotonic_ns() // 1_000_000 > deadline_ms:
        raise Refusal("late", found=time.monotonic_ns() // 1_000_000)


async def _remove(client: asyncssh.SFTPClient, part: PurePosixPath) -> list[str]:
    """Take the temporary file away; its name where it may still be there."""
    try:
        await client.remove(str(part))
    except asyncssh.SFTPNoSuchFile:
        return []
    except asyncssh.SFTPError:
        return [part.name]
    return []


async def _leftovers(client: asyncssh.SFTPClient, path: PurePosixPath) -> list[str]:
    """Temporary files of other writes; without a lock none is known to be dead, so they are named only."""
    names = [str(name) for name in await client.listdir(str(path.parent))]
    return sorted(name for name in names if name.startswith(f".{path.name}.draftproof-"))


async def _sync_directory(client: asyncssh.SFTPClient, directory: PurePosixPath) -> str:
    """Put the name itself on the medium; an error leaves the file published, its name perhaps not durable."""
    try:
        async with client.open(str(directory), "rb", encoding=None) as opened:
            await opened.fsync()
    except asyncssh.SFTPError as error:
        return f"{error.__class__.__name__}: {error}"
    return "ok"
