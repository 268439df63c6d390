"""A file through the eyes of a running process: its mount namespace, its start, its mappings.

Standard library only; part of the programs that run on a host (host.program).
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH115, PTH123
from __future__ import annotations

import os
import re
import time

from draftproof.host.seeing import see

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from typing import Any

__all__ = ["see_consumer"]

DELETED = "//deleted"


def see_consumer(path: str, pid: int, seen: dict[str, Any]) -> dict[str, Any]:
    """What the process finds where the file is mounted for it, and whether it began before the file did.

    The same path is tried first, then every place where its mount table has the file or a directory above it:
    a container rarely has a model under the host's path.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            ticks = int(stream.read().rsplit(")", 1)[1].split()[19])
        namespace = os.readlink(f"/proc/{pid}/ns/mnt")
        places = places_in(f"/proc/{pid}/mountinfo", seen) if seen["kind"] == "file" else []
        inside, view = view_of(pid, [path, *(place for place, _ in places)], seen)
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as stream:
            mapped = sorted({" ".join(line.split()[3:5]) for line in stream} - {"00:00 0"})
    except OSError as error:
        return {"reason": f"process {pid}: {error.strerror}"}
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return {
        "pid": pid,
        "mount_namespace": namespace,
        "path": inside,
        "view": view,
        "started_ns": int((time.time() - age_s) * 1e9),
        "stale_mounts": [place for place, is_stale in places if is_stale],
        "mapped": mapped,
    }


def places_in(mount_table: str, seen: dict[str, Any]) -> list[tuple[str, bool]]:
    """Where a mount table has the file, and whether that mount pins an inode that lost its name."""
    system = seen["file_system"]
    below = seen["real_path"][len(system["mount_point"].rstrip("/")) :]
    inside = system["root"].rstrip("/") + below  # the file's path from the root of its file system
    folder, _, name = inside.rpartition("/")
    swapped_out = f"{folder}/.{name}.draftproof-"  # the name an inode had last, when our write took its place
    found = []
    with open(mount_table, encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            words = [re.sub(r"\\([0-7]{3})", octal, word) for word in line.split(" ")]
            is_stale = words[3].endswith(DELETED)
            root = words[3][: -len(DELETED)] if is_stale else words[3].rstrip("/")
            if words[2] != system["device"]:
                continue
            if is_stale and root.startswith(swapped_out):
                found.append((words[4], True))
            elif f"{inside}/".startswith(f"{root}/"):
                found.append((words[4].rstrip("/") + inside[len(root) :], is_stale))
    return found


def view_of(pid: int, paths: list[str], seen: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The first path at which the process has the same inode, else the first where it has any file."""
    views = []
    for path in dict.fromkeys(paths):
        view = see(f"/proc/{pid}/root{path}", 0)
        if view["kind"] == seen["kind"] == "file":
            here, there = seen["identity"], view["identity"]
            if (here["dev"], here["ino"]) == (there["dev"], there["ino"]):
                return path, view
        views.append((path, view))
    with_file = [each for each in views if each[1]["kind"] == "file"]
    return (with_file or views)[0]


def octal(match: re.Match[str]) -> str:
    """A blank, tab, line feed or backslash as the mount table writes it."""
    return chr(int(match.group(1), 8))
