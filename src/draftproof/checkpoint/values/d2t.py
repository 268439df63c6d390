"""The map of a reduced draft vocabulary: ``d2t`` holds offsets, target id = draft id + d2t[draft id].

N draft ids, V target ids. The ids are chosen by frequency and sorted, so targets increase strictly.
Source: SafeAILab/EAGLE cnets.py and data scripts; vLLM 0.33 llama_eagle3.py; SGLang llama_eagle3.py.
"""

from collections.abc import Sequence
from itertools import pairwise

from draftproof.checkpoint.files.shard import ArtefactDefect, TensorEntry, listed
from draftproof.checkpoint.ledger import Checkpoint
from draftproof.checkpoint.values.read import read_values
from draftproof.config.source import Unknown

__all__ = ["D2tReport", "check_d2t", "judge_offsets"]

D2tReport = tuple[tuple[ArtefactDefect, ...], tuple[str, ...]]
"""(defects, what could not be judged and why)."""

_NAMES = ("d2t", "model.d2t")
_INVERSE = ("t2d", "model.t2d")
_INTEGERS = {"I64", "I32", "U32", "U64", "I16", "U16"}


def check_d2t(checkpoint: Checkpoint, vocab_size: int | None) -> D2tReport:
    """Judge the checkpoint's map, if it has one; ``vocab_size`` is the target's V, None if not known."""
    entry = next((checkpoint.tensors[n] for n in _NAMES if n in checkpoint.tensors), None)
    if entry is None:
        return (), ()
    where = f"{checkpoint.root / entry.shard} tensor {entry.name}"
    if entry.dtype not in _INTEGERS:
        found = f"{entry.dtype}, which cannot hold every id exactly"
        return (ArtefactDefect("d2t-not-integer", entry.name, "I64", found, where),), ()
    offsets = read_values(checkpoint, entry)
    if isinstance(offsets, Unknown):
        return (), (offsets.reason,)
    marked, reasons = _marked(checkpoint)
    size = vocab_size if vocab_size is not None else None if marked is None else len(marked)
    if size is None:
        return (), (f"{entry.name}: neither vocab_size nor t2d says how many target ids there are", *reasons)
    found_ids = [int(value) for value in offsets]
    return tuple(
        ArtefactDefect(i, entry.name, e, f, where) for i, e, f in judge_offsets(found_ids, size, marked)
    ), reasons


def judge_offsets(
    offsets: Sequence[int], vocab_size: int, marked: Sequence[float] | None
) -> list[tuple[str, str, str]]:
    """(id, expected, found) of everything wrong with a map.

    Args:
        offsets: [N] d2t.
        vocab_size: V.
        marked: [V] t2d, non-zero where a target id is drafted; None if there is none.
    """
    num, targets = len(offsets), [j + offset for j, offset in enumerate(offsets)]
    if num < vocab_size and not any(offsets):
        found = f"all zeros: the draft vocabulary is the first {num} of {vocab_size} ids"
        return [("d2t-degenerate", "offsets to ids chosen by frequency", found)]
    outside = [j for j, target in enumerate(targets) if not 0 <= target < vocab_size]
    if _is_absolute(offsets, vocab_size) and (outside or _marks_exactly(offsets, targets, marked)):
        found = f"increasing ids below {vocab_size}; as offsets {len(outside)} of {num} leave the vocabulary"
        return [("d2t-absolute", "offsets: target id minus draft id", found)]
    if outside:
        j = outside[0]
        found = f"{len(outside)} of {num} outside; first: draft id {j} + {offsets[j]} = {targets[j]}"
        return [("d2t-out-of-range", f"target ids from 0 to {vocab_size - 1}", found)]
    faults = []
    if falling := [j for j, (a, b) in enumerate(pairwise(targets)) if b <= a]:
        j = falling[0]
        kind = "d2t-duplicate-target" if len(set(targets)) < num else "d2t-not-increasing"
        found = f"draft ids {j} and {j + 1} mean target ids {targets[j]} and {targets[j + 1]}"
        faults.append((kind, "strictly increasing target ids", f"{len(falling)} place(s); {found}"))
    if marked is not None:
        faults += _inverse(targets, marked)
    return faults


def _is_absolute(offsets: Sequence[int], vocab_size: int) -> bool:
    """Whether the numbers would be a good map if they were the target ids themselves."""
    return all(a < b for a, b in pairwise(offsets)) and offsets[0] >= 0 and offsets[-1] < vocab_size


def _marks_exactly(offsets: Sequence[int], targets: Sequence[int], marked: Sequence[float] | None) -> bool:
    """Whether t2d marks the numbers themselves, and not what they give as offsets."""
    if marked is None:
        return False
    drafted = {i for i, mark in enumerate(marked) if mark}
    return drafted == set(offsets) != set(targets)


def _inverse(targets: Sequence[int], marked: Sequence[float]) -> list[tuple[str, str, str]]:
    drafted = {i for i, mark in enumerate(marked) if mark}
    extra, missing = sorted(drafted - set(targets)), sorted(set(targets) - drafted)
    if not extra and not missing:
        return []
    shown = listed([str(i) for i in (*missing, *extra)], 4)
    found = f"{len(missing)} drafted ids not marked, {len(extra)} marked ids not drafted: {shown}"
    return [("t2d-against-d2t", "t2d true exactly at the ids of d2t", found)]


def _marked(checkpoint: Checkpoint) -> tuple[Sequence[float] | None, tuple[str, ...]]:
    entry: TensorEntry | None = next(
        (checkpoint.tensors[n] for n in _INVERSE if n in checkpoint.tensors), None
    )
    if entry is None:
        return None, ()
    values = read_values(checkpoint, entry)
    return (None, (values.reason,)) if isinstance(values, Unknown) else (values, ())
