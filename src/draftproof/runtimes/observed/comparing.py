"""Two readings held against each other: what differs, and whether that is acceptance or arithmetic."""

import math
from collections.abc import Iterator
from dataclasses import replace

from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding
from draftproof.findings.place import at_file
from draftproof.runtimes.observed.reading import Reading
from draftproof.runtimes.observed.significance import is_lower
from draftproof.speculation.acceptance import Acceptance

__all__ = ["compared", "held_against"]

_SIZE = 0.05
"""Of tau: one tapped layer off by one has cost 3 to 5 %."""


def compared(reading: Reading, other: Reading) -> Reading:
    """The reading with what it says beside the other one."""
    first, second = reading.acceptance, other.acceptance
    if first is None or second is None:
        return reading
    return replace(
        reading,
        acceptances=(*reading.acceptances, second),
        findings=(*reading.findings, *held_against(first, second)),
    )


def held_against(record: Acceptance, other: Acceptance) -> Iterator[Finding]:
    """What differs between a record and an earlier one."""
    yield from _unequal_drafts(record, other)
    if is_lower(record, other, _SIZE):
        yield found(
            "observed-acceptance-lower",
            "tau",
            expected=f"{other.tau.value:.2f} ({other.where})",
            found=f"{record.tau.value:.2f}",
            at=at_file(record.where),
        )


def _unequal_drafts(record: Acceptance, other: Acceptance) -> Iterator[Finding]:
    """Rates over unequal drafts say nothing; a length, or the tokens kept, does."""
    rates = record.rate.value, other.rate.value
    if rates[0] is None or rates[1] is None or rates[0] == rates[1]:
        return
    here, there = _width(record), _width(other)
    if here is None or there is None or math.isclose(here, there, rel_tol=_SIZE):
        return
    kept = ""
    if record.tau.value is not None and other.tau.value is not None:
        kept = f"tau {record.tau.value:.2f} against {other.tau.value:.2f}"
    yield found(
        "observed-rates-of-unequal-drafts",
        "rate",
        expected=f"{rates[1]:.1%} with drafts of {there:.3g}",
        found=f"{rates[0]:.1%} with drafts of {here:.3g}",
        at=at_file(record.where),
        detail=kept,
    )


def _width(record: Acceptance) -> float | None:
    """Tokens that a draft had: counted where they were, else K."""
    drafts, drafted = record.num_drafts.value, record.num_drafted.value
    return drafted / drafts if drafts and drafted is not None else record.num_draft_tokens.value
