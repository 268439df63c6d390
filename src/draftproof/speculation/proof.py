"""The law of what a rule emits, computed exactly on a toy target small enough to write out.

A rule is lossless when the joint distribution of the tokens it emits, continued by the target to a fixed
length, is the target's own. ``chance.outcomes`` runs the product's rule through every branch, so what is
measured is the code in use and no number of samples limits the answer.
Dimensions: V vocabulary, T tokens of the joint distribution.
"""

import math
from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from draftproof.speculation.accept import Acceptance, TargetRows
from draftproof.speculation.chance import Chance, Purpose, outcomes
from draftproof.speculation.tree import DraftTree

__all__ = ["Law", "ToyModel", "draw_chain", "emitted_law", "expected_accepted", "total_variation"]

Law = dict[tuple[int, ...], float]
"""The probability of each sequence of T tokens."""


class ToyModel:
    """A table: for every prefix a seeded distribution over V tokens, float64."""

    def __init__(self, *, seed: int, vocab_size: int, sharpness: float, sees_prefix: bool = True) -> None:
        """Fix the table; without ``sees_prefix`` a row knows its position alone, as a block drafter's."""
        self.seed = seed
        self.vocab_size = vocab_size
        self.sharpness = sharpness
        self.sees_prefix = sees_prefix
        self._rows: dict[tuple[int, ...], Tensor] = {}

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        """[V] float64 for the token after the prefix."""
        key = prefix if self.sees_prefix else (len(prefix),)
        if key not in self._rows:
            row_seed = self.seed
            for token in (len(key), *key):
                row_seed = (row_seed * 31 + token + 1) % (1 << 31)
            generator = torch.Generator().manual_seed(row_seed)
            row = torch.randn(self.vocab_size, generator=generator, dtype=torch.float64)
            self._rows[key] = self.sharpness * row
        return self._rows[key]

    def probs(self, prefix: tuple[int, ...]) -> Tensor:
        """[V] float64, the softmax of the logits."""
        return self.logits(prefix).softmax(-1)

    def rows(self, tree: DraftTree) -> TargetRows:
        """The model's distribution after each node of a tree under an empty prefix."""
        return lambda node: self.probs(tuple(tree.token(step) for step in tree.path(node)[1:]))

    def law(self, num_tokens: int) -> Law:
        """The joint distribution of the first tokens it writes alone."""
        return {
            tokens: math.prod(float(self.probs(tokens[:i])[token]) for i, token in enumerate(tokens))
            for tokens in product(range(self.vocab_size), repeat=num_tokens)
        }


def draw_chain(draft: ToyModel, length: int, chance: Chance) -> tuple[DraftTree, Tensor]:
    """A chain drawn token by token from a drafter, and the [K, V] distributions it was drawn from."""
    tokens: list[int] = []
    rows: list[Tensor] = []
    for position in range(length):
        rows.append(draft.probs(tuple(tokens)))
        tokens.append(chance.draw(rows[-1], position, Purpose.DRAFT))
    return DraftTree.chain(tokens), torch.stack(rows)


def emitted_law(rule: Callable[[Chance], Acceptance], target: ToyModel, num_tokens: int) -> Law:
    """The joint distribution of the first tokens of a step, continued by the target where it is shorter."""
    law = dict.fromkeys(product(range(target.vocab_size), repeat=num_tokens), 0.0)
    for acceptance, probability in outcomes(rule):
        emitted = acceptance.tokens[:num_tokens]
        for rest in product(range(target.vocab_size), repeat=num_tokens - len(emitted)):
            tokens = emitted + rest
            law[tokens] += probability * math.prod(
                float(target.probs(tokens[:i])[tokens[i]]) for i in range(len(emitted), num_tokens)
            )
    return law


def expected_accepted(rule: Callable[[Chance], Acceptance]) -> float:
    """The mean number of drafted tokens the rule keeps in one step."""
    return sum(probability * acceptance.num_accepted for acceptance, probability in outcomes(rule))


def total_variation(left: Law, right: Law) -> float:
    """Half the sum of absolute differences: the most by which any event's probability differs."""
    return math.fsum(abs(left[tokens] - right[tokens]) for tokens in left) / 2
