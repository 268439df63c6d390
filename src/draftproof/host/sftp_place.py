"""One name on an SFTP server looked at: what is there, on which machine and mount, as far as served.

Source: draft-ietf-secsh-filexfer-02 (version 3) for attributes and errors; OpenSSH's PROTOCOL for extensions.
"""

import base64
import hashlib
import os
import stat
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import asyncssh

__all__ = ["Refusal", "Session", "Trouble", "content", "identity", "see", "sha256_hex"]

_UNKNOWN = "unknown: not shown over SFTP"
_LARGEST_PROC_FILE = 1 << 20


class Refusal(Exception):
    """The request must not be carried out; nothing was changed."""

    def __init__(self, code: str, **facts: Any) -> None:
        """Name the refusal and what was seen."""
        super().__init__(code)
        self.code, self.facts = code, facts


class Trouble(Exception):
    """The server could not do a step."""

    def __init__(self, step: str, error: Exception) -> None:
        """Keep the step's name and the server's answer, which is often just Failure."""
        super().__init__(step)
        self.step, self.error = step, f"{error.__class__.__name__}: {error}"


@dataclass(frozen=True, slots=True)
class Session:
    """One connection and what the server's machine says of itself, where its ``/proc`` is served."""

    client: asyncssh.SFTPClient
    machine: dict[str, Any]
    mounts: tuple[tuple[str, ...], ...]
    """Words of each line of the mount table of the server's process; empty where it is not served."""

    @classmethod
    async def of(cls, client: asyncssh.SFTPClient, host_key: str) -> "Session":
        """Ask once; the host key stands for the machine where nothing else does."""
        boot = await _small(client, "/proc/sys/kernel/random/boot_id")
        identifier = await _small(client, "/etc/machine-id")
        name = await _small(client, "/proc/sys/kernel/hostname")
        table = await _small(client, "/proc/self/mountinfo")
        machine = {
            "boot_id": boot or _UNKNOWN,
            "machine": sha256_hex(identifier.encode())[:16] if identifier else host_key,
            "hostname": name or _UNKNOWN,
            "uid": None,
            "mount_namespace": _UNKNOWN,
            "monotonic_ms": time.monotonic_ns() // 1_000_000,
            "python": None,
            "preload": "",
        }
        return cls(client, machine, tuple(tuple(line.split(" ")) for line in table.splitlines()))

    def file_system(self, path: str) -> dict[str, str]:
        """The mount with the longest mount point above ``path``, the latest of equals."""
        names = ("type", "mount_point", "root", "device", "options", "super_options")
        best = ("unknown", "", "", "", "", "")
        for words in self.mounts:
            point = words[4].rstrip("/") + "/"
            if path.startswith(point.replace("\\040", " ")) and len(point) > len(best[1].rstrip("/")):
                dash = words.index("-")
                best = (words[dash + 1], words[4], words[3], words[2], words[5], words[dash + 3])
        return dict(zip(names, best, strict=True))


async def content(client: asyncssh.SFTPClient, path: str) -> bytes:
    """The whole file. Raises asyncssh.SFTPError."""
    async with client.open(path, "rb", encoding=None) as stream:
        data: bytes = await stream.read()
        return data


def identity(attributes: asyncssh.SFTPAttrs) -> dict[str, Any]:
    """As host.ground gives it; what version 3 of the protocol does not carry is None."""
    mode = attributes.permissions
    return {
        "dev": None,
        "ino": None,
        "ctime_ns": None,
        "mtime_ns": None if attributes.mtime is None else attributes.mtime * 1_000_000_000,
        "size": attributes.size,
        "mode": None if mode is None else stat.S_IMODE(mode),
        "uid": attributes.uid,
        "gid": attributes.gid,
        "nlink": None,
    }


async def see(session: Session, path: str, keep_bytes: int) -> dict[str, Any]:
    """What the reading program says, but for its last looks."""
    seen = await _seen(session, path, keep_bytes)
    real = await _real(session.client, path)
    return {"seen": {**seen, "real_path": real}, "machine": session.machine}


async def _seen(session: Session, path: str, keep_bytes: int) -> dict[str, Any]:
    client = session.client
    try:
        attributes = await client.stat(path)
        mode = attributes.permissions or 0
        if not stat.S_ISREG(mode):
            return {"kind": "other", "found": stat.filemode(mode)[0]}
        data = await content(client, path)
        attributes = await client.stat(path)
    except asyncssh.SFTPNoSuchFile:
        return {"kind": "absent", "is_dangling": await client.islink(path)}
    except asyncssh.SFTPError as error:
        return {"kind": "unreadable", "error": str(error)}
    return {
        "kind": "file",
        "sha256": sha256_hex(data),
        "length": len(data),
        "data": base64.b64encode(data).decode("ascii") if len(data) <= keep_bytes else None,
        "identity": identity(attributes),
        "xattrs": None,
        "file_system": session.file_system(path),
    }


async def _real(client: asyncssh.SFTPClient, path: str) -> str:
    try:
        return _text(await client.realpath(path))
    except asyncssh.SFTPError:
        parent = PurePosixPath(path)
        return f"{parent.parent}/{parent.name}"


def _text(path: object) -> str:
    return path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else os.fspath(str(path))


async def _small(client: asyncssh.SFTPClient, path: str) -> str:
    """A small file of the system's, ``""`` where it is not served."""
    try:
        async with client.open(path, "rb", encoding=None) as stream:
            data: bytes = await stream.read(_LARGEST_PROC_FILE, 0)
    except asyncssh.SFTPError:
        return ""
    return data.decode("utf-8", "surrogateescape").strip()


def sha256_hex(data: bytes) -> str:
    """The digest in hex."""
    return hashlib.sha256(data).hexdigest()
