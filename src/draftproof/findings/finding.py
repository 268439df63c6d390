"""Finding: one statement about a subject, at one layer, with what it means and what to do next."""

from dataclasses import dataclass
from enum import StrEnum

from draftproof.config.raw import JsonValue
from draftproof.names import Layer

__all__ = ["Finding", "NotLooked", "Severity"]


class Severity(StrEnum):
    """How much a finding matters. Only notes leave the exit status at 0."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it must be, or that one should know."""

    id: str
    severity: Severity
    layer: Layer
    subject: str
    """What it is about: a field, a tensor, a file."""

    expected: JsonValue
    found: JsonValue
    where: str
    """``path#/json/pointer line N`` for a value, the path for a file, ``path tensor NAME`` for a tensor."""

    means: str
    """The consequence, with the published effect size and its source if there is one."""

    next: str
    """The next step, a command where there is one."""

    pointer: str | None = None
    line: int | None = None
    cause: str | None = None
    """For a file that is not as it was written or announced: how it came to be so, e.g. ``cut_at``."""

    def as_dict(self) -> dict[str, JsonValue]:
        """The finding for ``--json``."""
        document: dict[str, JsonValue] = {
            "id": self.id,
            "severity": self.severity.value,
            "layer": self.layer.value,
            "subject": self.subject,
            "expected": self.expected,
            "found": self.found,
            "where": self.where,
            "means": self.means,
            "next": self.next,
            "pointer": self.pointer,
            "line": self.line,
        }
        if self.cause is not None:
            document["cause"] = self.cause
        return document


@dataclass(frozen=True, slots=True)
class NotLooked:
    """A check that could not look, and why. Never to be read as "fine"."""

    check: str
    reason: str
    is_required: bool = False
    """The subject, or an input named by an option, could not be read: exit 3 (findings make it 1)."""

    def as_dict(self) -> dict[str, JsonValue]:
        """The entry for ``--json``."""
        return {"check": self.check, "reason": self.reason}
