"""Which file of weights a process has in memory, and which one now bears that file's name.

Standard library only; part of the programs that run on a host (host.program).
Source: proc(5): ``maps`` (the name an inode had last, `` (deleted)`` once it has none) and ``map_files``.
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH115, PTH116, PTH123, PTH208
from __future__ import annotations

import errno
import os

from draftproof.host.ground import identity

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from typing import Any

__all__ = ["inode_mapped_by", "mapped_by", "resolved", "shards_seen"]

SHARD = ".safetensors"
GONE = " (deleted)"
MOST_SHARDS = 4096
MOST_LINKS = 40


def resolved(pid: int, path: str) -> str:
    """``path`` with every link followed as the process follows it: absolute ones begin at its own root."""
    root, parts, links = f"/proc/{pid}/root", path.split("/")[::-1], 0
    done: list[str] = []
    while parts:
        part = parts.pop()
        if part in ("", "."):
            continue
        if part == "..":
            done = done[:-1]
            continue
        try:
            target = os.readlink("/".join([root, *done, part]))
        except OSError:
            done = [*done, part]
            continue
        links += 1
        if links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        done = [] if target.startswith("/") else done
        parts += target.split("/")[::-1]
    return "/" + "/".join(done)


def mapped_by(pid: int) -> list[dict[str, Any]]:
    """Every file that the process has mapped, once each. Raises OSError where that is not shown."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            words = line.rstrip("\n").split(None, 5)
            if len(words) == 6 and words[4] != "0" and tuple(words[3:]) not in found:  # noqa: PLR2004
                found[tuple(words[3:])] = one_mapping(pid, words)
    return list(found.values())


def one_mapping(pid: int, words: list[str]) -> dict[str, Any]:
    """A line of ``maps``; its own device number is another than stat's on btrfs, and so is not used."""
    try:
        dev: int | None = os.stat(f"/proc/{pid}/map_files/{words[0]}").st_dev
    except OSError:
        dev = None  # for the privileged only
    is_gone = words[5].endswith(GONE)
    path = words[5][: -len(GONE)] if is_gone else words[5]
    return {"pid": pid, "dev": dev, "ino": int(words[4]), "path": path, "is_gone": is_gone}


def is_inode(mapping: dict[str, Any], now: dict[str, int] | None) -> bool:
    """Whether what is mapped is the file with this identity."""
    return (
        now is not None
        and not mapping["is_gone"]
        and mapping["ino"] == now["ino"]
        and mapping["dev"] in (None, now["dev"])
    )


def inode_mapped_by(mappings: list[dict[str, Any]], now: dict[str, int]) -> list[int]:
    """The processes that have the file with this identity mapped."""
    return sorted({mapping["pid"] for mapping in mappings if is_inode(mapping, now)})


def shards_seen(pid: int, folder: str, mappings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each shard of a directory as the process sees it: the file there now, and what is mapped in its name.

    A mapping belongs to a shard by its inode or by its path: the shard's own, that of the blob it links to,
    or the name that our write gave the old file as it took its place.
    """
    root = f"/proc/{pid}/root"
    prefix = os.readlink(root).rstrip("/")  # of a process behind chroot; maps are written from our own root
    real = resolved(pid, folder)
    shards: dict[str, dict[str, Any]] = {}
    paths: dict[str, str] = {}
    for name in sorted(each for each in os.listdir(root + real) if each.endswith(SHARD))[:MOST_SHARDS]:
        path = resolved(pid, f"{real}/{name}")
        try:
            now: dict[str, int] | None = identity(os.stat(root + path))
        except FileNotFoundError:
            now = None
        shards[name] = {"name": name, "path": path, "now": now, "mapped": []}
        paths.update({path: name, prefix + path: name})
    for mapping in mappings:
        name = name_in(mapping, {real, prefix + real}, paths, shards)
        if name:
            empty: dict[str, Any] = {"name": name, "path": f"{real}/{name}", "now": None, "mapped": []}
            shard = shards.setdefault(name, empty)
            shard["mapped"].append({**mapping, "is_now": is_inode(mapping, shard["now"])})
    return list(shards.values())


def name_in(
    mapping: dict[str, Any], folders: set[str], paths: dict[str, str], shards: dict[str, dict[str, Any]]
) -> str:
    """The shard that a mapping belongs to, ``""`` for none of this directory."""
    for name, shard in shards.items():
        if is_inode(mapping, shard["now"]):
            return name
    if mapping["path"] in paths:
        return paths[mapping["path"]]
    folder, _, last = mapping["path"].rpartition("/")
    if folder not in folders:
        return ""
    if last.startswith(".") and ".draftproof-" in last:
        last = last[1:].partition(".draftproof-")[0]
    return last if last.endswith(SHARD) else ""
