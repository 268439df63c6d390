"""Small real safetensors files, written by hand so that each fault can be put in at its byte."""

import json
import math
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = [
    "Tensors",
    "filled",
    "header_of",
    "shard_bytes",
    "tensors_of",
    "write_index",
    "write_shard",
    "write_sparse",
]

Tensors = Mapping[str, tuple[str, tuple[int, ...], bytes]]
"""Name -> (dtype, shape, data)."""

WIDTH = {"BF16": 2, "F16": 2, "F32": 4, "I64": 8, "BOOL": 1, "I32": 4, "U8": 1, "F8_E4M3": 1}


def filled(dtype: str, shape: tuple[int, ...], seed: int = 1) -> bytes:
    """Data without a zero byte, a NaN or an infinity in any dtype: small positive numbers."""
    count = math.prod(shape)
    if dtype == "F32":
        return struct.pack(f"<{count}f", *(0.01 * (1 + (seed + i) % 50) for i in range(count)))
    if dtype == "BF16":
        return b"".join(bytes((1 + (seed + i) % 127, 0x3C)) for i in range(count))
    return bytes(1 + (seed + i) % 50 for i in range(count * WIDTH[dtype]))


def tensors_of(
    shapes: Mapping[str, tuple[int, ...]], dtype: str = "BF16"
) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Clean tensors of the given shapes."""
    return {
        name: (dtype, shape, filled(dtype, shape, seed)) for seed, (name, shape) in enumerate(shapes.items())
    }


def header_of(
    tensors: Iterable[tuple[str, str, tuple[int, ...], int]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """A header for (name, dtype, shape, size in bytes), padded with spaces to 8 as the library does."""
    entries: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    begin = 0
    for name, dtype, shape, size in tensors:
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, begin + size]}
        begin += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


def shard_bytes(tensors: Tensors, metadata: Mapping[str, str] | None = None) -> bytes:
    """A whole file."""
    header = header_of(((n, d, s, len(b)) for n, (d, s, b) in tensors.items()), metadata)
    return struct.pack("<Q", len(header)) + header + b"".join(b for _, _, b in tensors.values())


def write_shard(path: Path, tensors: Tensors, metadata: Mapping[str, str] | None = None) -> Path:
    """Write a whole file; parents are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(shard_bytes(tensors, metadata))
    return path


def write_index(root: Path, shards: Mapping[str, Tensors], total_size: int | None = None) -> Path:
    """Write ``model.safetensors.index.json`` for shards by file name; the true total unless one is given."""
    weight_map = {name: file for file, tensors in shards.items() for name in tensors}
    size = sum(len(b) for tensors in shards.values() for _, _, b in tensors.values())
    document = {
        "metadata": {"total_size": size if total_size is None else total_size},
        "weight_map": weight_map,
    }
    path = root / "model.safetensors.index.json"
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return path


def write_sparse(path: Path, tensors: Iterable[tuple[str, str, tuple[int, ...]]]) -> int:
    """Write a file of true size with a true header and no data on disk; the bytes its tensors own."""
    sized = [(n, d, s, math.prod(s) * WIDTH[d]) for n, d, s in tensors]
    header = header_of(sized, {"format": "pt"})
    data = sum(size for *_, size in sized)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + data)
    return data
