"""The package's native libraries, and which of the wanted names stand in them; none is loaded."""

from __future__ import annotations

import mmap
import os
import stat
import time
from pathlib import Path
from typing import Any

__all__ = ["libraries"]

Json = dict[str, Any]
HEAD = 1 << 16
NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
"""An ELF note of four letters, twenty bytes, type 3: the build id."""


def libraries(root: Path, names: list[str], until: float) -> list[Json]:
    """Each ``.so`` below ``root``: size, build id, and which ``names`` its bytes hold (None: no time)."""
    found = []
    for here, folders, files in os.walk(root):
        folders.sort()
        names_here = [name for name in sorted(files) if name.endswith(".so") or ".so." in name]
        found += [look_at(Path(here, name), root, names, until) for name in names_here]
    return found


def look_at(file: Path, root: Path, names: list[str], until: float) -> Json:
    """One library."""
    answer: Json = {"path": os.path.relpath(file, root), "size": 0, "build_id": "", "holds": None, "why": ""}
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return dict(answer, why=str(error))
    with os.fdopen(descriptor, "rb"):
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return dict(answer, why="empty, or not a regular file")
        answer["size"] = status.st_size
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
            if data[:4] != b"\x7fELF":
                return dict(answer, why="not an ELF file")
            place = data[:HEAD].find(NOTE)
            answer["build_id"] = data[place + len(NOTE) : place + len(NOTE) + 20].hex() if place >= 0 else ""
            if time.monotonic() < until:
                answer["holds"] = [name for name in names if data.find(name.encode()) >= 0]
    return answer
