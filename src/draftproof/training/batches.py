"""Rows of tokens for one step, a pure function of seed and step: nothing to save, nothing to run forward to.

Dimensions: B rows, T tokens.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from draftproof.training.corpus.document import Document
from draftproof.training.corpus.real import RealText
from draftproof.training.corpus.stream import documents
from draftproof.training.drills import LENGTH
from draftproof.training.vocabulary import Pieces

__all__ = ["Batch", "Batches"]

_STEPS = 1 << 32
"""More steps than any run has: seed and step in one number."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows packed with whole documents; the last of each row is cut where the row ends."""

    ids: Tensor
    """[B, T] int64."""

    is_response: Tensor
    """[B, T] bool: tokens that answer a prompt, their end included, and what a drill says again."""

    is_real: Tensor
    """[B, T] bool: tokens of real text."""

    def to(self, device: torch.device) -> "Batch":
        """The same there."""
        return Batch(self.ids.to(device), self.is_response.to(device), self.is_real.to(device))


@dataclass(frozen=True, slots=True)
class Batches:
    """What a run reads."""

    pieces: Pieces
    real: RealText
    real_share: float
    rows: int
    length: int
    seed: int
    drill_steps: int = 0
    """Steps of nothing but short drills; for twice as many more, a quarter of the rows are long ones."""

    held_out: bool = False

    def at(self, step: int) -> Batch:
        """The rows of one step."""
        seed = self.seed * _STEPS + step
        draws = random.Random(seed)  # noqa: S311 - reproducible text, no secret
        if step < self.drill_steps:
            rows = [self._drill(draws, LENGTH) for _ in range(self.rows * self.length // LENGTH)]
        else:
            drills = self.rows // 4 if step < 3 * self.drill_steps else 0
            stream = documents(seed, self.real, self.real_share, held_out=self.held_out)
            rows = [self._drill(draws, self.length) for _ in range(drills)]
            rows += [self._row(stream) for _ in range(self.rows - drills)]
        ids, is_response, is_real = (torch.tensor(part) for part in zip(*rows, strict=True))
        return Batch(ids, is_response, is_real)

    def _drill(self, draws: random.Random, length: int) -> tuple[list[int], list[bool], list[bool]]:
        ids, again = self.pieces.drills.row(draws, length)
        return ids, again, [False] * length

    def _row(self, stream: Iterator[Document]) -> tuple[list[int], list[bool], list[bool]]:
        ids: list[int] = []
        answers: list[bool] = []
        real: list[bool] = []
        while len(ids) < self.length:
            document = next(stream)
            prompt, response = self.pieces.prompt(document), self.pieces.response(document)
            ids += [*prompt, *response]
            is_real = document.kind == "real"
            answers += [is_real] * len(prompt) + [True] * len(response)
            real += [is_real] * (len(prompt) + len(response))
        return ids[: self.length], answers[: self.length], real[: self.length]
