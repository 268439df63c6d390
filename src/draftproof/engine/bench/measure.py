"""From runs to numbers: medians over rounds, pooled over prompts, with bootstrap intervals over prompts."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from draftproof.engine.bench.arms import BASELINE
from draftproof.engine.bench.run import Run
from draftproof.speculation.stats import Summary, summary

__all__ = ["PARTS", "Measured", "Pace", "Split", "measure"]

PARTS = ("draft", "verify", "accept", "commit", "other")
"""What the time of a step is spent on."""

Split = Mapping[str, float]
"""Seconds a step for each of ``PARTS``."""

_RESAMPLES, _EDGE = 1000, 25
"""Of the bootstrap: the interval leaves out this many at each end, 2.5 %."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A rate with its interval over prompts."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One arm in numbers."""

    acceptance: Summary
    tokens_per_s: Pace
    speedup: Pace
    """Over the baseline, prompt by prompt paired."""

    cost: Split


def measure(runs: Sequence[Run]) -> dict[str, Measured]:
    """Every arm's numbers by its name.

    Time is that of decoding, prefill left out. Steps and tokens are those of the first round: greedy decoding
    repeats itself.
    """
    arms = list(dict.fromkeys(run.arm for run in runs))
    prompts = list(dict.fromkeys(run.prompt for run in runs))
    by = {arm: [_of(runs, arm, prompt) for prompt in prompts] for arm in arms}
    rates = {arm: [_rate(mine) for mine in by[arm]] for arm in arms}
    found = {}
    for arm in arms:
        first = [mine[0].generation for mine in by[arm]]
        found[arm] = Measured(
            acceptance=summary([generation.steps for generation in first]),
            tokens_per_s=_bootstrap(len(prompts), _speed_of(rates[arm])),
            speedup=_bootstrap(len(prompts), _speedup_of(rates[arm], rates[BASELINE])),
            cost=_split([run for mine in by[arm] for run in mine]),
        )
    return found


def _of(runs: Sequence[Run], arm: str, prompt: str) -> list[Run]:
    return [run for run in runs if run.arm == arm and run.prompt == prompt]


def _rate(runs: Sequence[Run]) -> tuple[int, float]:
    """Tokens of one prompt, and the median over rounds of the seconds they took."""
    return len(runs[0].generation.token_ids), median(run.generation.seconds.decode for run in runs)


def _speed_of(rates: Sequence[tuple[int, float]]) -> Callable[[Sequence[int]], float]:
    return lambda drawn: sum(rates[i][0] for i in drawn) / sum(rates[i][1] for i in drawn)


def _speedup_of(
    rates: Sequence[tuple[int, float]], base: Sequence[tuple[int, float]]
) -> Callable[[Sequence[int]], float]:
    mine, theirs = _speed_of(rates), _speed_of(base)
    return lambda drawn: mine(drawn) / theirs(drawn)


def _bootstrap(count: int, value: Callable[[Sequence[int]], float]) -> Pace:
    chance = random.Random(0)  # noqa: S311 - a resample, not a secret
    every = range(count)
    values = sorted(value(chance.choices(every, k=count)) for _ in range(_RESAMPLES))
    return Pace(value(every), values[_EDGE], values[-1 - _EDGE])


def _split(runs: Sequence[Run]) -> dict[str, float]:
    """Seconds a step by what they were spent on: of each part the median over runs of its mean step."""
    return {
        part: median(getattr(run.generation.seconds, part) / len(run.generation.steps) for run in runs)
        for part in PARTS
    }
