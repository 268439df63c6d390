"""Where chance enters: a number for a seed, a position and a purpose, and for nothing else.

A draw depends on no draw before it, so the length of a draft, the other requests of a batch and the device
change nothing. Every random rule asks a ``Chance``; asking ``outcomes`` instead of a seeded one runs the same
rule through all its branches and gives the exact probability of each result.

Draws that a step makes about its draft are that step's own. Block verification decides by what was drafted
behind the token it refuses: were those numbers drawn again when the next step comes to that position, they
would no longer be random.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from draftproof.errors import RefusedInput, UsageError

__all__ = ["Chance", "Purpose", "SeededChance", "outcomes"]

Result = TypeVar("Result")

_DOUBLE_BITS = 53  # a double between 0 and 1 holds this many random bits without rounding up to 1


class Purpose(IntEnum):
    """What a draw is for; two purposes at one position are independent."""

    TARGET = 0
    """A token from the target's distribution."""

    DRAFT = 1
    """A token from the drafter's distribution."""

    KEEP = 2
    """Whether a drafted token is kept."""

    RESIDUAL = 3
    """The token after the last one kept, from what the drafter did not cover."""


class Chance(Protocol):
    """A source of decisions, each with its exact probability."""

    def happens(self, probability: float, position: int, purpose: Purpose) -> bool:
        """True with the given probability."""
        ...

    def draw(self, weights: Tensor, position: int, purpose: Purpose) -> int:
        """An index, each with a probability in proportion to its weight; weights [V] need not sum to 1."""
        ...

    def of_step(self, position: int) -> "Chance":
        """The same source for the step whose first token is at ``position``.

        Target tokens are drawn as in any other step; all else is drawn anew.
        """
        ...


class SeededChance:
    """Chance from a seed: the same request gives the same text on any machine, drafted or not."""

    def __init__(self, seed: int, *, step: int | None = None) -> None:
        """Keep the seed, any integer of 64 bits, and the position of the step's first token, if of a step.

        Raises:
            UsageError: the seed has more bits.
        """
        self._number = seed
        self._step = b"" if step is None else step.to_bytes(8, "big")
        try:
            self._seed = seed.to_bytes(8, "big", signed=seed < 0)
        except OverflowError as error:
            raise UsageError(
                "seed",
                expected="an integer of 64 bits",
                found=str(seed),
                where="sampling options",
                means="two seeds could write the same text",
                next_step="choose a smaller one",
            ) from error

    def of_step(self, position: int) -> "SeededChance":
        """The chance of the step whose first token is at ``position``."""
        return SeededChance(self._number, step=position)

    def uniform(self, position: int, purpose: Purpose) -> float:
        """A number in [0, 1), 53 bits of a keyed hash of position, purpose and step (TARGET: no step)."""
        words = position.to_bytes(8, "big") + purpose.to_bytes(1, "big")
        if purpose is not Purpose.TARGET:
            words += self._step
        digest = hashlib.blake2b(words, digest_size=8, key=self._seed).digest()
        return (int.from_bytes(digest, "big") >> (64 - _DOUBLE_BITS)) / (1 << _DOUBLE_BITS)

    def happens(self, probability: float, position: int, purpose: Purpose) -> bool:
        """True with the given probability: never at 0, always at 1."""
        return self.uniform(position, purpose) < probability

    def draw(self, weights: Tensor, position: int, purpose: Purpose) -> int:
        """The first index whose cumulative weight passes the number drawn; one of weight 0 never does.

        Raises:
            RefusedInput: a weight is negative or NaN, or all are 0.
        """
        cumulative = weights.double().cumsum(-1)
        total = _checked_total(weights, cumulative)
        sought = torch.tensor([self.uniform(position, purpose) * total], dtype=torch.float64)
        found = int(torch.searchsorted(cumulative, sought.to(cumulative.device), right=True))
        # Rounding can bring u * total up to total; the last index with a weight is then the one meant.
        return found if found < len(weights) else int(weights.nonzero()[-1])


def outcomes(rule: Callable[[Chance], Result]) -> list[tuple[Result, float]]:
    """Every result the rule can have, with its probability; results reached twice are listed twice.

    The rule is run once for each branch, so its decisions must depend on the ``Chance`` alone.

    Raises:
        RuntimeError: the rule asks for one number twice, so that its decisions are not independent.
    """
    return list(_walk(rule))


def _walk(rule: Callable[[Chance], Result]) -> Iterator[tuple[Result, float]]:
    pending: list[tuple[int, ...]] = [()]
    while pending:
        branch = _Branch(pending.pop())
        result = rule(_BranchChance(branch, None))
        pending += branch.others
        yield result, branch.probability


@dataclass(frozen=True, slots=True)
class _BranchChance:
    """A branch as a rule sees it."""

    branch: "_Branch"
    step: int | None

    def happens(self, probability: float, position: int, purpose: Purpose) -> bool:
        clipped = min(max(probability, 0.0), 1.0)
        return bool(self._decide([1 - clipped, clipped], position, purpose))

    def draw(self, weights: Tensor, position: int, purpose: Purpose) -> int:
        total = _checked_total(weights, weights.double().cumsum(-1))
        return self._decide([weight / total for weight in weights.tolist()], position, purpose)

    def of_step(self, position: int) -> "_BranchChance":
        return _BranchChance(self.branch, position)

    def _decide(self, probabilities: list[float], position: int, purpose: Purpose) -> int:
        step = None if purpose is Purpose.TARGET else self.step
        return self.branch.decide(probabilities, (position, purpose, step))


class _Branch:
    """Repeats given decisions, then takes the first possible one and notes the others."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self.script = script
        self.taken: tuple[int, ...] = ()
        self.others: list[tuple[int, ...]] = []
        self.probability = 1.0
        self._asked: set[tuple[int, Purpose, int | None]] = set()

    def decide(self, probabilities: list[float], number: tuple[int, Purpose, int | None]) -> int:
        if number in self._asked:
            raise RuntimeError(f"the random number of (position, purpose, step) {number} is used twice")
        self._asked.add(number)
        possible = [choice for choice, probability in enumerate(probabilities) if probability > 0]
        if len(self.taken) < len(self.script):
            choice = self.script[len(self.taken)]
        else:
            choice, *rest = possible
            self.others += [(*self.taken, other) for other in rest]
        self.taken = (*self.taken, choice)
        self.probability *= probabilities[choice]
        return choice


def _checked_total(weights: Tensor, cumulative: Tensor) -> float:
    total = float(cumulative[-1])
    if not 0 < total < float("inf") or bool((weights < 0).any()):
        raise _refused("weights", "none negative or NaN and one above 0", f"a total of {total}")
    return total


def _refused(subject: str, expected: str, found: object) -> RefusedInput:
    return RefusedInput(
        subject,
        expected=expected,
        found=str(found),
        where="a random choice",
        means="no token can be drawn",
        next_step="check the logits the distribution was made from, and the sampling options",
    )
