"""The most probable tokens of every depth of a block, worked out when a tree reaches that depth.

A row of a large vocabulary is read once for its largest values: it is cut into C interleaved classes, and the
k + 1 largest values lie in the k + 1 classes with the largest maxima. What is left to sort is a few thousand
numbers. The sum over a row, for its probabilities, is taken only of rows that a tree reaches.
Dimensions: H depths, V vocabulary, k ranks, C classes of m tokens each.
"""

import math

import torch
from torch import Tensor

__all__ = ["Ranks"]

_AT_ONCE = 1 << 18
"""Logits whose rows are worked out together: many rows of a small vocabulary, one of a large one."""


class Ranks:
    """Log-probabilities and token ids by rank: falling, equal logits by rising id.

    Attributes:
        is_finite: whether every row has a distribution: no NaN, no +infinity, something finite.
        num_depths: H.
        num_ranks: k.
    """

    __slots__ = (
        "_ids",
        "_log_probs",
        "_logits",
        "_maxima",
        "_together",
        "is_finite",
        "num_depths",
        "num_ranks",
    )

    def __init__(self, logits: Tensor, num_ranks: int) -> None:
        """Look at every row's maximum; no row is ranked yet.

        Args:
            logits: [H, V] float32, H and V 1 at least.
            num_ranks: k, 1 to V.
        """
        self.num_depths, vocab_size = logits.shape
        self.num_ranks, self._logits = num_ranks, logits
        self._together = max(1, _AT_ONCE // vocab_size)
        size = math.isqrt(vocab_size // (num_ranks + 1))  # m: as many maxima to sort as candidates
        classes = vocab_size // max(size, 1)
        self._maxima: Tensor | None = None
        largest = logits
        if size > 1 and classes > num_ranks:
            self._maxima = logits[:, : size * classes].view(-1, size, classes).amax(1)
            largest = torch.cat((self._maxima, logits[:, size * classes :]), 1)
        self.is_finite = bool(torch.isfinite(largest.amax(-1)).all())
        self._log_probs: list[list[float]] = []
        self._ids: list[list[int]] = []

    def log_probs(self, depth: int) -> list[float]:
        """[k] of depth 0..H-1, as 32-bit floats."""
        self._reach(depth)
        return self._log_probs[depth]

    def token(self, depth: int, rank: int) -> int:
        """The id with this rank."""
        self._reach(depth)
        return self._ids[depth][rank]

    def _reach(self, depth: int) -> None:
        while depth >= len(self._log_probs):
            done = len(self._log_probs)
            rows = slice(done, done + self._together)
            log_probs, ids = self._ranked(rows)
            self._log_probs += log_probs
            self._ids += ids

    def _ranked(self, rows: slice) -> tuple[list[list[float]], list[list[int]]]:
        logits, count = self._logits[rows], self.num_ranks
        values, ids = self._largest(rows, min(count + 1, logits.shape[1]))
        # topk leaves the order of equal logits open, and with it which of them it returns at the edge.
        crowded = (values[:, count:] == values[:, count - 1 : count]).any(-1)
        ids = ids[:, :count]
        for row in crowded.nonzero().flatten().tolist():
            ids[row] = logits[row].sort(descending=True, stable=True).indices[:count]
        ids = ids.sort(-1).values
        values, order = logits.gather(-1, ids).sort(dim=-1, descending=True, stable=True)
        log_probs = values - logits.logsumexp(-1, keepdim=True)
        return log_probs.tolist(), ids.gather(-1, order).tolist()

    def _largest(self, rows: slice, count: int) -> tuple[Tensor, Tensor]:
        """The ``count`` largest values and their ids; which of several equal to the last is left open."""
        logits = self._logits[rows]
        if self._maxima is None:
            return logits.topk(count, dim=-1)
        maxima = self._maxima[rows]
        classes = maxima.shape[1]
        size, num_rows = logits.shape[1] // classes, len(logits)
        best = maxima.topk(count, dim=-1, sorted=False).indices
        offsets = torch.arange(0, size * classes, classes, device=logits.device)
        chosen = (best.unsqueeze(-1) + offsets).view(num_rows, -1)
        rest = torch.arange(size * classes, logits.shape[1], device=logits.device)
        ids = torch.cat((chosen, rest.expand(num_rows, -1)), 1)
        values, places = logits.gather(-1, ids).topk(count, dim=-1)
        return values, ids.gather(-1, places)
