"""checkpoint.pages: holes, zeros, NaN and infinity are found in a sample, and clean files stay clean."""

import math
import struct
import time
from pathlib import Path

import pytest

from checkpoint.bigdir import NUM_SHARDS, write_27b_drafter, write_27b_target
from checkpoint.build import filled, tensors_of, write_shard
from draftproof.checkpoint.expected.match import match_tensors
from draftproof.checkpoint.expected.mismatch import match_defects
from draftproof.checkpoint.expected.tables import expected_tensors
from draftproof.checkpoint.ledger import Checkpoint, read_checkpoint
from draftproof.checkpoint.values.nonfinite import NONFINITE, count_nonfinite
from draftproof.checkpoint.values.pages import scan_pages
from draftproof.config.drafter import DrafterConfig
from draftproof.config.parse import parse_config
from draftproof.config.raw import read_raw
from draftproof.config.target import TargetConfig

BIG = (512, 64)  # 64 KiB in BF16: more than the pages sampled
NAN = {
    "BF16": b"\xc0\x7f",
    "F16": b"\x00\x7e",
    "F32": b"\x00\x00\xc0\x7f",
    "F64": struct.pack("<d", math.nan),
}
INFINITY = {
    "BF16": b"\x80\xff",
    "F16": b"\x00\x7c",
    "F32": b"\x00\x00\x80\x7f",
    "F64": struct.pack("<d", -math.inf),
}


def looked(root: Path) -> Checkpoint:
    """The checkpoint, which must be there and clean."""
    found = read_checkpoint(root)
    assert isinstance(found, Checkpoint)
    assert found.defects == ()
    return found


def told(root: Path) -> list[tuple[str, str]]:
    """Id and subject of what the pages show."""
    return [(d.id, d.subject) for d in scan_pages(looked(root)).defects]


def test_clean_pages_have_no_defect(tmp_path: Path) -> None:
    """Ordinary weights are clean, and the scan says how much it read; zero norms and biases are no defect."""
    tensors = tensors_of({"big.weight": BIG, "small.weight": (4, 4)})
    zeros = {"a.norm.weight": ("BF16", (4096,), bytes(8192)), "d2t": ("I64", (512,), bytes(4096))}
    write_shard(tmp_path / "model.safetensors", {**tensors, **zeros})
    scan = scan_pages(looked(tmp_path))
    assert (scan.defects, scan.num_tensors, scan.skipped) == ((), 4, ())
    assert scan.num_pages == 3 + 1 + 1 + 1


def test_a_zero_matrix(tmp_path: Path) -> None:
    """A matrix whose every sampled page is zero is named; one that is zero in part of its pages is not."""
    data = filled("BF16", BIG)
    half = data[: len(data) // 2] + bytes(len(data) // 2)
    tensors = {"zero.weight": ("BF16", BIG, bytes(len(data))), "half.weight": ("BF16", BIG, half)}
    write_shard(tmp_path / "model.safetensors", tensors)
    assert told(tmp_path) == [("tensor-zero-pages", "zero.weight")]


@pytest.mark.parametrize("bad", [NAN, INFINITY], ids=["NaN", "infinity"])
@pytest.mark.parametrize("dtype", ["BF16", "F32"])
def test_not_finite(tmp_path: Path, bad: dict[str, bytes], dtype: str) -> None:
    """One NaN or infinity in a page that is read is named, in a norm too."""
    data = bytearray(filled(dtype, (64,)))
    data[: len(bad[dtype])] = bad[dtype]
    tensors = {"norm.weight": (dtype, (64,), bytes(data)), **tensors_of({"x.weight": (4, 4)})}
    write_shard(tmp_path / "model.safetensors", tensors)
    assert told(tmp_path) == [("tensor-nonfinite", "norm.weight")]


@pytest.mark.parametrize("dtype", NAN)
def test_nonfinite_numbers_are_counted_exactly(dtype: str) -> None:
    """Against every pattern of sign and exponent: only the full exponent counts, at every place of a page."""
    width, mask = NONFINITE[dtype]
    numbers = [0, 1, mask - 1, mask >> 1, mask & (mask - 1), mask, mask | 1, mask | (1 << (8 * width - 1))]
    page = b"".join(n.to_bytes(width, "little") for n in numbers)
    expected = sum((n & mask) == mask for n in numbers)
    assert count_nonfinite(page, dtype) == expected == 3
    assert count_nonfinite(page * 100 + b"\xff" * (width - 1), dtype) == 300
    for place in range(8):
        clean = [1] * 8
        clean[place] = mask
        assert count_nonfinite(b"".join(n.to_bytes(width, "little") for n in clean), dtype) == 1
    assert count_nonfinite(b"", dtype) == 0


def test_a_hole_is_found_and_not_read(tmp_path: Path) -> None:
    """A range never written is one defect with its place; its tensors are skipped, not called zero."""
    tensors = tensors_of({"a.weight": (4096, 64), "b.weight": (4096, 64), "c.weight": (64, 64)})
    path = write_shard(tmp_path / "model.safetensors", tensors)
    entry = looked(tmp_path).tensors["b.weight"]
    begin, end = -(-entry.begin // 4096) * 4096, entry.end // 4096 * 4096
    data = path.read_bytes()
    with path.open("wb") as file:
        file.write(data[:begin])
        file.seek(end)
        file.write(data[end:])
    scan = scan_pages(looked(tmp_path))
    if not scan.defects:
        pytest.skip("this file system keeps no holes")
    assert [(d.id, d.subject) for d in scan.defects] == [("shard-hole", "model.safetensors")]
    assert f"first [{begin}, {end}); 1 of 3 tensors: b.weight" in scan.defects[0].found
    assert scan.skipped == ("b.weight",)


@pytest.mark.parametrize(("kept", "expected"), [(13, []), (13.4, [("shard-zero-tail", "model.safetensors")])])
def test_zeros_up_to_the_end(tmp_path: Path, kept: float, expected: list[tuple[str, str]]) -> None:
    """Rows of zeros at the end are ordinary; zeros that begin inside a row are a write that stopped."""
    row = 4096 * 2
    data = filled("BF16", (16, 4096))
    cut = int(kept * row)
    tensors = {
        **tensors_of({"a.weight": BIG}),
        "lm_head.weight": ("BF16", (16, 4096), data[:cut] + bytes(16 * row - cut)),
    }
    write_shard(tmp_path / "model.safetensors", tensors)
    assert told(tmp_path) == expected


def test_the_sample_is_the_same_twice(tmp_path: Path) -> None:
    """Two scans of one file read the same pages and say the same."""
    write_shard(tmp_path / "model.safetensors", {"zero.weight": ("BF16", BIG, bytes(65536))})
    assert scan_pages(looked(tmp_path)) == scan_pages(looked(tmp_path))


def test_27b_shows_its_holes_and_nothing_else_within_a_second(tmp_path: Path) -> None:
    """Headers, index, pages and tables of a sparse 27B pair: the holes alone, in under a second of CPU."""
    assert 53e9 < write_27b_target(tmp_path / "target") < 56e9
    assert 3.4e9 < write_27b_drafter(tmp_path / "drafter") < 3.5e9
    begin = time.process_time()
    for name, shards in (("target", NUM_SHARDS), ("drafter", 1)):
        root = tmp_path / name
        checkpoint = looked(root)
        scan = scan_pages(checkpoint)
        config = parse_config(read_raw(root / "config.json")).config
        assert isinstance(config, DrafterConfig | TargetConfig)
        table = expected_tensors(config)
        assert match_defects(table, match_tensors(table, checkpoint), checkpoint) == ()
        if not scan.defects:
            pytest.skip("this file system keeps no holes")
        assert [d.id for d in scan.defects] == ["shard-hole"] * shards
    assert time.process_time() - begin < 1
