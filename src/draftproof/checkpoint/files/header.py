"""One safetensors header, read without loading a tensor and stricter than the format's own library.

A file is: u64 little-endian length n, n bytes of JSON, data. The data must be covered by the tensors without
hole or overlap, each as long as its shape and dtype say. Source: safetensors 0.8.0 ``tensor.rs``.
"""

import os
import struct
from dataclasses import dataclass, replace
from pathlib import Path

from draftproof.checkpoint.files.dtypes import BITS, num_bytes
from draftproof.checkpoint.files.header_json import Entry, Layout, parse_layout
from draftproof.checkpoint.files.impostors import name_impostor
from draftproof.checkpoint.files.shard import ArtefactDefect, Shard, TensorEntry

__all__ = ["MAX_HEADER_BYTES", "HeaderRead", "read_header"]

MAX_HEADER_BYTES = 100_000_000
"""Source: safetensors 0.8.0 ``MAX_HEADER_SIZE``."""

_PREFIX_BYTES = 8


@dataclass(frozen=True, slots=True)
class HeaderRead:
    """A header as far as it could be read."""

    shard: Shard | None
    """None where no tensor of the file can be known."""

    defects: tuple[ArtefactDefect, ...]


def read_header(descriptor: int, name: str, where: Path) -> HeaderRead:
    """Read the header of the open regular file ``descriptor``; ``name`` is its name in the checkpoint."""
    size = os.fstat(descriptor).st_size
    start = os.pread(descriptor, 1024, 0)
    if impostor := name_impostor(start, size, name, where):
        return HeaderRead(None, (impostor,))
    if size < _PREFIX_BYTES:
        return _refused("shard-truncated", name, where, "at least 8 bytes of length", f"{size} bytes")
    length = struct.unpack("<Q", start[:_PREFIX_BYTES])[0]
    if length > MAX_HEADER_BYTES:
        found = f"a header of {length} bytes (the file begins {start[:8].hex(' ')})"
        return _refused("header-too-large", name, where, f"at most {MAX_HEADER_BYTES} bytes", found)
    if _PREFIX_BYTES + length > size:
        found = f"{size} bytes, {_PREFIX_BYTES + length - size} short of the end of the header alone"
        expected = f"{_PREFIX_BYTES + length} bytes of header and then the data"
        return _refused("shard-truncated", name, where, expected, found)
    layout = parse_layout(_pread_all(descriptor, length, _PREFIX_BYTES), name, where)
    if layout.entries is None:
        return HeaderRead(None, layout.defects)
    return _judge(
        layout, layout.entries, Shard(name, size, _PREFIX_BYTES + length, layout.metadata, ()), where
    )


def _judge(layout: Layout, entries: tuple[Entry, ...], empty: Shard, where: Path) -> HeaderRead:
    """The shard ``empty`` filled with its entries, and what is wrong with them."""
    name, size, data = empty.name, empty.size_bytes, empty.header_bytes
    tensors = tuple(
        TensorEntry(e.name, e.dtype, e.shape, name, data + e.begin, data + e.end) for e in entries
    )
    defects = [*layout.defects, *_wrong_sizes(entries, where)]
    if not layout.has_duplicates:  # a name written twice hides one of its two places: no gap is certain
        defects += _gaps(tensors, where, data)
    defects += _wrong_length(tensors, name, where, size, data)
    if not tensors:
        text = "a header without a single tensor"
        defects.append(ArtefactDefect("shard-no-tensors", name, "at least one tensor", text, str(where)))
    return HeaderRead(replace(empty, tensors=tensors), tuple(defects))


def _wrong_sizes(entries: tuple[Entry, ...], where: Path) -> list[ArtefactDefect]:
    defects = []
    for entry in entries:
        place = f"{where} tensor {entry.name}"
        if entry.dtype not in BITS:
            expected = "one of " + ", ".join(BITS)
            defects.append(ArtefactDefect("dtype-unknown", entry.name, expected, entry.dtype, place))
            continue
        needed = num_bytes(entry.dtype, entry.shape)
        if needed != entry.end - entry.begin:
            expected = f"{_bytes(needed)} for {entry.dtype} {list(entry.shape)}"
            found = f"{entry.end - entry.begin} bytes [{entry.begin}, {entry.end})"
            defects.append(ArtefactDefect("tensor-size-mismatch", entry.name, expected, found, place))
    return defects


def _bytes(count: int | None) -> str:
    return "no whole 64-bit number of bytes" if count is None else f"{count} bytes"


def _gaps(tensors: tuple[TensorEntry, ...], where: Path, data: int) -> list[ArtefactDefect]:
    """Bytes of the data that no tensor, or more than one, owns."""
    defects = []
    reached, previous = data, "the header"
    for tensor in sorted(tensors, key=lambda t: (t.begin, t.end)):
        if tensor.begin != reached:
            kind = "tensor-hole" if tensor.begin > reached else "tensor-overlap"
            expected = f"begin {reached - data}, where {previous} ends"
            found = f"begin {tensor.begin - data}: {abs(tensor.begin - reached)} bytes "
            found += "that no tensor owns" if tensor.begin > reached else f"shared with {previous}"
            defects.append(
                ArtefactDefect(kind, tensor.name, expected, found, f"{where} tensor {tensor.name}")
            )
        if tensor.end >= reached:
            reached, previous = tensor.end, tensor.name
    return defects


def _wrong_length(
    tensors: tuple[TensorEntry, ...], name: str, where: Path, size: int, data: int
) -> list[ArtefactDefect]:
    end = max((t.end for t in tensors), default=data)
    expected = f"{end} bytes: {data} of header, {end - data} of data"
    if size < end:
        cut = [t.name for t in tensors if t.end > size]
        found = f"{size} bytes, {end - size} short; {len(cut)} of {len(tensors)} tensors cut, first {cut[0]}"
        return [ArtefactDefect("shard-truncated", name, expected, found, str(where))]
    if size > end:
        found = f"{size} bytes, {size - end} more than the tensors own"
        return [ArtefactDefect("shard-padded", name, expected, found, str(where))]
    return []


def _refused(defect: str, name: str, where: Path, expected: str, found: str) -> HeaderRead:
    return HeaderRead(None, (ArtefactDefect(defect, name, expected, found, str(where)),))


def _pread_all(descriptor: int, count: int, offset: int) -> bytes:
    """``count`` bytes from ``offset``; fewer only where the file has shrunk meanwhile."""
    parts = []
    while count and (part := os.pread(descriptor, count, offset)):
        parts.append(part)
        count, offset = count - len(part), offset + len(part)
    return b"".join(parts)
