"""Rule: one question put to the evidence, with the ids it can answer with."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from draftproof.findings.evidence import Evidence
from draftproof.findings.finding import Finding, NotLooked

__all__ = ["Answers", "Rule"]

Answers = Iterator[Finding | NotLooked]


@dataclass(frozen=True, slots=True)
class Rule:
    """A named check."""

    name: str
    """Shown where it could not look."""

    ids: tuple[str, ...]
    """Every finding id it can emit; empty for rules that pass on defects named below this floor."""

    ask: Callable[[Evidence], Answers]
