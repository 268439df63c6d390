"""Medians and intervals of runs that took turns."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["Figure", "middle", "paired_ratio", "second_jump"]

_RESAMPLES = 2000
_EDGE = _RESAMPLES // 40
"""So many resamples lie outside at each end: 2.5 %."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A median with its 95 % percentile bootstrap interval over rounds."""

    value: float
    low: float
    high: float


def middle(values: Sequence[float]) -> Figure:
    """The median of one arm's rounds."""
    return _bootstrap(len(values), lambda drawn: median(values[i] for i in drawn))


def paired_ratio(mine: Sequence[float], theirs: Sequence[float]) -> Figure:
    """The median over rounds of mine over theirs: a round's two values were taken side by side."""
    ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
    return middle(ratios)


def second_jump(hybrid: dict[int, float], dense: dict[int, float]) -> float:
    """How much more two tokens cost than one on a hybrid, beyond what they cost more on a dense model.

    Matrix products over two rows cost more than over one in every model; what a hybrid adds to that is the
    price of leaving its one-token path. Both are in units of a forward over one token.
    """
    return hybrid[2] / hybrid[1] - dense[2] / dense[1]


def _bootstrap(count: int, value: Callable[[Sequence[int]], float]) -> Figure:
    chance = random.Random(0)  # noqa: S311 - a resample, not a secret
    every = range(count)
    drawn = sorted(value(chance.choices(every, k=count)) for _ in range(_RESAMPLES))
    return Figure(value(every), drawn[_EDGE], drawn[-1 - _EDGE])
