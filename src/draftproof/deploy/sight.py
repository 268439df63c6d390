"""A file as it was seen: its digest, and its bytes where they are few enough to be looked into."""

import hashlib
import os
import stat
from dataclasses import dataclass

from draftproof.deploy.hosts import KEEP_BYTES, Seen, told_kind
from draftproof.deploy.writing.receipt import ABSENT
from draftproof.errors import CouldNotLook

__all__ = ["Sight", "sight_in", "sight_of"]


@dataclass(frozen=True, slots=True)
class Sight:
    """What is under one path."""

    digest: str
    """sha256 in hex; ``absent`` where there is nothing; empty where there is no regular file."""

    length: int
    data: bytes | None
    """The content; None where there is none, or more than KEEP_BYTES of it."""

    kind: str = ""
    """What is there in place of a regular file, in words."""

    @property
    def is_whole(self) -> bool:
        """Whether the content, or that there is none, is at hand."""
        return self.data is not None or self.digest == ABSENT

    @property
    def why_not_whole(self) -> str:
        """Why it cannot be looked into."""
        return self.kind or f"{self.length} bytes, too many to be looked into"

    @property
    def told(self) -> str:
        """As a finding tells it."""
        if self.digest == ABSENT:
            return ABSENT
        return self.kind or f"sha256 {self.digest}, {self.length} bytes"


def sight_of(path: str) -> Sight:
    """The file under ``path`` on this machine, links followed. Raises CouldNotLook."""
    try:
        status = os.stat(path)  # noqa: PTH116 - Path.stat hides that links are followed
        if not stat.S_ISREG(status.st_mode):
            return _other(stat.filemode(status.st_mode)[0])
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if os.fstat(descriptor).st_size > KEEP_BYTES:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
                return Sight(digest, stream.tell(), None)
            data = stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return Sight(ABSENT, 0, None)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise CouldNotLook(
            path,
            expected="a file that can be read",
            found=str(error),
            where=path,
            means="what is there could not be held against the ledger",
            next_step=f"ls -l {path}",
        ) from error
    return Sight(hashlib.sha256(data).hexdigest(), len(data), data)


def sight_in(seen: Seen) -> Sight:
    """What the reading program of a machine found."""
    if seen.kind == "other":
        return _other(seen.file["found"])
    if seen.sha256 is None:
        return Sight(ABSENT, 0, None)
    return Sight(seen.sha256, seen.file["length"], seen.data)


def _other(letter: str) -> Sight:
    """``letter``: as ls writes what it is."""
    return Sight("", 0, None, f"no regular file but {told_kind(letter)}")
