"""Kinds about weight files, tensors and caches: the defects that ``checkpoint`` names, as findings."""

from draftproof.checkpoint.catalogue import ARTEFACTS
from draftproof.findings.effects import EFFECTS
from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind
from draftproof.names import Layer

__all__ = ["KINDS"]

_EFFECTS = {
    "d2t-degenerate": "draft-map-missing",
    "mtp-missing": "mtp-missing",
    "norm-convention-mixed": "norms-mixed",
    "shard-missing": "shard-missing",
    "tensor-quantised-leftover": "fc-not-loaded",
    "tensor-unfilled": "fc-not-loaded",
    "tensor-unread": "layer-partly-loaded",
}
"""Published cost of a defect, by id."""

KINDS: tuple[Kind, ...] = tuple(
    Kind(
        id=name,
        severity=Severity(artefact.severity),
        layer=Layer.BYTES,
        title=artefact.title,
        means=artefact.means,
        next=artefact.next_step,
        effect=EFFECTS[_EFFECTS[name]] if name in _EFFECTS else None,
    )
    for name, artefact in ARTEFACTS.items()
)
