"""The files of a checkpoint directory, followed link by link and never out of it.

A link may lead to another place of the same directory, or along a Hugging Face cache (a snapshot's link to
its blob, a blob's link to the shared store). Any other link is named and not followed.
"""

import os
import re
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from draftproof.errors import CouldNotLook

__all__ = [
    "MAX_HOPS",
    "Member",
    "MemberKind",
    "follow",
    "is_in_hub_cache",
    "open_member",
    "read_members",
    "read_root",
]

MAX_HOPS = 8
"""Links followed for one name. A hub cache has one, with a shared blob store two."""

# Source: huggingface_hub file_download (blobs, snapshots) and utils/_shared_blobs (blobs/<2hex>/<hash>).
_IN_HUB_CACHE = re.compile(
    r"/(?:(?:models|datasets|spaces)--[^/]+/(?:blobs/[^/]+|snapshots/[^/]+/.+)"
    r"|blobs/[0-9a-f]{2}/[0-9a-f]{8,})$"
)


class MemberKind(StrEnum):
    """What stands behind a name of the directory."""

    FILE = "file"
    DIRECTORY = "directory"
    DANGLING = "dangling"
    OUTSIDE = "outside"
    SPECIAL = "special"
    """A FIFO, a socket or a device: never opened."""

    UNREACHABLE = "unreachable"
    """A directory on the way may not be entered, or a name is too long: what is there is unknown."""


@dataclass(frozen=True, slots=True)
class Member:
    """One name of a directory, followed to what it is."""

    name: str
    kind: MemberKind
    path: Path
    """The last place reached: the file itself, or the first place that is missing or outside."""

    links: tuple[Path, ...]
    """Every link passed on the way, the name itself first; empty for a plain file."""


def read_root(path: Path) -> Path:
    """The real directory that ``path`` means; links in a path the user typed are followed.

    Raises:
        CouldNotLook: there is no such directory.
    """
    real = Path(os.path.realpath(path))
    # os.path: unlike Path.is_dir it answers False where it may not look, or where a name is too long.
    if os.path.isdir(real):  # noqa: PTH112
        return real
    raise CouldNotLook(
        str(path),
        expected="a directory",
        found="nothing of that name" if not os.path.lexists(real) else "something that is not a directory",
        where=str(path),
        means="no weights were looked at",
        next_step=f"ls -ld {path}",
    )


def read_members(root: Path) -> tuple[Member, ...]:
    """Every name directly inside ``root``, sorted, each followed by name.

    Raises:
        CouldNotLook: the directory cannot be listed.
    """
    try:
        names = sorted(path.name for path in root.iterdir())
    except OSError as error:
        raise CouldNotLook(
            str(root),
            expected="a directory that can be listed",
            found=error.strerror or "an error without text",
            where=str(root),
            means="no weights were looked at",
            next_step=f"ls -ld {root}",
        ) from error
    return tuple(follow(root, name) for name in names)


def follow(root: Path, name: str) -> Member:
    """What ``name`` directly inside the real directory ``root`` leads to."""
    path = root / name
    links: list[Path] = []
    while True:
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return Member(name, MemberKind.DANGLING, path, tuple(links))
        except OSError:
            return Member(name, MemberKind.UNREACHABLE, path, tuple(links))
        if not stat.S_ISLNK(mode):
            return Member(name, _kind(mode), path, tuple(links))
        links.append(path)
        if len(links) > MAX_HOPS:
            return Member(name, MemberKind.DANGLING, path, tuple(links))
        path = _hop(path)
        if not _may_enter(root, path):
            return Member(name, MemberKind.OUTSIDE, path, tuple(links))


def open_member(member: Member) -> int:
    """A read-only descriptor of a regular file; the caller closes it.

    The last place is opened without following links and without waiting, and looked at again once open:
    a name swapped for a link or a FIFO in between is refused.

    Raises:
        CouldNotLook: it cannot be opened, or it is no regular file.
    """
    try:
        descriptor = os.open(member.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _not_opened(member, error.strerror or "an error without text") from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise _not_opened(member, "not a regular file")


def is_in_hub_cache(path: Path) -> bool:
    """Whether a place has the form of a Hugging Face cache: a blob, a snapshot's file, the shared store."""
    return _IN_HUB_CACHE.search(str(path)) is not None


def _hop(link: Path) -> Path:
    target = link.parent / link.readlink()
    return Path(os.path.realpath(target.parent)) / target.name


def _may_enter(root: Path, path: Path) -> bool:
    return path.is_relative_to(root) or is_in_hub_cache(path)


def _kind(mode: int) -> MemberKind:
    if stat.S_ISREG(mode):
        return MemberKind.FILE
    return MemberKind.DIRECTORY if stat.S_ISDIR(mode) else MemberKind.SPECIAL


def _not_opened(member: Member, found: str) -> CouldNotLook:
    return CouldNotLook(
        member.name,
        expected="a regular file that can be read",
        found=found,
        where=str(member.path),
        means="what it holds is unknown",
        next_step=f"ls -l {member.path}",
    )
