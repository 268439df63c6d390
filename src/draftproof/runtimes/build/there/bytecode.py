"""Compiled files beside their sources: which ones Python runs although the source says something else."""

from __future__ import annotations

import importlib.util
import marshal
import os
import struct
import time
from pathlib import Path
from typing import Any

__all__ = ["compiled_files"]

Json = dict[str, Any]
HEADER = 16
MAX_BYTES = 64 << 20


def compiled_files(root: Path, compare: list[str], until: float) -> Json:
    """Every ``.pyc`` of the package by its header; those of ``compare`` by the code they hold as well.

    ``current``: Python runs it. ``outdated``: Python sees that it is old and compiles anew. ``foreign``: of
    another Python. ``stale``: Python runs it, and the source compiles to other code. ``sourceless``: a
    ``.pyc`` beside the sources that is imported without one.
    """
    answer: Json = {"current": 0, "outdated": [], "foreign": 0, "stale": [], "sourceless": [], "unread": []}
    answer["compared"] = 0
    wanted = {os.path.realpath(path) for path in compare}
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = Path(here, name)
            if name.endswith(".pyc") and not path.with_suffix(".py").exists():
                answer["sourceless"].append(os.path.relpath(path, root))
            if name.endswith(".py"):
                look_at(
                    path,
                    root,
                    answer,
                    is_compared=os.path.realpath(path) in wanted and time.monotonic() < until,
                )
    return answer


def look_at(source: Path, root: Path, answer: Json, *, is_compared: bool) -> None:
    """One source: what its compiled file is worth."""
    cached = Path(importlib.util.cache_from_source(str(source)))
    name = os.path.relpath(source, root)
    try:
        with cached.open("rb") as stream:
            head = stream.read(HEADER)
        worth = worth_of(head, source)
        if worth == "current" and is_compared:
            answer["compared"] += 1
            worth = "current" if has_code_of(cached, source) else "stale"
    except FileNotFoundError:
        return
    except (OSError, ValueError, SyntaxError, EOFError, TypeError) as error:
        answer["unread"].append({"path": name, "why": f"{type(error).__name__}: {error}"})
        return
    if worth in ("current", "foreign"):
        answer[worth] += 1
    else:
        answer[worth].append(name)


def worth_of(head: bytes, source: Path) -> str:
    """What Python thinks of a compiled file with this header. Source: PEP 552."""
    if len(head) < HEADER or head[:4] != importlib.util.MAGIC_NUMBER:
        return "foreign"
    (flags,) = struct.unpack("<I", head[4:8])
    if flags & 1:
        is_same = head[8:16] == importlib.util.source_hash(source.read_bytes())
        if is_same:
            return "current"
        return "outdated" if flags & 2 else "stale"  # an unchecked one is run whatever the source says
    status = source.stat()
    when, size = struct.unpack("<II", head[8:16])
    is_same = (when, size) == (int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
    return "current" if is_same else "outdated"


def has_code_of(cached: Path, source: Path) -> bool:
    """Whether the compiled file holds the code that the source compiles to now."""
    data = cached.read_bytes() if cached.stat().st_size <= MAX_BYTES else b""
    held = marshal.loads(data[HEADER:])  # noqa: S302 - what import itself would do with this file, short of running it
    return bool(held == compile(source.read_bytes(), str(source), "exec", dont_inherit=True))
