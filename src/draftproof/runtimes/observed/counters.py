"""Counters: a server's running totals, and what happened between two looks at them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from draftproof.errors import CouldNotLook
from draftproof.runtimes.observed.prometheus import Sample

__all__ = ["Counters", "Traffic", "summed", "whole"]

_EXACT = 2**53
"""Above it a float no longer holds every whole number."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Running totals of one engine."""

    drafts: int
    drafted: int
    accepted: int
    per_position: tuple[int, ...] | None
    """Drafts that kept more than i tokens; None where that is not counted."""

    def minus(self, before: "Counters") -> "Counters | None":
        """What was added since ``before``; None where a total went backwards: the server restarted."""
        shares: tuple[int, ...] | None = None
        if self.per_position is not None and before.per_position is not None:
            if len(self.per_position) != len(before.per_position):
                return None
            shares = tuple(
                now - then for now, then in zip(self.per_position, before.per_position, strict=True)
            )
        added = Counters(
            self.drafts - before.drafts,
            self.drafted - before.drafted,
            self.accepted - before.accepted,
            shares,
        )
        numbers = [added.drafts, added.drafted, added.accepted, *(shares or ())]
        return None if any(number < 0 for number in numbers) else added

    def plus(self, other: "Counters") -> "Counters":
        """Both together; positions only where both have as many."""
        shares: tuple[int, ...] | None = None
        mine, theirs = self.per_position, other.per_position
        if mine is not None and theirs is not None and len(mine) == len(theirs):
            shares = tuple(a + b for a, b in zip(mine, theirs, strict=True))
        return Counters(
            self.drafts + other.drafts, self.drafted + other.drafted, self.accepted + other.accepted, shares
        )


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a server did in all, whoever asked; None where it does not count that."""

    generated: int | None = None
    """Tokens handed out."""

    requests: int | None = None
    """Requests finished."""

    running: int | None = None
    """Requests under way now; not a total."""

    cache_queried: int | None = None
    cache_hit: int | None = None
    """Prompt tokens looked up in the prefix cache, and found there."""

    def minus(self, before: "Traffic") -> "Traffic":
        """What was added since ``before``; ``running`` stays as it is now."""
        return Traffic(
            **{
                field.name: _less(getattr(self, field.name), getattr(before, field.name))
                for field in fields(Traffic)
                if field.name != "running"
            },
            running=self.running,
        )


def summed(samples: Iterable[Sample]) -> Mapping[str, int]:
    """Counter name, without ``_total``, -> its sum over all labels. Raises CouldNotLook as ``whole``."""
    sums: dict[str, int] = {}
    for sample in samples:
        name = sample.name.removesuffix("_total")
        is_total = not sample.name.endswith(("_created", "_bucket", "_sum", "_count"))
        if is_total and math.isfinite(sample.value) and sample.value == int(sample.value):
            sums[name] = sums.get(name, 0) + int(sample.value)
    return sums


def whole(sample: Sample, where: str) -> int:
    """The sample as a count.

    Raises:
        CouldNotLook: it is negative, broken, not finite or too large to be exact.
    """
    value = sample.value
    if not math.isfinite(value) or value < 0 or value != int(value) or value > _EXACT:
        raise CouldNotLook(
            sample.name,
            expected="a whole number, 0 or more",
            found=repr(value),
            where=where,
            means="a counter that does not count cannot be used",
            next_step="ask the server again; if it stays so, report it to the engine",
        )
    return int(value)


def _less(now: int | None, before: int | None) -> int | None:
    return None if now is None or before is None else now - before
