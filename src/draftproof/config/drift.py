"""Drift: the first layer, counted from the lowest, at which a field stops being what the layer below says."""

from collections.abc import Sequence
from dataclasses import dataclass

from draftproof.config.view import Agreement, Entry, View, same_json
from draftproof.names import Layer

__all__ = ["Drift", "drifts"]

_ORDER = list(Layer)


@dataclass(frozen=True, slots=True)
class Drift:
    """One field that changed on its way up."""

    pointer: str
    first_wrong: Layer
    subject: str
    """The subject of the view that shows it first."""

    below: Entry | None
    """What the layer below says; None where it does not have the field."""

    here: Entry | None


def drifts(views: Sequence[View]) -> tuple[Drift, ...]:
    """Every field's first wrong layer; what is above only repeats it and is not reported.

    Views of one layer (two interpreters) are both held against the layer below them.
    """
    ordered = sorted(views, key=lambda view: _ORDER.index(view.layer))
    pointers = dict.fromkeys(pointer for view in ordered for pointer in view.entries)
    found = [_first(pointer, ordered) for pointer in pointers]
    return tuple(drift for drift in found if drift is not None)


def _first(pointer: str, ordered: Sequence[View]) -> Drift | None:
    for place, view in enumerate(ordered):
        here = view.entries.get(pointer)
        lower = [other for other in ordered[:place] if other.layer is not view.layer]
        if here is not None and here.agreement is not None:
            is_wrong = here.agreement is Agreement.WRONG
        else:
            is_wrong = bool(lower) and not _agrees(pointer, lower[-1], here)
        if is_wrong:
            return Drift(
                pointer, view.layer, view.subject, _entry(lower[-1], pointer) if lower else None, here
            )
    return None


def _agrees(pointer: str, below: View, here: Entry | None) -> bool:
    lower = _entry(below, pointer)
    if lower is None or here is None:
        return lower is here
    return same_json(lower.value, here.value)


def _entry(view: View, pointer: str) -> Entry | None:
    return view.entries.get(pointer)
