"""A drafter's reduced vocabulary: which of the target's ids its rows stand for.

``d2t`` holds offsets: target id = draft id + d2t[draft id]. Source: SafeAILab/EAGLE cnets.py.
Dimensions: D rows of the drafter's head, V the target's vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from draftproof.checkpoint.values.d2t import judge_offsets
from draftproof.errors import RefusedInput
from draftproof.models.target.shards import ShardSource

__all__ = ["DraftVocabulary", "read_draft_vocabulary"]


class DraftVocabulary:
    """Leads from the drafter's rows to the target's ids."""

    __slots__ = ("_target_ids", "_vocab_size")

    def __init__(self, target_ids: Tensor, vocab_size: int) -> None:
        """``target_ids`` [D], all different and below V."""
        self._target_ids, self._vocab_size = target_ids, vocab_size

    def widened(self, logits: Tensor) -> Tensor:
        """[K, D] logits as [K, V]: what cannot be drafted has no chance."""
        wide = logits.new_full((len(logits), self._vocab_size), float("-inf"))
        return wide.index_copy_(1, self._target_ids, logits)


def read_draft_vocabulary(
    source: ShardSource, names: Sequence[str], *, num_rows: int, vocab_size: int, device: torch.device
) -> DraftVocabulary | None:
    """The checkpoint's map; None where it has none and needs none.

    Args:
        source: the drafter's tensors.
        names: what the map may be called.
        num_rows: D.
        vocab_size: V.
        device: where the drafter runs.

    Raises:
        RefusedInput: a reduced vocabulary has no map, or the map does not lead into the target's vocabulary.
    """
    shapes = source.shapes()
    name = next((name for name in names if name in shapes), None)
    if name is None:
        if num_rows == vocab_size:
            return None
        raise _refused(names[0], f"offsets of {num_rows} draft ids", "no such tensor", source.where)
    if shapes[name] != (num_rows,):
        raise _refused(name, f"{num_rows} offsets", str(list(shapes[name])), source.where)
    offsets = source.read_integers(name)
    for _, expected, found in judge_offsets(offsets.tolist(), vocab_size, None):
        raise _refused(name, expected, found, source.where)
    return DraftVocabulary((offsets + torch.arange(num_rows)).to(device), vocab_size)


def _refused(subject: str, expected: str, found: str, where: str) -> RefusedInput:
    return RefusedInput(
        subject,
        expected=expected,
        found=found,
        where=where,
        means="drafted ids would stand for other tokens than those the drafter was trained on",
        next_step=f"draftproof check {where}",
    )
