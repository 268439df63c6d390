"""How far a write is proven: levels 0 to 7, each a different claim, and the evidence for one."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from draftproof.config.raw import JsonValue
from draftproof.errors import UsageError

__all__ = ["CLAIMS", "Evidence", "Level", "level_named", "reached"]


class Level(IntEnum):
    """A claim about a file; a higher one says more, and none follows from another."""

    L0 = 0
    L1 = 1
    L2 = 2
    L3 = 3
    L4 = 4
    L5 = 5
    L6 = 6
    L7 = 7


CLAIMS: dict[Level, str] = {
    Level.L0: "the intended bytes are recorded",
    Level.L1: "staged: read back through another descriptor before it got its name",
    Level.L2: "visible: another process found it under its path, whole, by digest",
    Level.L3: "sync acknowledged: fsync of file and directory answered 0 on a file system that honours it",
    Level.L4: "device: read back past the page cache",
    Level.L5: "survived: the same digest under another boot",
    Level.L6: "consumer sees it: same inode and digest in the serving process's mount namespace",
    Level.L7: "consumer read it: the serving process holds this inode",
}
"""What each level claims, and no more."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Whether one level's claim was shown, and how, or why not."""

    level: Level
    holds: bool
    how: str
    """The observation, or the reason that there is none."""

    facts: dict[str, Any]
    """What was seen, as the host reported it."""

    def as_dict(self) -> dict[str, JsonValue]:
        """For receipts."""
        return {
            "level": self.level.name,
            "claim": CLAIMS[self.level],
            "holds": self.holds,
            "how": self.how,
            "facts": self.facts,
        }


def reached(evidence: Sequence[Evidence]) -> tuple[Level, Evidence | None]:
    """The highest level up to which every claim holds, and the evidence of the first that does not.

    Args:
        evidence: One a level, from L0 on, in order; L0 holds (a receipt without recorded bytes is none).
    """
    for index, item in enumerate(evidence):
        if not item.holds:
            return evidence[index - 1].level, item
    return evidence[-1].level, None


def level_named(text: str) -> Level:
    """The level called ``L0`` to ``L7``. Raises UsageError for anything else."""
    for level in Level:
        if level.name == text.upper():
            return level
    raise UsageError(
        "--level",
        expected="L0 to L7",
        found=text,
        where="command line",
        means="nothing was done",
        next_step="--level L2",
    )
