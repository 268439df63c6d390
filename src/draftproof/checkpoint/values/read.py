"""The values of one small tensor, read without numpy: maps of ids, norms."""

import os
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from draftproof.checkpoint.files.members import follow, open_member
from draftproof.checkpoint.files.shard import TensorEntry
from draftproof.checkpoint.ledger import Checkpoint
from draftproof.config.source import Unknown
from draftproof.errors import CouldNotLook

__all__ = ["MAX_VALUES_BYTES", "read_values", "unpack"]

MAX_VALUES_BYTES = 16 * 1024 * 1024
"""Two million ids: larger vocabularies than any."""

# A dtype the struct module knows, by its letter; BF16 is widened to F32 first.
_LETTERS: Mapping[str, str] = MappingProxyType(
    {
        "BOOL": "B",
        "U8": "B",
        "I8": "b",
        "I16": "h",
        "U16": "H",
        "I32": "i",
        "U32": "I",
        "I64": "q",
        "U64": "Q",
        "F16": "e",
        "F32": "f",
        "F64": "d",
    }
)


def read_values(checkpoint: Checkpoint, tensor: TensorEntry) -> Sequence[float] | Unknown:
    """Every value of ``tensor`` in order, integers as int, BOOL as 0 and 1."""
    size = tensor.end - tensor.begin
    if size > MAX_VALUES_BYTES:
        return Unknown(f"{tensor.name}: {size} bytes, more than are read for values")
    if tensor.dtype not in _LETTERS and tensor.dtype != "BF16":
        return Unknown(f"{tensor.name}: values of dtype {tensor.dtype} are not read")
    try:
        descriptor = open_member(follow(checkpoint.root, tensor.shard))
    except CouldNotLook as error:
        return Unknown(f"{tensor.shard}: {error.found}")
    try:
        data = os.pread(descriptor, size, tensor.begin)
    finally:
        os.close(descriptor)
    if len(data) < size:
        return Unknown(f"{tensor.name}: {size - len(data)} of its {size} bytes are not in {tensor.shard}")
    return unpack(data, tensor.dtype)


def unpack(data: bytes, dtype: str) -> Sequence[float]:
    """Little-endian numbers of a dtype; bytes after the last whole one are left out.

    Raises:
        KeyError: a dtype whose values are not read (sub-byte, 8-bit floats, complex).
    """
    if dtype == "BF16":  # the upper half of a float32. Source: bfloat16 definition
        wide = bytearray(len(data) // 2 * 4)
        wide[2::4] = data[0 : len(wide) // 2 : 2]
        wide[3::4] = data[1 : len(wide) // 2 : 2]
        data, dtype = bytes(wide), "F32"
    letter = _LETTERS[dtype]
    width = struct.calcsize(f"<{letter}")
    count = len(data) // width
    return struct.unpack(f"<{count}{letter}", data[: count * width])
