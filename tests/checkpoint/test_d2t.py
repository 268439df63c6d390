"""checkpoint.d2t: offsets of a draft vocabulary, and every way to get them wrong."""

import random
import struct
from pathlib import Path

import pytest

from checkpoint.build import Tensors, tensors_of, write_shard
from draftproof.checkpoint.ledger import Checkpoint, read_checkpoint
from draftproof.checkpoint.values.d2t import check_d2t

V = 1000
IDS = sorted(random.Random(3).sample(range(V), 64))  # noqa: S311 - a fixed seed, nothing secret
OFFSETS = [target - j for j, target in enumerate(IDS)]


def maps(offsets: list[int], marked: list[int] | None, *, dtype: str = "I64") -> Tensors:
    """A checkpoint's d2t and, if given, t2d."""
    packed = struct.pack(f"<{len(offsets)}q", *offsets) if dtype == "I64" else bytes(2 * len(offsets))
    tensors = tensors_of({"fc.weight": (4, 4)}) | {"d2t": (dtype, (len(offsets),), packed)}
    if marked is None:
        return tensors
    flags = bytes(i in set(marked) for i in range(V))
    return tensors | {"t2d": ("BOOL", (V,), flags)}


def told(root: Path, tensors: Tensors, vocab_size: int | None = V) -> list[str]:
    """Ids of what is wrong."""
    write_shard(root / "model.safetensors", tensors)
    checkpoint = read_checkpoint(root)
    assert isinstance(checkpoint, Checkpoint)
    assert checkpoint.defects == ()
    defects, not_judged = check_d2t(checkpoint, vocab_size)
    assert not_judged == ()
    return [d.id for d in defects]


@pytest.mark.parametrize("marked", [IDS, None], ids=["with t2d", "without t2d"])
def test_a_true_map_is_clean(tmp_path: Path, marked: list[int] | None) -> None:
    """Offsets to sorted ids, with or without t2d."""
    assert told(tmp_path, maps(OFFSETS, marked)) == []


def test_zeros_over_the_whole_vocabulary_are_clean(tmp_path: Path) -> None:
    """All zeros where N is V is the identity: nothing is wrong."""
    assert told(tmp_path, maps([0] * V, list(range(V)))) == []
    assert told(tmp_path, maps([0] * V, None)) == []


@pytest.mark.parametrize("marked", [list(range(64)), None], ids=["with t2d", "without t2d"])
def test_zeros_over_a_part_are_degenerate(tmp_path: Path, marked: list[int] | None) -> None:
    """All zeros where N is less than V drafts the first N ids only."""
    assert told(tmp_path, maps([0] * 64, marked)) == ["d2t-degenerate"]


@pytest.mark.parametrize("marked", [IDS, None], ids=["with t2d", "without t2d"])
def test_ids_in_place_of_offsets(tmp_path: Path, marked: list[int] | None) -> None:
    """A map that holds the target ids themselves."""
    assert told(tmp_path, maps(IDS, marked)) == ["d2t-absolute"]


def test_ids_in_place_of_offsets_that_stay_inside(tmp_path: Path) -> None:
    """Absolute ids that do not leave the vocabulary when read as offsets are told by t2d."""
    low = list(range(1, 200, 5))
    assert told(tmp_path, maps(low, low)) == ["d2t-absolute"]


def test_out_of_range(tmp_path: Path) -> None:
    """One target beyond the vocabulary, and one below zero."""
    assert told(tmp_path, maps([*OFFSETS[:-1], V], None)) == ["d2t-out-of-range"]
    assert told(tmp_path, maps([-1, *OFFSETS[1:]], None)) == ["d2t-out-of-range"]


def test_order_and_duplicates(tmp_path: Path) -> None:
    """Two draft ids with one target, and two in the wrong order."""
    twice = [*OFFSETS[:5], OFFSETS[4] - 1, *OFFSETS[6:]]
    assert told(tmp_path, maps(twice, None)) == ["d2t-duplicate-target"]
    swapped = [IDS[1], IDS[0] - 1, *OFFSETS[2:]]
    assert told(tmp_path, maps(swapped, None)) == ["d2t-not-increasing"]


def test_t2d_that_marks_other_ids(tmp_path: Path) -> None:
    """t2d must be true at exactly the ids that d2t gives."""
    other = [*IDS[:-1], next(i for i in range(V) if i not in IDS)]
    assert told(tmp_path, maps(OFFSETS, other)) == ["t2d-against-d2t"]
    assert told(tmp_path, maps(OFFSETS, IDS[:-1])) == ["t2d-against-d2t"]


def test_a_map_in_floats(tmp_path: Path) -> None:
    """A cast of the whole model to bfloat16 takes the map with it: ids above 256 lose their last bits."""
    assert told(tmp_path, maps(OFFSETS, None, dtype="BF16")) == ["d2t-not-integer"]


def test_the_vocabulary_is_taken_from_t2d(tmp_path: Path) -> None:
    """Without a config, t2d tells V; without either the check says that it could not judge."""
    assert told(tmp_path, maps([0] * 64, list(range(64))), None) == ["d2t-degenerate"]
    write_shard(tmp_path / "model.safetensors", maps([0] * 64, None))
    checkpoint = read_checkpoint(tmp_path)
    assert isinstance(checkpoint, Checkpoint)
    defects, not_judged = check_d2t(checkpoint, None)
    assert defects == ()
    assert "neither vocab_size nor t2d" in not_judged[0]


def test_no_map_is_no_fault_here(tmp_path: Path) -> None:
    """A checkpoint without d2t is judged by its table, not here."""
    assert told(tmp_path, tensors_of({"fc.weight": (4, 4)})) == []
