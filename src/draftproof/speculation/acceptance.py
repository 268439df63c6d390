"""Acceptance: how well drafts were accepted, whoever counted, with every figure's origin and its estimator.

Steps of our own engine, counters of a server, a line of its log and a request's histogram all become this
record. tau counts the bonus token and the rate does not, whatever the source called them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from draftproof.speculation.stats import Summary

__all__ = ["Acceptance", "Estimator", "Figure", "Weighting", "Window", "absent", "of_counts", "of_summary"]

T_co = TypeVar("T_co", covariant=True)


class Weighting(StrEnum):
    """What has one vote in the mean."""

    STEPS = "steps"
    """Micro: every verification; long answers weigh more."""

    REQUESTS = "requests"
    """Macro: every request."""


class Window(StrEnum):
    """Which steps were counted."""

    SINCE_START = "since the server started"
    BETWEEN_SCRAPES = "between two scrapes"
    LOG_INTERVAL = "one interval of the log"
    LATEST_INTERVAL = "the latest interval of the server's own choosing"
    ONE_REQUEST = "one request"
    OWN_STEPS = "the steps at hand"


@dataclass(frozen=True, slots=True)
class Figure(Generic[T_co]):
    """A number and how it was come by; without a number, why there is none."""

    value: T_co | None
    how: str
    within: float = 0.0
    """Half a unit of its last printed digit; 0 where it is exact."""

    def as_dict(self) -> dict[str, object]:
        """The entry for ``--json``."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {"value": value, "how": self.how} | ({"within": self.within} if self.within else {})


def absent(why: str) -> Figure[T_co]:
    """No number, and why."""
    return Figure(None, why)


@dataclass(frozen=True, slots=True)
class Estimator:
    """What the figures estimate: without it two of them cannot be compared."""

    source: str
    """Who counted, e.g. ``vLLM counters``."""

    weighting: Weighting
    window: Window
    scope: str = ""
    """Which part of the server, e.g. ``engine 0, model qwen``; empty for all of it."""

    counts_bonus: bool | None = True
    """Whether the source's own length counted the bonus (the record's tau always does); None: unknown."""

    are_drafts_full: bool = False
    """Whether this source counts every draft as full, so that tau is exactly 1 + K x rate."""

    caution: str = ""
    """What these figures cannot say."""

    @property
    def name(self) -> str:
        """All of it in one line."""
        weights = "each step one vote" if self.weighting is Weighting.STEPS else "each request one vote"
        parts = [self.source, self.scope, self.window.value, weights]
        if self.counts_bonus is not True:
            parts.append("bonus token added here" if self.counts_bonus is False else "bonus token unclear")
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Acceptance by one estimator."""

    where: str
    """The file and line, or the address, that it was read from."""

    estimator: Estimator
    num_drafts: Figure[int]
    """Steps that verified a draft."""

    num_drafted: Figure[int]
    num_accepted: Figure[int]
    num_draft_tokens: Figure[int]
    """K: tokens a draft has when it is full."""

    tau: Figure[float]
    """Tokens per step, the bonus counted: 1 + accepted / drafts."""

    rate: Figure[float]
    """Accepted / drafted, no bonus."""

    per_position: Figure[tuple[float, ...]]
    """The share of all drafts that kept more than i tokens, i from 0: unconditional, never rising."""

    @property
    def conditional(self) -> tuple[float | None, ...] | None:
        """The share of drafts that kept i tokens and the next one too; None where none had kept i."""
        shares = self.per_position.value
        if shares is None:
            return None
        before = (1.0, *shares[:-1])
        return tuple(now / last if last > 0 else None for now, last in zip(shares, before, strict=True))

    def as_dict(self) -> dict[str, object]:
        """The record for ``--json``."""
        estimator = self.estimator
        conditional = self.conditional
        return {
            "where": self.where,
            "estimator": {
                "name": estimator.name,
                "source": estimator.source,
                "scope": estimator.scope,
                "weighting": estimator.weighting.value,
                "window": estimator.window.value,
                "counts_bonus": estimator.counts_bonus,
                "caution": estimator.caution,
            },
            "num_drafts": self.num_drafts.as_dict(),
            "num_drafted": self.num_drafted.as_dict(),
            "num_accepted": self.num_accepted.as_dict(),
            "num_draft_tokens": self.num_draft_tokens.as_dict(),
            "tau": self.tau.as_dict(),
            "rate": self.rate.as_dict(),
            "per_position": self.per_position.as_dict(),
            "per_position_conditional": None if conditional is None else list(conditional),
        }


def of_counts(
    where: str,
    estimator: Estimator,
    *,
    drafts: int,
    drafted: int,
    accepted: int,
    num_draft_tokens: Figure[int],
    accepted_per_position: Sequence[int] | None,
) -> Acceptance:
    """The acceptance that plain counts make; nothing is checked here, and nothing divided by zero."""
    counted, empty = "counted", "no draft was verified in this window"
    shares: Figure[tuple[float, ...]] = absent(f"{estimator.source} does not count positions")
    if accepted_per_position is not None:
        shares = absent(empty)
        if drafts > 0:
            shares = Figure(tuple(n / drafts for n in accepted_per_position), "accepted there / drafts")
    return Acceptance(
        where,
        estimator,
        Figure(drafts, counted),
        Figure(drafted, counted),
        Figure(accepted, counted),
        num_draft_tokens,
        Figure(1 + accepted / drafts, "1 + accepted / drafts") if drafts > 0 else absent(empty),
        Figure(accepted / drafted, "accepted / drafted") if drafted > 0 else absent(empty),
        shares,
    )


def of_summary(where: str, summary: Summary, *, num_draft_tokens: int) -> Acceptance:
    """The acceptance of our own steps, pooled; a step cut short by a stop token emits what it emits."""
    counted = "counted step by step"
    return Acceptance(
        where,
        Estimator("draftproof steps", Weighting.STEPS, Window.OWN_STEPS),
        Figure(summary.num_steps, counted),
        Figure(summary.num_drafted, counted),
        Figure(summary.num_accepted, counted),
        Figure(num_draft_tokens, "as run"),
        Figure(summary.tau, "emitted / steps"),
        absent("nothing was drafted") if summary.rate is None else Figure(summary.rate, "accepted / drafted"),
        Figure(summary.per_position, "steps that kept more than i / steps"),
    )
