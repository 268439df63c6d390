"""Kind: what every finding of one id has in common."""

from dataclasses import dataclass

from draftproof.findings.effects import EFFECTS, Effect
from draftproof.findings.finding import Severity
from draftproof.names import Layer

__all__ = ["Kind", "error", "note", "warning"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One id of the catalogue."""

    id: str
    severity: Severity
    """As a rule; ``also`` lists what circumstances can make of it."""

    layer: Layer
    title: str
    """What is wrong, in one clause."""

    means: str
    next: str
    effect: Effect | None = None
    also: tuple[Severity, ...] = ()


def _kind(
    severity: Severity,
    kind_id: str,
    title: str,
    means: str,
    next_step: str,
    *,
    effect: str | None,
    layer: Layer,
    also: tuple[Severity, ...],
) -> Kind:
    measured = EFFECTS[effect] if effect else None
    return Kind(kind_id, severity, layer, title, means, next_step, measured, also)


def error(
    kind_id: str,
    title: str,
    means: str,
    next_step: str,
    *,
    effect: str | None = None,
    layer: Layer = Layer.BYTES,
    also: tuple[Severity, ...] = (),
) -> Kind:
    """A kind that is an error as a rule; ``effect`` is a key of EFFECTS."""
    return _kind(Severity.ERROR, kind_id, title, means, next_step, effect=effect, layer=layer, also=also)


def warning(
    kind_id: str,
    title: str,
    means: str,
    next_step: str,
    *,
    effect: str | None = None,
    layer: Layer = Layer.BYTES,
    also: tuple[Severity, ...] = (),
) -> Kind:
    """A kind that is a warning as a rule; ``effect`` is a key of EFFECTS."""
    return _kind(Severity.WARNING, kind_id, title, means, next_step, effect=effect, layer=layer, also=also)


def note(
    kind_id: str,
    title: str,
    means: str,
    next_step: str,
    *,
    effect: str | None = None,
    layer: Layer = Layer.BYTES,
    also: tuple[Severity, ...] = (),
) -> Kind:
    """A kind that is a note as a rule; ``effect`` is a key of EFFECTS."""
    return _kind(Severity.NOTE, kind_id, title, means, next_step, effect=effect, layer=layer, also=also)
