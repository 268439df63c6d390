"""Receipt: what one write did, with the level of proof reached and the first one not reached."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from draftproof.config.raw import JsonValue
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Evidence, Level, reached
from draftproof.names import Sha256

__all__ = ["ABSENT", "FileState", "OldDigest", "Receipt"]

ABSENT: Literal["absent"] = "absent"
OldDigest = Sha256 | Literal["absent"]


class FileState(StrEnum):
    """What the target was seen to hold when the write was over."""

    NEW = "new"
    OLD = "old"
    OTHER = "other"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class Receipt:
    """One write, over."""

    place: Place
    sha256: Sha256
    """Of the intended content."""

    old_sha256: OldDigest
    """Of what the write was to replace."""

    asked: Level
    evidence: tuple[Evidence, ...]
    """One a level, L0 first."""

    state: FileState
    """By reading it back, not by what was reported."""

    found_sha256: Sha256 | Literal["absent", "unread"]
    """What the read-back found."""

    notes: tuple[str, ...]
    """What else happened on the host: leftovers of killed writes removed, files kept for a person."""

    ledger_entry: int
    """The entry that recorded the intent; the receipt's own entry follows it."""

    @property
    def level(self) -> Level:
        """The highest level such that it and all below it hold."""
        return reached(self.evidence)[0]

    @property
    def is_enough(self) -> bool:
        """Whether the level that was asked for is reached."""
        return self.level >= self.asked

    def as_dict(self) -> dict[str, JsonValue]:
        """The receipt for ``--json`` and for the ledger."""
        level, missing = reached(self.evidence)
        not_reached: Mapping[str, JsonValue] | None = None
        if missing is not None:
            not_reached = {"level": missing.level.name, "reason": missing.how}
        return {
            "schema": "draftproof.receipt/1",
            "target": str(self.place),
            "sha256": self.sha256,
            "old_sha256": self.old_sha256,
            "level": level.name,
            "asked": self.asked.name,
            "not_reached": dict(not_reached) if not_reached else None,
            "state": self.state.value,
            "found_sha256": self.found_sha256,
            "evidence": [item.as_dict() for item in self.evidence],
            "notes": list(self.notes),
            "ledger_entry": self.ledger_entry,
        }
