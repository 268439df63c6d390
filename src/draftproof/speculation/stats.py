"""How well drafts were accepted; the one place these words are computed.

A step is one verification by the target. It drafts d tokens (nodes beside the root), down to some depth; of
the path it takes, a drafted tokens are kept; it emits e tokens, a + 1 unless a stop token cut the step short.

* tau: tokens emitted per step. Micro pools all steps (vLLM's mean acceptance length); macro is the mean over
  requests of each one's mean (z-lab's). Both count the bonus token.
* rate: kept / drafted, pooled; for a tree it falls as the budget grows, so compare it at equal budget only.
* per position i (0-based): unconditional is the share of all steps that kept more than i tokens, so that its
  sum is tau - 1; conditional is that share among the steps that had kept i and drafted one deeper.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from draftproof.errors import UsageError

__all__ = ["Interval", "Step", "Summary", "summary"]

_CONFIDENCE = 0.95
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Step:
    """One verification, as counted."""

    num_drafted: int
    """Nodes beside the root."""

    depth: int
    """The longest path drafted; equal to ``num_drafted`` for a chain."""

    num_accepted: int
    """Drafted tokens kept and emitted."""

    num_emitted: int
    """Tokens the request received from this step, the bonus included."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile bootstrap interval."""

    low: float
    """2.5 % of the resamples lie below."""

    high: float
    """2.5 % of the resamples lie above."""

    resampled: str
    """What was drawn anew: "requests", or "steps" where there is one request alone."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Acceptance over the steps of one or more requests."""

    num_steps: int
    """Verifications by the target."""

    num_emitted: int
    """Tokens emitted."""

    num_drafted: int
    """Tokens drafted."""

    num_accepted: int
    """Drafted tokens kept."""

    tau: float
    """Tokens emitted per step, pooled."""

    tau_macro: float
    """The mean over requests of tokens emitted per step."""

    tau_interval: Interval
    """95 % interval of the pooled tau."""

    rate: float | None
    """Kept / drafted; None where nothing was drafted."""

    per_position: tuple[float, ...]
    """Unconditional, one for each depth drafted."""

    per_position_conditional: tuple[float | None, ...]
    """Conditional; None where no step got that far with a draft to judge."""


def summary(requests: Sequence[Sequence[Step]], *, seed: int = 0) -> Summary:
    """The acceptance of one or more requests.

    Args:
        requests: the steps of each; requests without a step are left out.
        seed: of the bootstrap.

    Raises:
        UsageError: there is no step at all.
    """
    requests = [steps for steps in requests if steps]
    steps = [step for request in requests for step in request]
    if not steps:
        raise UsageError(
            "acceptance",
            expected="at least one step",
            found="none",
            where="acceptance statistics",
            means="there is no mean of nothing",
            next_step="generate at least one token",
        )
    drafted = sum(step.num_drafted for step in steps)
    accepted = sum(step.num_accepted for step in steps)
    unconditional, conditional = _by_position(steps)
    return Summary(
        num_steps=len(steps),
        num_emitted=sum(step.num_emitted for step in steps),
        num_drafted=drafted,
        num_accepted=accepted,
        tau=_tau(steps),
        tau_macro=math.fsum(_tau(request) for request in requests) / len(requests),
        tau_interval=_bootstrap(requests, seed),
        rate=accepted / drafted if drafted else None,
        per_position=unconditional,
        per_position_conditional=conditional,
    )


def _tau(steps: Sequence[Step]) -> float:
    return sum(step.num_emitted for step in steps) / len(steps)


def _by_position(steps: Sequence[Step]) -> tuple[tuple[float, ...], tuple[float | None, ...]]:
    unconditional: list[float] = []
    conditional: list[float | None] = []
    for position in range(max(step.depth for step in steps)):
        kept = sum(step.num_accepted > position for step in steps)
        judged = sum(step.num_accepted >= position and step.depth > position for step in steps)
        unconditional.append(kept / len(steps))
        conditional.append(kept / judged if judged else None)
    return tuple(unconditional), tuple(conditional)


def _bootstrap(requests: Sequence[Sequence[Step]], seed: int) -> Interval:
    """Requests are drawn whole: steps of one request resemble each other."""
    alone = len(requests) == 1
    units = [[step] for step in requests[0]] if alone else requests
    counts = [(sum(step.num_emitted for step in unit), len(unit)) for unit in units]
    chance = random.Random(seed)  # noqa: S311 - a resample, not a secret
    taus: list[float] = []
    for _ in range(_RESAMPLES):
        drawn = chance.choices(counts, k=len(counts))
        taus.append(sum(emitted for emitted, _ in drawn) / sum(steps for _, steps in drawn))
    taus.sort()
    edge = round(_RESAMPLES * (1 - _CONFIDENCE) / 2)
    return Interval(taus[edge], taus[-1 - edge], "steps" if alone else "requests")
