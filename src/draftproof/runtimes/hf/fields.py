"""FieldReading: one field of a file as one library holds it, and the words for what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from draftproof.config.raw import JsonValue
from draftproof.runtimes.hf.reading import Flip, HfReading, KeyPath

__all__ = ["FieldReading", "How", "equal", "find", "home_of", "is_present", "word"]


class How(StrEnum):
    """What became of a field."""

    KEPT = "kept"
    NULLED = "nulled"
    SYNTHESISED = "synthesised"
    RENAMED = "renamed"
    MOVED = "moved"
    IGNORED = "ignored"
    DROPPED = "dropped"
    DEFAULTED = "defaulted"
    TYPE_CHANGED = "type-changed"
    REWRITTEN = "rewritten"
    CHANGED = "changed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class FieldReading:
    """One field as one library holds it."""

    path: KeyPath
    """As in the file; where the file is silent, as in the library."""

    written: bool
    """Whether the file has the field at all (a written null counts)."""

    bytes: JsonValue
    value: JsonValue
    """What a consumer of the parsed config sees for this field."""

    how: How
    why: str
    now: KeyPath | None = None
    """Where the library holds it, if not under the file's name."""

    gates: tuple[Flip, ...] = ()
    """Settings observed to bring the value back, or to change it."""


def find(tree: JsonValue | Mapping[str, JsonValue], path: KeyPath) -> JsonValue:
    """The value at ``path``; None for a null and for an absence (see ``is_present``)."""
    for key in path:
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return dict(tree) if isinstance(tree, Mapping) else tree


def is_present(tree: Mapping[str, JsonValue], path: KeyPath) -> bool:
    """Whether ``path`` exists, be it null."""
    holder = find(tree, path[:-1]) if path[:-1] else tree
    return isinstance(holder, Mapping) and path[-1] in holder


def home_of(path: KeyPath, reading: HfReading) -> KeyPath:
    """The object whose keys one config class reads: the root, or a nested ``text_config``."""
    nested = path[:1]
    is_config = (
        len(path) > 1 and nested[0].endswith("_config") and isinstance(find(reading.defaults, nested), dict)
    )
    return nested if is_config else ()


def equal(one: JsonValue, other: JsonValue) -> bool:
    """Equal as a consumer computes with it: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other


def word(value: JsonValue) -> str:
    """A scalar as JSON writes it, inside a sentence."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
