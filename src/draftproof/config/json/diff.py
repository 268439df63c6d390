"""What differs between two JSON values by type and value, as differences, as an RFC 6902 patch, as bytes.

``1``, ``1.0``, ``true`` and ``"1"`` are four values; absent is not null; ``-0.0`` is not ``0.0``, since the
sign survives arithmetic. The order of an object's keys is no difference, that of an array's items is.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from draftproof.config.json.pointer import pointer_of
from draftproof.config.json.value import JsonValue, json_type

__all__ = ["ABSENT", "Difference", "Kind", "canonical", "diff", "invert"]

ABSENT = "absent"
"""The type of what is not there."""

_SHAPES = {"object", "array"}


class Kind(StrEnum):
    """In which way two values differ; the first that holds, from top to bottom."""

    ADDED = "added"
    REMOVED = "removed"
    NULL = "null"
    """A value on one side, a written null on the other."""

    TYPE = "type"
    LENGTH = "length"
    """Two arrays of different length."""

    REORDERED = "reordered"
    """Two arrays of the same items in another order."""

    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ."""

    pointer: str
    """RFC 6901, the same in both."""

    kind: Kind
    a: JsonValue
    a_type: str
    """One of null, boolean, integer, float, string, array, object; ``absent`` where nothing is written."""

    b: JsonValue
    b_type: str
    indexes: tuple[int, ...] = ()
    """For two arrays: the indexes whose items differ, those beyond the shorter one included."""


def canonical(value: JsonValue) -> str:
    """The one text of a value: keys sorted, no blanks, ASCII; an integer never looks like a float.

    Two values agree exactly where their canonical texts are equal, and strict reading of the text gives
    the value back.
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def diff(a: JsonValue, b: JsonValue) -> tuple[Difference, ...]:
    """Every difference, in the order of ``a``; what only ``b`` has follows at the end of its object.

    An array of scalars that differs is one difference at the array's pointer. Arrays of equal length with
    objects and arrays at the same indexes are compared item by item, unless only reordered; all other arrays
    that differ are one difference.
    """
    return tuple(_differences(a, b, ()))


def invert(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """The differences the other way round, as ``diff(b, a)`` finds them (up to their order)."""
    swapped = {Kind.ADDED: Kind.REMOVED, Kind.REMOVED: Kind.ADDED}
    return tuple(
        Difference(d.pointer, swapped.get(d.kind, d.kind), d.b, d.b_type, d.a, d.a_type, d.indexes)
        for d in differences
    )


def _differences(a: JsonValue, b: JsonValue, path: tuple[str | int, ...]) -> list[Difference]:
    if isinstance(a, dict) and isinstance(b, dict):
        if path and bool(a) != bool(b) and len(a) + len(b) > 1:
            return [_pair(path, Kind.VALUE, a, b)]  # emptied or filled as a whole: this key is what changed
        return _in_objects(a, b, path)
    if isinstance(a, list) and isinstance(b, list):
        return _in_arrays(a, b, path)
    types = json_type(a), json_type(b)
    if types[0] == types[1]:
        # Equal types are scalars here; canonical keeps -0.0 from 0.0, which == would not.
        return [] if canonical(a) == canonical(b) else [_pair(path, Kind.VALUE, a, b)]
    return [_pair(path, Kind.NULL if "null" in types else Kind.TYPE, a, b)]


def _pair(path: tuple[str | int, ...], kind: Kind, a: JsonValue, b: JsonValue) -> Difference:
    return Difference(pointer_of(path), kind, a, json_type(a), b, json_type(b))


def _in_objects(
    a: dict[str, JsonValue], b: dict[str, JsonValue], path: tuple[str | int, ...]
) -> list[Difference]:
    found: list[Difference] = []
    for key, value in a.items():
        here = (*path, key)
        if key in b:
            found += _differences(value, b[key], here)
        else:
            found.append(Difference(pointer_of(here), Kind.REMOVED, value, json_type(value), None, ABSENT))
    found += [
        Difference(pointer_of((*path, key)), Kind.ADDED, None, ABSENT, value, json_type(value))
        for key, value in b.items()
        if key not in a
    ]
    return found


def _shape(items: list[JsonValue]) -> list[str]:
    """Which items are containers, and of which kind."""
    types = [json_type(item) for item in items]
    return [kind if kind in _SHAPES else "" for kind in types]


def _in_arrays(a: list[JsonValue], b: list[JsonValue], path: tuple[str | int, ...]) -> list[Difference]:
    texts_a, texts_b = [canonical(item) for item in a], [canonical(item) for item in b]
    if texts_a == texts_b:
        return []
    if len(a) != len(b):
        kind = Kind.LENGTH
    elif sorted(texts_a) == sorted(texts_b):
        kind = Kind.REORDERED
    elif _SHAPES & {*_shape(a)} and _shape(a) == _shape(b):
        return [d for i, (x, y) in enumerate(zip(a, b, strict=True)) for d in _differences(x, y, (*path, i))]
    else:
        kind = Kind.VALUE
    shared = min(len(a), len(b))
    indexes = [i for i in range(shared) if texts_a[i] != texts_b[i]]
    indexes += range(shared, max(len(a), len(b)))
    return [Difference(pointer_of(path), kind, a, "array", b, "array", tuple(indexes))]
