"""Problem: one thing a parser had to step over, told and not repaired."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Problem", "ProblemKind"]


class ProblemKind(StrEnum):
    """What kind of thing a parser stumbled over."""

    MISTYPED = "mistyped"
    """A field that is read holds another JSON type than its readers expect."""

    CONFLICT = "conflict"
    """Two fields of the file that must agree do not."""

    ODD = "odd"
    """The file is recognised by something else than the field that should name it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing a parser had to step over; rules turn these into findings."""

    kind: ProblemKind
    pointer: str
    line: int
    expected: str
    found: str
