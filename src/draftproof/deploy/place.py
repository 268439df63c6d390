"""Where a file is to be: a host and an absolute path there, written ``/path`` or ``host:/path``."""

import os
from dataclasses import dataclass
from pathlib import Path

from draftproof.errors import UsageError

__all__ = ["Place", "parse_place"]


@dataclass(frozen=True, slots=True)
class Place:
    """One file on one machine."""

    host: str
    """As the ssh client knows it; ``""`` for this machine."""

    path: str
    """Absolute."""

    def __str__(self) -> str:
        """As it is written on the command line."""
        return f"{self.host}:{self.path}" if self.host else self.path

    @property
    def is_json(self) -> bool:
        """Whether the file's name promises JSON."""
        return self.path.endswith(".json")


def parse_place(text: str, *, cwd: str) -> Place:
    """The place meant by ``text``; as with scp, a colon before the first slash ends a host's name.

    Raises:
        UsageError: nothing named, or a path on another host that is not absolute.
    """
    head, colon, tail = text.partition(":")
    if colon and head and "/" not in head:
        if not tail.startswith("/") or head.startswith("-"):
            raise UsageError(
                text,
                expected="host:/absolute/path",
                found=text,
                where="command line",
                means="a relative path would depend on the login directory there; nothing was done",
                next_step=f"{head}:/...",
            )
        return Place(head, os.path.normpath(tail) if ".." not in tail.split("/") else tail)
    if not text:
        raise UsageError(
            "target",
            expected="a path",
            found="nothing",
            where="command line",
            means="nothing was done",
            next_step="name the file",
        )
    if text.startswith("/"):
        return Place("", text if ".." in text.split("/") else os.path.normpath(text))
    # The working directory is physical, so leading ".." may be taken from it; one after a name may cross a
    # link, and stays for the program on the host to refuse.
    while text == ".." or text.startswith(("../", "./")):
        step, _, text = text.partition("/")
        cwd = str(Path(cwd).parent) if step == ".." else cwd
    whole = f"{cwd.rstrip('/')}/{text}"
    return Place("", whole if ".." in text.split("/") else os.path.normpath(whole))
