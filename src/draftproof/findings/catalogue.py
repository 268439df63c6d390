"""The catalogue: every finding id of the product, each with what it means and what to do next."""

import difflib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from draftproof.config.raw import JsonValue
from draftproof.findings.failures import FAILURES
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.kind import Kind
from draftproof.findings.kinds import (
    artefacts,
    attention,
    builds,
    config,
    drift,
    effective,
    json,
    launches,
    observed,
    pairs,
    parsed,
    ropes,
    tokenizers,
    weights,
    writes,
)
from draftproof.findings.place import Place
from draftproof.names import Layer

__all__ = ["CATALOGUE", "found", "nearest"]

CATALOGUE: Mapping[str, Kind] = MappingProxyType(
    {
        kind.id: kind
        for kinds in (
            json.KINDS,
            artefacts.KINDS,
            drift.KINDS,
            config.KINDS,
            ropes.KINDS,
            attention.KINDS,
            pairs.KINDS,
            tokenizers.KINDS,
            weights.KINDS,
            parsed.KINDS,
            effective.KINDS,
            observed.KINDS,
            writes.KINDS,
            builds.KINDS,
            launches.KINDS,
        )
        for kind in kinds
    }
)


Shown = JsonValue | Sequence[int] | Sequence[str]
"""A value as a finding tells it; sequences become lists."""


def found(
    kind_id: str,
    subject: str,
    *,
    expected: Shown,
    found: Shown,
    at: Place,
    detail: str = "",
    severity: Severity | None = None,
    layer: Layer | None = None,
) -> Finding:
    """A finding of a catalogued kind; ``detail`` is what this case adds to the kind's meaning."""
    kind = CATALOGUE[kind_id]
    chosen = severity or kind.severity
    if chosen not in (kind.severity, *kind.also):
        raise ValueError(f"{kind_id} is not catalogued as {chosen}")
    means = "; ".join(
        part for part in (kind.means, detail, kind.effect.sentence() if kind.effect else "") if part
    )
    return Finding(
        id=kind_id,
        severity=chosen,
        layer=layer or kind.layer,
        subject=subject,
        expected=_json(expected),
        found=_json(found),
        where=at.where,
        means=means,
        next=kind.next,
        pointer=at.pointer,
        line=at.line,
    )


def _json(value: Shown) -> JsonValue:
    return [*value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def nearest(kind_id: str) -> list[str]:
    """Up to five ids of the catalogue that look or sound like ``kind_id``."""
    close = difflib.get_close_matches(kind_id, (*CATALOGUE, *FAILURES), n=5, cutoff=0.5)
    if close:
        return close
    words = {word for word in kind_id.lower().split("-") if word}
    return [known for known in CATALOGUE if words & set(known.split("-"))][:5]
