"""Check: every rule put to the evidence, in one order; what was found, and what could not be looked at."""

from collections.abc import Iterable
from dataclasses import dataclass

from draftproof.errors import CouldNotLook
from draftproof.findings.evidence import Evidence, Lacking, NotApplicable
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.follow import without_echoes
from draftproof.findings.rule import Rule
from draftproof.findings.rules import (
    blocks,
    drift,
    fields,
    files,
    heads,
    pairs,
    quantisation,
    readers,
    required,
    ropes,
    shapes,
    taps,
    targets,
    tokenizers,
    vocabularies,
    weights,
    windows,
)
from draftproof.names import Layer

__all__ = ["RULES", "Report", "check"]

RULES: tuple[Rule, ...] = (
    *files.RULES,
    *drift.RULES,
    *fields.RULES,
    *required.RULES,
    *taps.RULES,
    *blocks.RULES,
    *windows.RULES,
    *ropes.RULES,
    *targets.RULES,
    *pairs.RULES,
    *tokenizers.RULES,
    *readers.RULES,
    *weights.RULES,
    *shapes.RULES,
    *quantisation.RULES,
    *vocabularies.RULES,
    *heads.RULES,
)

_LAYERS = list(Layer)
_SEVERITIES = list(Severity)


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found, and what it could not look at."""

    findings: tuple[Finding, ...]
    """Lowest layer first, then errors before warnings before notes, then in the order of the file."""

    not_looked: tuple[NotLooked, ...]

    num_looked: int = 0
    """Checks that looked at all they wanted to; those that do not apply to the subject are not counted."""

    @property
    def exit_code(self) -> int:
        """1 where anything but notes was found; else 3 where something required could not be read; else 0."""
        if any(finding.severity is not Severity.NOTE for finding in self.findings):
            return 1
        return 3 if any(entry.is_required for entry in self.not_looked) else 0


def check(evidence: Evidence, rules: Iterable[Rule] = RULES) -> Report:
    """Put every rule to the evidence."""
    findings: dict[tuple[str, str, str], Finding] = {}
    not_looked: list[NotLooked] = []
    num_looked = 0
    for rule in rules:
        lacking = len(not_looked)
        try:
            for answer in rule.ask(evidence):
                if isinstance(answer, NotLooked):
                    not_looked.append(answer)
                else:
                    # Two rules may see one fault: the first, more particular one speaks.
                    findings.setdefault((answer.id, answer.where, answer.subject), answer)
        except NotApplicable:
            continue
        except CouldNotLook as error:
            not_looked.append(NotLooked(rule.name, f"{error.subject}: {error.found}", is_required=True))
        except Lacking as lack:
            not_looked.append(NotLooked(rule.name, str(lack)))
        num_looked += len(not_looked) == lacking
    told = without_echoes(findings.values())
    return Report(tuple(sorted(told, key=_place)), tuple(not_looked), num_looked)


def _place(finding: Finding) -> tuple[int, int, int, str]:
    return (
        _LAYERS.index(finding.layer),
        _SEVERITIES.index(finding.severity),
        finding.line or 0,
        finding.where,
    )
