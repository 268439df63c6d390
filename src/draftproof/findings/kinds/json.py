"""Kinds about the bytes of a JSON file: the defects that ``config.raw`` names, as findings."""

from draftproof.config.json.defects import DEFECTS
from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind
from draftproof.names import Layer

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = tuple(
    Kind(
        id=name,
        severity=Severity(defect.severity),
        layer=Layer.BYTES,
        title=defect.title,
        means=defect.means,
        next=defect.next_step,
    )
    for name, defect in DEFECTS.items()
)
