"""checkpoint.header: each fault of a safetensors file by its exact name, and whatever the library refuses."""

import json
import os
import random
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from safetensors import SafetensorError

from checkpoint.build import header_of
from draftproof.checkpoint.files.dtypes import BITS
from draftproof.checkpoint.files.header import read_header
from draftproof.checkpoint.files.shard import Shard

A = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
B = {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 4242\n"


def text_of(entries: object) -> bytes:
    """A header's JSON."""
    return json.dumps(entries).encode()


def file_of(header: bytes, data: bytes = b"\1" * 16) -> bytes:
    """A file of a header and data."""
    return struct.pack("<Q", len(header)) + header + data


def read(path: Path, content: bytes) -> tuple[Shard | None, list[str]]:
    """The shard and the ids of its defects."""
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = read_header(descriptor, path.name, path)
    finally:
        os.close(descriptor)
    return found.shard, [d.id for d in found.defects]


def library_refuses(path: Path) -> bool:
    """Whether safetensors itself refuses the file."""
    try:
        with safetensors.safe_open(path, "np"):
            return False
    except SafetensorError:
        return True


CLEAN = file_of(text_of({"a": A, "b": B}))
TWICE = b'{"a":' + text_of(A) + b',"a":' + text_of(A) + b',"b":' + text_of(B) + b"}"

FAULTS: dict[str, tuple[str, bytes]] = {
    "one byte short": ("shard-truncated", CLEAN[:-1]),
    "cut inside the header": ("shard-truncated", CLEAN[:40]),
    "cut inside the length": ("shard-truncated", CLEAN[:5]),
    "one byte more": ("shard-padded", CLEAN + b"\0"),
    "nothing": ("shard-empty", b""),
    "pointer": ("shard-lfs-pointer", LFS),
    "page": ("shard-html", b"\n<!DOCTYPE html><html><body>Access denied</body></html>"),
    "zeros": ("shard-zeros", bytes(4096)),
    "error text": ("shard-text", b"Entry not found"),
    "a length beyond the limit": ("header-too-large", struct.pack("<Q", 100_000_001) + b"{" * 64),
    "a zip": ("header-too-large", b"PK\x03\x04\x14\0\0\x08" + b"\0\1" * 64),
    "no JSON": ("header-not-json", file_of(b"{'a': 1}")),
    "NUL after the JSON": ("header-not-json", file_of(text_of({"a": A, "b": B}) + b"\0")),
    "a list": ("header-not-json", file_of(b"[]", b"")),
    "NaN": ("header-not-json", file_of(text_of({"a": A, "b": B, "c": float("nan")}))),
    "half a surrogate pair": (
        "header-not-json",
        file_of(b'{"\\ud800":' + text_of(A) + b',"b":' + text_of(B) + b"}"),
    ),
    "invalid UTF-8": ("header-not-json", file_of(b'{"\xff":' + text_of(A) + b',"b":' + text_of(B) + b"}")),
    "a negative zero": (
        "header-not-json",
        file_of(text_of({"a": A, "b": B}).replace(b"[0,", b"[-0,").replace(b"[0, ", b"[-0, ")),
    ),
    "nesting": ("header-not-json", file_of(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")),
    "a name twice": ("header-duplicate-key", file_of(TWICE)),
    "a field twice": (
        "header-duplicate-key",
        file_of(text_of({"a": A, "b": B}).replace(b'{"dtype"', b'{"dtype": "F32", "dtype"', 1)),
    ),
    "a hole": ("tensor-hole", file_of(text_of({"a": A, "b": {**B, "data_offsets": [16, 24]}}), b"\1" * 24)),
    "an overlap": (
        "tensor-overlap",
        file_of(text_of({"a": A, "b": {**B, "data_offsets": [4, 12]}}), b"\1" * 12),
    ),
    "a wrong size": ("tensor-size-mismatch", file_of(text_of({"a": {**A, "shape": [3]}, "b": B}))),
    "a shape that overflows": (
        "tensor-size-mismatch",
        file_of(text_of({"a": {**A, "shape": [2**63, 4, 0]}, "b": B})),
    ),
    "half a byte": (
        "tensor-size-mismatch",
        file_of(text_of({"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 2]}}), b"\1\1"),
    ),
    "a dtype nobody knows": ("dtype-unknown", file_of(text_of({"a": {**A, "dtype": "Q4"}, "b": B}))),
    "offsets reversed": (
        "tensor-entry-malformed",
        file_of(text_of({"a": A, "b": B, "c": {**A, "shape": [0], "data_offsets": [8, 0]}})),
    ),
    "a size that is no integer": (
        "tensor-entry-malformed",
        file_of(text_of({"a": A, "b": B, "c": {**A, "shape": [2.0]}})),
    ),
    "metadata that is no text": (
        "header-metadata-not-text",
        file_of(text_of({"__metadata__": {"n": 1}, "a": A, "b": B})),
    ),
}
"""Faults the library refuses too, except the names twice; each with the one id it must give."""

ONLY_OURS: dict[str, tuple[str, bytes]] = {
    "a name twice": FAULTS["a name twice"],
    "a key of the metadata twice": (
        "header-duplicate-key",
        file_of(b'{"__metadata__":{"x":"1","x":"2"},"a":' + text_of(A) + b',"b":' + text_of(B) + b"}"),
    ),
    "metadata null": ("header-metadata-not-text", file_of(text_of({"__metadata__": None, "a": A, "b": B}))),
    "spaces before the JSON": ("header-padding-odd", file_of(b"  " + text_of({"a": A, "b": B}))),
    "a newline after the JSON": ("header-padding-odd", file_of(text_of({"a": A, "b": B}) + b"\n")),
    "a field nobody knows": ("tensor-field-unknown", file_of(text_of({"a": {**A, "scale": 2}, "b": B}))),
    "no tensor": ("shard-no-tensors", file_of(b"{}", b"")),
}
"""Faults that safetensors 0.8.0 accepts in silence and that we name."""


@pytest.mark.parametrize("case", FAULTS)
def test_fault_is_named_alone(tmp_path: Path, case: str) -> None:
    """Each fault gives exactly its own id, and the library's refusals are a subset of ours."""
    expected, content = FAULTS[case]
    assert read(tmp_path / "x.safetensors", content)[1] == [expected]
    assert library_refuses(tmp_path / "x.safetensors") == (case not in ONLY_OURS)


@pytest.mark.parametrize("case", ONLY_OURS)
def test_named_though_the_library_accepts(tmp_path: Path, case: str) -> None:
    """What the library passes in silence has a name here."""
    expected, content = ONLY_OURS[case]
    assert read(tmp_path / "x.safetensors", content)[1] == [expected]
    assert not library_refuses(tmp_path / "x.safetensors")


def test_pointer_tells_the_true_file(tmp_path: Path) -> None:
    """A git-lfs pointer is described by the size and digest of what it stands for."""
    path = tmp_path / "x.safetensors"
    path.write_bytes(LFS)
    descriptor = os.open(path, os.O_RDONLY)
    defect = read_header(descriptor, path.name, path).defects[0]
    os.close(descriptor)
    assert "4242 bytes" in defect.found
    assert "ab" * 32 in defect.found


def test_truncation_counts_the_bytes_and_tensors(tmp_path: Path) -> None:
    """A truncated file says how many bytes are gone and which tensors they were."""
    path = tmp_path / "x.safetensors"
    path.write_bytes(CLEAN[:-9])
    descriptor = os.open(path, os.O_RDONLY)
    defect = read_header(descriptor, path.name, path).defects[0]
    os.close(descriptor)
    assert "9 short; 2 of 2 tensors cut, first a" in defect.found


@pytest.mark.parametrize("dtype", BITS)
def test_every_dtype_of_the_library(tmp_path: Path, dtype: str) -> None:
    """Each dtype is as wide here as in the library: 16 elements accepted, one byte less refused by both."""
    size = 16 * BITS[dtype] // 8
    for length, clean in ((size, True), (size - 1, False)):
        header = header_of([("a", dtype, (16,), length)])
        ids = read(tmp_path / "x.safetensors", file_of(header, b"\1" * length))[1]
        assert (ids == []) == clean
        assert library_refuses(tmp_path / "x.safetensors") != clean


def test_clean_files_of_the_library_have_no_defect(tmp_path: Path) -> None:
    """What safetensors writes is clean: shapes with zeros, scalars, metadata, many tensors."""
    arrays = {f"t{i}": np.ones((i, 2), np.float16) for i in range(40)}
    arrays["scalar"] = np.array(1.5)
    content = safetensors.numpy.save(arrays, {"format": "pt"})
    shard, ids = read(tmp_path / "x.safetensors", content)
    assert ids == []
    assert shard is not None
    assert shard.metadata == {"format": "pt"}
    assert {t.name: t.shape for t in shard.tensors} == {n: a.shape for n, a in arrays.items()}


def test_whatever_the_library_refuses_we_refuse(tmp_path: Path) -> None:
    """1000 random edits of a header's bytes, fixed seed: never refused there and clean here."""
    chance = random.Random(7)  # noqa: S311 - a fixed seed, nothing secret
    base = file_of(header_of([("a", "F32", (2,), 8), ("b", "BF16", (2, 2), 8)], {"format": "pt"}))
    path = tmp_path / "x.safetensors"
    refused = 0
    for _ in range(1000):
        content = bytearray(base)
        for _ in range(chance.randint(1, 3)):
            content[chance.randrange(8, len(base) - 16)] = chance.choice(
                b'0123456789-+.eE"[]{},: abFT\\\0\xff'
            )
        ids = read(path, bytes(content))[1]
        if library_refuses(path):
            refused += 1
            assert ids, bytes(content)
    assert refused > 300


def test_every_cut_is_refused(tmp_path: Path) -> None:
    """At every length short of the whole, the file is truncated or empty, and nothing else."""
    for length in range(len(CLEAN)):
        ids = read(tmp_path / "x.safetensors", CLEAN[:length])[1]
        assert ids == (["shard-truncated"] if length else ["shard-empty"]), length


def test_a_header_of_very_many_values_is_refused_before_parsing(tmp_path: Path) -> None:
    """A header inside the size limit that would unfold to millions of objects is refused by count."""
    header = b'{"a":[' + b"{}," * 1_000_001 + b"{}]}"
    assert read(tmp_path / "x.safetensors", file_of(header))[1] == ["header-too-many-tensors"]
