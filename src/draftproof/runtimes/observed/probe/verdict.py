"""Verdict: what the groups say when held against each other."""

from collections.abc import Iterator, Sequence

from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding
from draftproof.findings.place import at_file
from draftproof.runtimes.observed.answers import fewer_chunks
from draftproof.runtimes.observed.judge import identities, judge
from draftproof.runtimes.observed.probe.group import Measured
from draftproof.runtimes.observed.significance import is_lower

__all__ = ["differences", "of_group"]

CACHE_SIZE, LENGTH_SIZE, THINKING_SIZE = 0.10, 0.25, 0.15
"""Shares of tau. A warm cache gives the same text, so that little is much; long prompts are other texts. An
ignored window has cost 28 % at 6K tokens (4.57 -> 3.27)."""


def of_group(measured: Measured, where: str) -> Iterator[Finding]:
    """What one group says by itself."""
    yield from measured.findings
    for rank, record in enumerate(measured.acceptances):
        yield from identities(record) if rank else judge(record)
    yield from _silent(measured, where)
    yield from fewer_chunks(where, measured.answers)


def _silent(measured: Measured, where: str) -> Iterator[Finding]:
    """Tokens were made, the server counts drafts, and there are none."""
    counted = [r for r in measured.acceptances if r.num_drafts.value is not None]
    if measured.num_tokens and counted and all(r.num_drafts.value == 0 for r in counted):
        yield found(
            "observed-no-speculation",
            measured.group.name,
            expected=f"drafts, for {measured.num_tokens} tokens",
            found=0,
            at=at_file(where),
        )


def differences(groups: Sequence[Measured], where: str) -> Iterator[Finding]:
    """Cache, length and thinking, each with all else equal."""
    by_name = {measured.group.name: measured for measured in groups}
    comparisons = (
        ("acceptance-depends-on-cache", "long, cold", "long, warm", CACHE_SIZE),
        ("acceptance-depends-on-length", "short, cold", "long, cold", LENGTH_SIZE),
        (
            "acceptance-depends-on-thinking",
            "short, cold, thinking on",
            "short, cold, thinking off",
            THINKING_SIZE,
        ),
    )
    for kind, high, low, size in comparisons:
        if high in by_name and low in by_name:
            yield from _difference(kind, by_name[high], by_name[low], size, where)


def _difference(kind: str, high: Measured, low: Measured, size: float, where: str) -> Iterator[Finding]:
    first, second = high.acceptance, low.acceptance
    if first is None or second is None or first.estimator.source != second.estimator.source:
        return
    either = kind == "acceptance-depends-on-thinking"
    if is_lower(second, first, size) or (either and is_lower(first, second, size)):
        yield found(
            kind,
            "tau",
            expected=f"{first.tau.value:.2f} ({high.group.name})",
            found=f"{second.tau.value:.2f} ({low.group.name})",
            at=at_file(where),
            detail=f"by {first.estimator.source}",
        )
