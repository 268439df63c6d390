"""Several records of one estimator put together: by steps, and by requests."""

import math
from collections.abc import Sequence
from dataclasses import replace

from draftproof.speculation.acceptance import (
    Acceptance,
    Figure,
    Weighting,
    Window,
    absent,
    of_counts,
)

__all__ = ["by_requests", "by_steps"]


def by_steps(where: str, records: Sequence[Acceptance], window: Window) -> Acceptance | None:
    """All steps pooled; None where one of the records does not count its steps."""
    counts = [(r.num_drafts.value, r.num_drafted.value, r.num_accepted.value) for r in records]
    known = [(a, b, c) for a, b, c in counts if a is not None and b is not None and c is not None]
    if not known or len(known) < len(counts):
        return None
    drafts, drafted, accepted = (sum(column) for column in zip(*known, strict=True))
    first = records[0]
    pooled = of_counts(
        where,
        replace(first.estimator, scope=f"{len(records)} together", window=window),
        drafts=drafts,
        drafted=drafted,
        accepted=accepted,
        num_draft_tokens=_one_width(records),
        accepted_per_position=None,
    )
    return replace(pooled, per_position=_pooled_shares(records, drafts))


def by_requests(where: str, records: Sequence[Acceptance]) -> Acceptance | None:
    """The mean of each request's means, as z-lab's benchmark forms it; None where one has no length."""
    taus = [record.tau.value for record in records if record.tau.value is not None]
    rates = [record.rate.value for record in records if record.rate.value is not None]
    if not taus or len(taus) < len(records):
        return None
    first, uncounted = records[0], "a mean of means has no counts"
    estimator = replace(first.estimator, weighting=Weighting.REQUESTS, scope=f"{len(records)} requests")
    return Acceptance(
        where,
        estimator,
        *(absent(uncounted), absent(uncounted), absent(uncounted)),
        _one_width(records),
        Figure(math.fsum(taus) / len(taus), "mean over requests"),
        Figure(math.fsum(rates) / len(rates), "mean over requests")
        if len(rates) == len(records)
        else absent("a request has none"),
        absent("not formed over requests"),
    )


def _one_width(records: Sequence[Acceptance]) -> Figure[int]:
    widths = {record.num_draft_tokens.value for record in records}
    if len(widths) == 1:
        return records[0].num_draft_tokens
    return absent(f"not one for all: {', '.join(sorted(str(width) for width in widths))}")


def _pooled_shares(records: Sequence[Acceptance], drafts: int) -> Figure[tuple[float, ...]]:
    lists = [record.per_position.value for record in records]
    known = [shares for shares in lists if shares is not None]
    if not drafts or len(known) < len(lists):
        return absent("not known for every part")
    width = max(len(shares) for shares in known)
    weights = [record.num_drafts.value or 0 for record in records]
    pooled = tuple(
        math.fsum(w * s[i] for w, s in zip(weights, known, strict=True) if i < len(s)) / drafts
        for i in range(width)
    )
    within = max(record.per_position.within for record in records)
    return Figure(pooled, "weighted by drafts", within)
