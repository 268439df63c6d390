"""Significance: whether one length is lower than another by more than chance."""

import math

from draftproof.speculation.acceptance import Acceptance

__all__ = ["is_lower"]

SIGMAS = 3.3
"""Two-sided chance of 0.001 for steps that are independent; those of one text resemble each other, hence the
second condition: the difference must also be a sizeable one."""


def is_lower(record: Acceptance, other: Acceptance, size: float) -> bool:
    """Whether tau is lower by more than chance and by more than ``size`` of it; False where unknown."""
    here, there = record.tau.value, other.tau.value
    error, other_error = _standard_error(record), _standard_error(other)
    if here is None or there is None or error is None or other_error is None:
        return False
    gap = there - here
    return gap > size * there and gap > SIGMAS * math.hypot(error, other_error)


def _standard_error(record: Acceptance) -> float | None:
    """Of tau, from the distribution that the shares per position are; None where that is unknown."""
    shares, drafts = record.per_position.value, record.num_drafts.value
    if not shares or not drafts:
        return None
    mean = math.fsum(shares)
    square = math.fsum((2 * i + 1) * share for i, share in enumerate(shares))
    return math.sqrt(max(0.0, square - mean * mean) / drafts)
