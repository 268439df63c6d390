"""Files that carry a shard's name and are something else: a git-lfs pointer, a page, text, nothing."""

import re
from pathlib import Path

from draftproof.checkpoint.files.shard import ArtefactDefect

__all__ = ["name_impostor"]

_EXPECTED = "a safetensors file"
_LFS = b"version https://git-lfs"
_OID = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)
_SIZE = re.compile(rb"^size (\d+)$", re.MULTILINE)
_PAGE = (b"<!doctype", b"<html", b"<?xml", b"<head", b"<body")
_LENGTH_BYTES = 8
"""Width of the header's length, with which every safetensors file begins."""

_TEXT = re.compile(rb"[\t\n\r\x20-\x7e]+")


def name_impostor(start: bytes, size: int, name: str, where: Path) -> ArtefactDefect | None:
    """The defect of a file whose first bytes are no safetensors file; None if they may be."""
    if size == 0:
        return ArtefactDefect("shard-empty", name, _EXPECTED, "0 bytes", str(where))
    if len(start) >= _LENGTH_BYTES and not any(start):
        found = f"{size} bytes, the first {len(start)} of them zero"
        return ArtefactDefect("shard-zeros", name, _EXPECTED, found, str(where))
    if start.startswith(_LFS):
        return ArtefactDefect("shard-lfs-pointer", name, _EXPECTED, _pointer(start), str(where))
    if start.lstrip().lower().startswith(_PAGE):
        found = f"a web page of {size} bytes: {_first_line(start)}"
        return ArtefactDefect("shard-html", name, _EXPECTED, found, str(where))
    if len(start) >= _LENGTH_BYTES and start[7:8] != b"\0" and _TEXT.fullmatch(start):
        found = f"{size} bytes of text: {_first_line(start)}"
        return ArtefactDefect("shard-text", name, _EXPECTED, found, str(where))
    return None


def _pointer(start: bytes) -> str:
    """The pointer in words: what the real file is."""
    oid, size = _OID.search(start), _SIZE.search(start)
    digest = oid.group(1).decode() if oid else "not stated"
    length = f"{size.group(1).decode()} bytes" if size else "of unstated size"
    return f"a git-lfs pointer; the real file is {length}, sha256 {digest}"


def _first_line(start: bytes) -> str:
    return repr(start.strip().split(b"\n", 1)[0][:80].decode("utf-8", "replace"))
