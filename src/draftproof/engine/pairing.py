"""Drafter and target held against each other by the rules of ``check``, before anything is loaded."""

from collections.abc import Collection
from pathlib import Path

from draftproof.errors import RefusedInput
from draftproof.findings.check import check
from draftproof.findings.evidence import read_evidence
from draftproof.findings.finding import Finding

__all__ = ["RefusedPair", "refuse_mismatch"]


_OF_TWO = frozenset(
    {"hidden-size-mismatch", "target-depth-mismatch", "tokenizer-mismatch", "vocabulary-mismatch"}
)
"""Findings that say: another target."""


class RefusedPair(RefusedInput):
    """Drafter and target do not belong together; ``id`` is that of the finding of ``check``."""

    def __init__(self, finding: Finding) -> None:
        """Say what the finding says."""
        super().__init__(
            finding.subject,
            expected=str(finding.expected),
            found=str(finding.found),
            where=finding.where,
            means=finding.means,
            next_step=finding.next,
        )
        self.id = finding.id  # type: ignore[misc]  # the class is named by each finding anew
        self.args = (f"{finding.id} {finding.subject}: expected {finding.expected}, found {finding.found}",)


def refuse_mismatch(drafter: Path, target: Path | None, ids: Collection[str]) -> None:
    """Refuse a drafter with one of these findings.

    Args:
        drafter: its directory.
        target: the target's; None where the drafter is part of it.
        ids: the findings that make a forward wrong or impossible.

    Raises:
        RefusedPair: the first of them that ``check`` finds; one about the two comes before what is amiss
            with the drafter, for that may follow from it.
    """
    report = check(read_evidence(str(drafter), target=None if target is None else str(target)))
    fatal = [finding for finding in report.findings if finding.id in ids]
    if fatal:
        raise RefusedPair(min(fatal, key=lambda finding: finding.id not in _OF_TWO))
