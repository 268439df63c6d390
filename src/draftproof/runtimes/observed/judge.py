"""What an acceptance record says of itself: identities that must hold, and shapes that name a fault.

Limits are stated where they are used, with the chance that a healthy drafter meets them by bad luck.
"""

import math
from collections.abc import Iterator, Sequence

from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.place import at_file
from draftproof.speculation.acceptance import Acceptance

__all__ = ["identities", "judge"]

FEWEST_DRAFTED = 50
"""At a rate of 10 % nothing accepted of 50 has a chance of 0.5 % (0.9 ** 50)."""

FEWEST_DRAFTS = 30
COLLAPSED_TAU = 1.35
"""Garbage keeps a first position of 0.17 to 0.34 at most and nothing after it (published signatures)."""

SURE, LIKELY = 0.001, 0.05
"""Chances that a cliff is bad luck, for a warning and for a note."""

_ROUNDING = 1e-6


def judge(record: Acceptance) -> Iterator[Finding]:
    """Everything that can be said of one record alone."""
    broken = list(identities(record))
    yield from broken
    yield from _bonus(record)
    if not broken:
        yield from _shape(record)


def identities(record: Acceptance) -> Iterator[Finding]:
    """Length, rate, counts and positions of one source must tell the same."""
    for subject, expected, told in (*_of_length(record), *_of_rate(record), *_of_positions(record)):
        yield found(
            "observed-identity-broken",
            subject,
            expected=expected,
            found=told,
            at=at_file(record.where),
            detail=record.estimator.name,
        )


Broken = tuple[str, str, str]


def _of_length(record: Acceptance) -> Iterator[Broken]:
    tau, shares = record.tau, record.per_position
    drafts, accepted = record.num_drafts.value, record.num_accepted.value
    if tau.value is None:
        return
    if tau.value + tau.within < 1 - _ROUNDING:
        yield "tau", "1 or more: the bonus token is counted", f"{tau.value:.4g}"
    if drafts and accepted is not None and _apart(tau.value, 1 + accepted / drafts, tau.within):
        yield "tau", f"1 + accepted / drafts = {1 + accepted / drafts:.4f}", f"{tau.value:.4f}"
    if shares.value is not None:
        total = 1 + math.fsum(shares.value)
        if _apart(tau.value, total, tau.within + shares.within * len(shares.value)):
            yield "tau", f"1 + the sum of the shares per position = {total:.4f}", f"{tau.value:.4f}"


def _of_rate(record: Acceptance) -> Iterator[Broken]:
    rate, tau, width = record.rate, record.tau, record.num_draft_tokens.value
    drafted, accepted, drafts = record.num_drafted.value, record.num_accepted.value, record.num_drafts.value
    if rate.value is not None and not 0 <= rate.value <= 1:
        yield "rate", "between 0 and 1", f"{rate.value:.4g}"
    if drafted is not None and accepted is not None and accepted > drafted:
        yield "accepted", f"at most drafted = {drafted}", str(accepted)
    if drafts is not None and drafted is not None and width is not None and drafted > drafts * width:
        yield "drafted", f"at most K x drafts = {drafts * width}", str(drafted)
    if rate.value is None:
        return
    if drafted and accepted is not None and _apart(rate.value, accepted / drafted, rate.within):
        yield "rate", f"accepted / drafted = {accepted / drafted:.4f}", f"{rate.value:.4f}"
    if tau.value is not None and width is not None:
        most = 1 + width * (rate.value + rate.within) + tau.within + _ROUNDING
        least = 1 + width * (rate.value - rate.within) - tau.within - _ROUNDING
        if tau.value > most or (record.estimator.are_drafts_full and tau.value < least):
            yield "tau", f"1 + K x rate = {1 + width * rate.value:.4f} with K = {width}", f"{tau.value:.4f}"


def _of_positions(record: Acceptance) -> Iterator[Broken]:
    shares, width = record.per_position.value, record.num_draft_tokens.value
    slack = 2 * record.per_position.within + _ROUNDING
    if shares is None:
        return
    if width is not None and len(shares) != width:
        yield "per_position", f"{width} positions", str(len(shares))
    for i, share in enumerate(shares):
        before = shares[i - 1] if i else 1.0
        if share < -slack or share > before + slack:
            yield f"per_position {i}", f"between 0 and {before:.4f}, the share before it", f"{share:.4f}"


def _apart(one: float, other: float, within: float) -> bool:
    return abs(one - other) > within + _ROUNDING * max(1.0, abs(other))


def _bonus(record: Acceptance) -> Iterator[Finding]:
    if record.estimator.counts_bonus is False and record.tau.value is not None:
        yield found(
            "observed-bonus-convention",
            "tau",
            expected=f"{record.tau.value:.2f} with the bonus token",
            found=f"{record.tau.value - 1:.2f} without it",
            at=at_file(record.where),
            detail=f"{record.estimator.source}: the printed length equals the sum of the shares per position",
        )


def _shape(record: Acceptance) -> Iterator[Finding]:
    drafted, accepted = record.num_drafted.value, record.num_accepted.value
    tau, drafts = record.tau.value, record.num_drafts.value
    if accepted == 0 and drafted is not None and drafted >= FEWEST_DRAFTED:
        yield found(
            "observed-nothing-accepted",
            "accepted",
            expected=f"some of {drafted} drafted",
            found=0,
            at=at_file(record.where),
        )
        return
    if tau is not None and tau < COLLAPSED_TAU and _is_enough(record):
        uncounted = "" if drafts or drafted else "; the source tells no counts, one interval may be few steps"
        yield found(
            "observed-acceptance-collapsed",
            "tau",
            expected=f"{COLLAPSED_TAU} or more",
            found=round(tau, 3),
            at=at_file(record.where),
            detail=_first_positions(record.per_position.value) + uncounted,
        )
    yield from _cliff(record)


def _is_enough(record: Acceptance) -> bool:
    """Whether there are drafts enough to judge; a source without counts is believed, and that is said."""
    drafts, drafted = record.num_drafts.value, record.num_drafted.value
    if drafts is None:
        return drafted is None or drafted >= FEWEST_DRAFTS * (record.num_draft_tokens.value or 1)
    return drafts >= FEWEST_DRAFTS


def _first_positions(shares: Sequence[float] | None) -> str:
    if not shares:
        return ""
    told = ", ".join(f"{share:.3f}" for share in shares[:4])
    return f"shares per position {told}"


def _cliff(record: Acceptance) -> Iterator[Finding]:
    """Position ``edge`` and all after it keep nothing, though those before it went on as a rule."""
    shares, drafts = record.per_position.value, record.num_drafts.value
    if not shares or drafts is None or shares[-1] > record.per_position.within:
        return
    kept = [share for share in shares if share > record.per_position.within]
    edge = len(kept)
    if edge == 0 or any(share > record.per_position.within for share in shares[edge:]):
        return
    arrived = round(kept[-1] * drafts)
    going_on = kept[-1] ** (1 / edge)  # the geometric mean of the conditional shares before the edge
    chance = (1 - going_on) ** arrived
    if chance > LIKELY:
        return
    yield found(
        "observed-acceptance-cliff",
        "per_position",
        expected=f"about {arrived * going_on:.1f} of {arrived} drafts beyond position {edge - 1}",
        found=f"none at position {edge} to {len(shares) - 1}",
        at=at_file(record.where),
        severity=Severity.WARNING if chance < SURE else Severity.NOTE,
        detail=f"by bad luck with a chance of {chance:.2g}; K = {len(shares)} may also be more than it was "
        "trained for",
    )
