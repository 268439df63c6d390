"""The end of a forward: final norm and head over the rows that need them, and every sequence's share.

Dimensions: H hidden, V vocabulary.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from draftproof.models.batch import Item
from draftproof.models.forward import Forward
from draftproof.models.parts.rows import RmsNorm
from draftproof.names import HiddenIndex

__all__ = ["Readout"]


class Readout(NamedTuple):
    """What is wanted of the last residual stream."""

    norm: RmsNorm
    head: Callable[[Tensor], Tensor]
    """[rows, H] normed to [rows, V] logits; no rows give no logits."""

    num_logits: int | None
    """How many of the last nodes of each sequence; None for all."""

    with_normed: bool
    """Whether the normed rows are returned too."""

    def of(self, items: Sequence[Item], x: Tensor, kept: Mapping[int, Tensor]) -> list[Forward]:
        """One result for each sequence; norm and head run once for all of them.

        Args:
            items: the sequences' parts of the rows.
            x: [rows, H], the last residual stream.
            kept: the captured residual streams by index.
        """
        counts = [item.nodes.count for item in items]
        if self.num_logits is not None:
            counts = [min(self.num_logits, count) for count in counts]
        normed = self.norm(x) if self.with_normed or sum(counts) == len(x) else None
        logits = self.head(self._read(items, counts, x, normed))
        found, at = [], 0
        for item, count in zip(items, counts, strict=True):
            hidden = {HiddenIndex(index): rows[item.begin : item.end] for index, rows in kept.items()}
            mine = normed[item.begin : item.end] if self.with_normed and normed is not None else None
            found.append(Forward(logits[at : at + count], hidden, mine))
            at += count
        return found

    def _read(self, items: Sequence[Item], counts: Sequence[int], x: Tensor, normed: Tensor | None) -> Tensor:
        """The normed rows the head reads: the last ``counts`` of each sequence."""
        rows = x if normed is None else normed
        if sum(counts) != len(x):
            ends = [rows[item.end - count : item.end] for item, count in zip(items, counts, strict=True)]
            rows = ends[0] if len(ends) == 1 else torch.cat(ends)
        return self.norm(rows) if normed is None else rows
