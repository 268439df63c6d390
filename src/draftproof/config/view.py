"""View: what one layer says about a file's fields, each value with its source."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from draftproof.config.json.diff import canonical
from draftproof.config.raw import JsonValue, RawConfig, pointer_of
from draftproof.config.source import Source, Written
from draftproof.names import Layer

__all__ = ["Agreement", "Entry", "View", "leaves", "same_json", "view_of_raw"]


class Agreement(StrEnum):
    """How a layer's value stands to the one below it, where its reader has judged that."""

    SAME = "same"
    NORMALISED = "normalised"
    """Written otherwise, meaning the same: moved, renamed, a default of no consequence."""

    WRONG = "wrong"
    """A consumer of this layer sees something else than the layer below says."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One field at one layer."""

    value: JsonValue
    source: Source
    agreement: Agreement | None = None
    """None: not judged; to be compared with the layer below by value and JSON type."""


@dataclass(frozen=True, slots=True)
class View:
    """Values at one layer. A pointer that is not in ``entries`` is absent there."""

    layer: Layer
    subject: str
    """What was looked at: a path, an interpreter, a process."""

    entries: Mapping[str, Entry]
    """RFC 6901 pointer in the file -> its entry. Lists are leaves; objects are opened."""


def view_of_raw(raw: RawConfig, layer: Layer) -> View:
    """What the file itself says, at INTENT or BYTES."""
    entries = {
        pointer: Entry(value, Written(pointer, raw.line(pointer)))
        for path, value in leaves(raw.value)
        for pointer in [pointer_of(path)]
    }
    return View(layer, raw.origin, entries)


def leaves(
    value: Mapping[str, JsonValue], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    """Every (path, value) below ``value``; lists and empty objects are leaves."""
    for key, inside in value.items():
        if isinstance(inside, dict) and inside:
            yield from leaves(inside, (*path, key))
        else:
            yield (*path, key), inside


def same_json(one: JsonValue, other: JsonValue) -> bool:
    """Equal in value and in JSON type at every depth: ``1``, ``1.0``, ``true`` and ``"1"`` all differ."""
    return canonical(one) == canonical(other)
