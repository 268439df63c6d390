"""The program that puts one file in place on the machine it runs on, and reads it before and after.

It is the same text here and on another host. It opens with the pre-image, waits for the order (what to write,
which old content it expects, until when), stages the new bytes beside the target, reads them back, and only
then swaps the names. Every step that fails before the swap leaves the target as it was.
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH114, PTH123
from __future__ import annotations

import binascii
import errno
import fcntl
import hashlib
import os
import stat
import sys
import time

from draftproof.host.beside import Staged
from draftproof.host.ground import Failed, Refused, Wire, file_system, identity, machine
from draftproof.host.looking import MOST_KEPT, OPEN_READ, is_same, look

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from typing import Any

__all__ = ["main"]

FS_IOC_GETFLAGS = 0x80086601
IMMUTABLE_OR_APPEND_ONLY = 0x10 | 0x20
FIRST_FRAME_S = 30.0
NEW_FILE_MODE = 0o666
HUB_REPOSITORIES = ("models--", "datasets--", "spaces--")
HUB_FOLDERS = ("blobs", "snapshots", "refs")
LONGEST_NAME = 150  # bytes; the temporary name adds 82, and file systems end at 255


def open_parent(root: str, path: str) -> tuple[int, str]:
    """A descriptor of the target's directory, reached without following one symbolic link, and its name."""
    parts, limit = path.split("/")[1:], [p for p in root.split("/") if p]
    if not path.startswith("/") or any(p in ("", ".", "..") for p in parts) or parts[: len(limit)] != limit:
        raise Refused("escapes-root", found=path, root=root)
    if len(parts) <= len(limit):
        raise Refused("not-regular", found="the root itself")
    descriptor = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for depth, part in enumerate(parts[:-1], 1):
        here = "/" + "/".join(parts[:depth])
        access = os.O_RDONLY if depth == len(parts) - 1 else os.O_PATH
        try:
            below = os.open(part, access | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
        except OSError as error:
            if os.path.islink(here):
                raise Refused("symlink", found=here, resolved=os.path.realpath(path)) from error
            raise Refused("parent-missing", found=f"{here}: {error.strerror}") from error
        os.close(descriptor)
        descriptor = below
    return descriptor, parts[-1]


def check_place(path: str, directory: int, name: str) -> None:
    """Refuse a place that others can change under us, or that nobody may write."""
    parts = path.split("/")
    for above, below in zip(parts, parts[1:]):  # noqa: B905, RUF007 - for Python 3.8 on the host
        if above.startswith(HUB_REPOSITORIES) and below in HUB_FOLDERS:
            raise Refused("hub-cache", found=path)
    status = os.fstat(directory)
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise Refused("parent-foreign-writable", found="mode %04o" % (status.st_mode & 0o7777))
    if status.st_uid not in (os.geteuid(), 0):
        raise Refused("parent-foreign-writable", found=f"owner uid {status.st_uid}")
    if os.fstatvfs(directory).f_flag & os.ST_RDONLY:
        raise Refused("read-only", found="the file system is mounted read-only")
    escaped = path.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            points = [line.split(" ")[4] for line in mounts]
    except OSError as error:
        raise Failed("read the mount table", error) from error
    if escaped in points:
        raise Refused("mount-point", found=path)
    if len(os.fsencode(name)) > LONGEST_NAME:
        raise Refused("name-too-long", found=len(os.fsencode(name)))


def check_target(directory: int, name: str, old: dict[str, Any]) -> None:
    """Refuse a file with other names, and one that says it must not be written."""
    if old["nlink"] == 0:
        raise Refused("conflict", found="replaced by another writer while it was looked at")
    if old["nlink"] != 1:
        raise Refused("many-names", found=old["nlink"])
    if not old["mode"] & 0o222:
        raise Refused("read-only", found="mode {:04o}: no write bit at all".format(old["mode"]))
    descriptor = os.open(name, OPEN_READ, dir_fd=directory)
    try:
        flags = bytearray(8)
        fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, flags)
        if int.from_bytes(flags[:4], sys.byteorder) & IMMUTABLE_OR_APPEND_ONLY:
            raise Refused("read-only", found="immutable or append-only attribute")
    except OSError as error:
        if error.errno not in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise Failed("read the attributes", error) from error
    finally:
        os.close(descriptor)


def lock(directory: int, until: float) -> None:
    """Hold the directory's lock: writers of this program exclude each other. Raises Refused at ``until``."""
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise Refused("busy", found="another verified write holds this directory") from error
            time.sleep(0.01)
        else:
            return


def carry_out(wire: Wire, ask: dict[str, Any]) -> None:
    """One write, from the request to the receipt."""
    path, root = ask["path"], ask["root"]
    wire.until = time.monotonic() + ask["patience_ms"] / 1000
    directory, name = open_parent(root, path)
    check_place(path, directory, name)
    lock(directory, wire.until)
    old = look(directory, name)
    if old is not None:
        check_target(directory, name, old)
    shown = {k: v for k, v in old.items() if k != "data"} if old else None
    keep = old is not None and old["length"] <= min(ask["keep_bytes"], MOST_KEPT)
    data = (
        binascii.b2a_base64(old["data"], newline=False).decode("ascii") if old is not None and keep else None
    )
    wire.say("preimage", old=shown, data=data, machine=machine(), file_system=file_system(directory))
    order = wire.document()
    body = wire.exactly(order["length"])
    wire.end()
    if hashlib.sha256(body).hexdigest() != order["sha256"]:
        raise Refused("body-differs", found=hashlib.sha256(body).hexdigest())
    if order["expected_old"] != (old["sha256"] if old else "absent"):
        raise Refused("conflict", found=old["sha256"] if old else "absent")
    put_in_place(wire, directory, name, old, (order, body))


def put_in_place(
    wire: Wire, directory: int, name: str, old: dict[str, Any] | None, job: tuple[dict[str, Any], bytes]
) -> None:
    """Stage, verify, publish and sync; what was done is said after each step."""
    order, body = job
    umask = os.umask(0o077)
    mode = old["mode"] if old else NEW_FILE_MODE & ~umask
    staged = Staged(directory, name, wire.nonce, order)
    removed, kept = staged.clean_stale(old)
    try:
        staged.write(body, old, mode)
        seen = staged.verify(old, mode)
        wire.say("staged", sha256=seen["sha256"], length=seen["length"])
        check_moment(wire, directory, name, old, order["deadline_ms"])
        how = staged.publish(name, old)
    except Refused as refused:
        refused.facts["kept"] = kept + staged.clean(old)
        raise
    except OSError as error:
        staged.clean(old)
        raise Failed(staged.step, error) from error
    kept += staged.clean(old)
    directory_sync = sync_directory(directory)
    now = identity(os.stat(name, dir_fd=directory, follow_symlinks=False))
    wire.say(
        "receipt",
        published=how,
        identity=now,
        file_sync="ok",
        directory_sync=directory_sync,
        removed=removed,
        kept=kept,
        limits=[],
    )


def check_moment(wire: Wire, directory: int, name: str, old: dict[str, Any] | None, deadline_ms: int) -> None:
    """The last look before the swap: the old file untouched, the sender still there, the time not up."""
    if not is_same(look(directory, name), old):
        raise Refused("conflict", found="changed while we wrote")
    if not wire.is_heard:
        raise Refused("unheard", found="the sender has gone")
    if time.monotonic_ns() // 1_000_000 > deadline_ms:
        raise Refused("late", found=time.monotonic_ns() // 1_000_000)


def sync_directory(directory: int) -> str:
    """Put the name itself on the medium; an error leaves the file published, its name perhaps not durable."""
    try:
        os.fsync(directory)
    except OSError as error:
        return str(error.strerror)
    return "ok"


def main() -> int:
    """Serve one request on standard input; every outcome is a frame."""
    wire = Wire(FIRST_FRAME_S)
    try:
        ask = wire.document()
        wire.nonce = ask["nonce"]
        carry_out(wire, ask)
    except Refused as refused:
        wire.say("refused", code=refused.code, facts=refused.facts)
    except Failed as failed:
        wire.say("failed", step=failed.step, error=failed.error, errno=failed.errno)
    except OSError as error:
        wire.say("failed", step="look at the target", error=str(error.strerror), errno=error.errno)
    return 0


if __name__ == "__main__":
    sys.exit(main())
