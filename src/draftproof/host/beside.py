"""The new content beside the target: staged, verified, and only then given the target's name.

Standard library only; part of the programs that run on a host (host.program).
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH208
from __future__ import annotations

import ctypes
import errno
import os

from draftproof.host.ground import Refused, xattrs_of
from draftproof.host.looking import look, look_quietly

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Staged"]

NOREPLACE, EXCHANGE = 1, 2
NO_SUCH_CALL = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
OPEN_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def rename(directory: int, source: str, target: str, flags: int) -> None:
    """renameat2: NOREPLACE never overwrites, EXCHANGE loses nothing. Raises OSError."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError as error:
        raise OSError(errno.ENOSYS, "this C library has no renameat2") from error
    if call(directory, os.fsencode(source), directory, os.fsencode(target), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Staged:
    """One write's temporary file; its names carry nonce and digests, so a killed write can be judged."""

    def __init__(self, directory: int, name: str, nonce: str, order: dict[str, Any]) -> None:
        """Choose the names; nothing is created yet."""
        self.directory = directory
        self.order = order
        self.prefix = f".{name}.draftproof-"
        tail = "{}-{}-{}".format(nonce, order["expected_old"][:16], order["sha256"][:16])
        self.part = self.prefix + tail + ".part"
        self.swap = self.prefix + tail + ".swap"
        self.inode = -1
        self.is_published = False
        self.step = "create the temporary file"

    def write(self, data: bytes, like: dict[str, Any] | None, mode: int) -> None:
        """Write, dress and sync the temporary file: one sync, on the writing descriptor, never repeated."""
        writer = os.open(self.part, OPEN_NEW, 0o600, dir_fd=self.directory)
        try:
            self.step = "write"
            rest = memoryview(data)
            while rest:
                count = os.write(writer, rest)
                if count == 0:
                    raise OSError(errno.EIO, "write took no bytes")
                rest = rest[count:]
            self.step = "copy owner, mode and attributes"
            if like is not None:
                if (like["uid"], like["gid"]) != (os.geteuid(), os.getegid()):
                    os.fchown(writer, like["uid"], like["gid"])
                self._copy_attributes(writer, like["xattrs"])
            os.fchmod(writer, mode)
            self.step = "fsync of the file"
            os.fsync(writer)
            self.inode = os.fstat(writer).st_ino
        finally:
            os.close(writer)

    def _copy_attributes(self, writer: int, wanted: dict[str, str]) -> None:
        """Give the new file the old one's; what it has already (a default label or list) is not set again."""
        have = xattrs_of(writer)
        for key in have:
            if key not in wanted:
                os.removexattr(writer, key)
        for key, value in wanted.items():
            if key not in have or have[key] != value:
                os.setxattr(writer, key, bytes.fromhex(value))

    def verify(self, like: dict[str, Any] | None, mode: int) -> dict[str, Any]:
        """Read the temporary file through another descriptor. Raises Refused where it is not the order."""
        self.step = "read the temporary file"
        seen = look(self.directory, self.part)
        if seen is None or seen["ino"] != self.inode:
            raise Refused("staged-differs", found="another file under the temporary name")
        if (seen["sha256"], seen["length"]) != (self.order["sha256"], self.order["length"]):
            raise Refused("staged-differs", found=seen["sha256"], length=seen["length"])
        wanted = {"mode": mode}
        if like is not None:
            wanted.update({key: like[key] for key in ("uid", "gid", "xattrs")})
        for key, value in wanted.items():
            if seen[key] != value:
                raise Refused("staged-differs", found=f"{key} {seen[key]!r}, not {value!r}")
        return seen

    def publish(self, name: str, old: dict[str, Any] | None) -> str:
        """Give the new content the target's name. Raises Refused, all undone, where another writer was."""
        self.step = "publish"
        how = self._create(name) if old is None else self._exchange(name, old)
        seen = os.stat(name, dir_fd=self.directory, follow_symlinks=False)
        if seen.st_ino != self.inode:
            raise OSError(errno.EIO, "the rename reported success and the name holds another file")
        self.is_published = True
        return how

    def _create(self, name: str) -> str:
        """Take a name that must be free."""
        try:
            try:
                rename(self.directory, self.part, name, NOREPLACE)
            except OSError as error:
                if error.errno not in NO_SUCH_CALL:
                    raise
                os.link(self.part, name, src_dir_fd=self.directory, dst_dir_fd=self.directory)
                os.unlink(self.part, dir_fd=self.directory)
                return "link to a free name"
        except FileExistsError as error:
            raise Refused("conflict", found="appeared while we wrote") from error
        return "renameat2 NOREPLACE"

    def _exchange(self, name: str, old: dict[str, Any]) -> str:
        """Swap the two names and look at what came out; anything but the pre-image is swapped back."""
        os.rename(self.part, self.swap, src_dir_fd=self.directory, dst_dir_fd=self.directory)
        try:
            rename(self.directory, self.swap, name, EXCHANGE)
        except OSError as error:
            if error.errno not in NO_SUCH_CALL:
                raise
            os.rename(self.swap, name, src_dir_fd=self.directory, dst_dir_fd=self.directory)
            return "rename under the lock"
        try:
            out = look_quietly(self.directory, self.swap)
        except OSError:
            rename(self.directory, self.swap, name, EXCHANGE)
            raise
        if out is not None and out["ino"] == self.inode:
            raise OSError(errno.EIO, "the exchange reported success and did nothing")
        if out is None or (out["ino"], out["sha256"]) != (old["ino"], old["sha256"]):
            rename(self.directory, self.swap, name, EXCHANGE)
            raise Refused("conflict", found=out["sha256"] if out else "not a regular file")
        return "renameat2 EXCHANGE"

    def clean(self, old: dict[str, Any] | None) -> list[str]:
        """Remove what this write left; what might be another writer's content stays and is named."""
        ours = old["sha256"] if self.is_published and old else self.order["sha256"]
        kept = []
        for name in (self.part, self.swap):
            try:
                seen = look_quietly(self.directory, name)
                if seen is not None and (name == self.part or seen["sha256"] == ours):
                    os.unlink(name, dir_fd=self.directory)
                elif seen is not None:
                    kept.append(name)
            except OSError:
                kept.append(name)
        return kept

    def clean_stale(self, current: dict[str, Any] | None) -> tuple[list[str], list[str]]:
        """Remove what killed writers left; keep and name a swapped-out file whose bytes are nowhere else."""
        removed, kept = [], []
        for name in sorted(os.listdir(self.directory)):
            if not name.startswith(self.prefix) or name in (self.part, self.swap):
                continue
            seen = look_quietly(self.directory, name)
            known = name.rsplit(".", 1)[0].split("-")[-2:]
            digest = seen["sha256"] if seen else ""
            is_known = digest[:16] in known or (current is not None and digest == current["sha256"])
            if name.endswith(".part") or (name.endswith(".swap") and is_known):
                os.unlink(name, dir_fd=self.directory)
                removed.append(name)
            else:
                kept.append(name)
        return removed, kept
