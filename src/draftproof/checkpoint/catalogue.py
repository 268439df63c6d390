"""What each artefact defect means and what to do about it; ids are those of ``ArtefactDefect.id``."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from draftproof.checkpoint.file_kinds import FILES, HEADERS, INDEXES
from draftproof.checkpoint.tensor_kinds import CONTENTS, HUB, TABLES

__all__ = ["ARTEFACTS", "ArtefactKind"]


@dataclass(frozen=True, slots=True)
class ArtefactKind:
    """What all defects of one id have in common."""

    severity: str
    """``error``, ``warning`` or ``note``."""

    title: str
    """What is wrong, in one clause."""

    means: str
    next_step: str


ARTEFACTS: Mapping[str, ArtefactKind] = MappingProxyType(
    {
        defect: ArtefactKind(*texts)
        for group in (FILES, HEADERS, INDEXES, CONTENTS, TABLES, HUB)
        for defect, texts in group.items()
    }
)
"""Id -> its kind, for every id that this package gives."""
