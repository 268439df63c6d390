"""The source tree that a package was installed from in place: its commit, as git keeps it in files."""

from __future__ import annotations

import re
from pathlib import Path

from draftproof.runtimes.build.there.records import read_limited

__all__ = ["checked_out"]

MAX_BYTES = 16 << 20
HEX = re.compile(r"[0-9a-f]{40}")
LEVELS = 3


def checked_out(root: Path) -> str:
    """The commit of the work tree around ``root``; empty where there is none or git keeps it otherwise."""
    for folder in list(root.parents)[:LEVELS]:
        git = folder / ".git"
        if git.is_file():  # a work tree or submodule of its own
            git = folder / text(git).partition("gitdir:")[2].strip()
        if (git / "HEAD").is_file():
            return commit_of(git)
    return ""


def commit_of(git: Path) -> str:
    """HEAD, followed through a loose or packed reference."""
    head = text(git / "HEAD").strip()
    if HEX.fullmatch(head):
        return head
    name = head.partition("ref:")[2].strip()
    common = git / text(git / "commondir").strip() if (git / "commondir").is_file() else git
    for home in (git, common):
        loose = text(home / name).strip() if name and ".." not in name else ""
        if HEX.fullmatch(loose):
            return loose
    for line in text(common / "packed-refs").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name and HEX.fullmatch(commit):
            return commit
    return ""


def text(file: Path) -> str:
    """A small file of git's; empty where it cannot be read."""
    try:
        return read_limited(file, MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
