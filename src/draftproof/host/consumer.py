"""A file through the eyes of a running process: its mount namespace, its start, what it has mapped.

Standard library only; part of the programs that run on a host (host.program).
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH115, PTH123
from __future__ import annotations

import os
import re

from draftproof.host.mappings import inode_mapped_by, mapped_by, resolved, shards_seen
from draftproof.host.processes import Untold, family_of, listener_on, started_ns
from draftproof.host.seeing import see

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from typing import Any

__all__ = ["see_consumer"]

DELETED = "//deleted"


def see_consumer(path: str, pid: int, port: int, seen: dict[str, Any]) -> dict[str, Any]:
    """What the process finds where the file is mounted for it, and whether it began before the file did.

    The process is named by its number, or by the port it listens on. The same path is tried first, then every
    place where its mount table has the file or a directory above it: a container rarely has a model under the
    host's path.
    """
    try:
        pid = pid or listener_on(port)
        began_ns = started_ns(pid)
        namespace = os.readlink(f"/proc/{pid}/ns/mnt")
        places = places_in(f"/proc/{pid}/mountinfo", seen) if seen["kind"] == "file" else []
        inside, view = view_of(pid, [path, *(place for place, _ in places)], seen)
        weights = weights_of(pid, inside, seen)
    except Untold as untold:
        return {"reason": str(untold)}
    except OSError as error:
        return {"reason": f"process {pid}: {error.strerror}"}
    return {
        "pid": pid,
        "mount_namespace": namespace,
        "path": inside,
        "real_path": resolved(pid, inside),
        "view": view,
        "started_ns": began_ns,
        "stale_mounts": [place for place, is_stale in places if is_stale],
        **weights,
    }


def weights_of(pid: int, inside: str, seen: dict[str, Any]) -> dict[str, Any]:
    """Who of the process's family has the file itself mapped, and the shards beside it as they have them."""
    mappings: list[dict[str, Any]] = []
    family, hidden, youngest_ns = family_of(pid), 0, 0
    for each in family:
        try:
            youngest_ns = max(youngest_ns, started_ns(each))
            mappings += mapped_by(each)
        except FileNotFoundError:
            continue  # it has ended meanwhile
        except OSError:
            hidden += 1
    folder = inside.rpartition("/")[0]
    trouble, shards = "", []
    try:
        shards = shards_seen(pid, folder, mappings)
    except OSError as error:
        trouble = f"{folder or '/'}: {error.strerror}"
    return {
        "mapped_by": inode_mapped_by(mappings, seen["identity"]) if seen["kind"] == "file" else [],
        "family": family,
        "num_hidden": hidden,
        "youngest_ns": youngest_ns,
        "shards": shards,
        "shards_trouble": trouble,
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
        view = see(f"/proc/{pid}/root{resolved(pid, path)}", 0)
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
