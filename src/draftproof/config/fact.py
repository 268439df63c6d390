"""Fact: one value of the canonical description, under the path it has in the JSON, with its source."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from draftproof.config.raw import JsonValue
from draftproof.config.source import ClassDefault, Derived, Source, Sourced, Unknown, Written

__all__ = ["Fact", "Shape", "assemble", "fact", "group", "source_json"]

T = TypeVar("T")


class Shape(StrEnum):
    """What stands at a fact's path."""

    VALUE = "value"
    OBJECT = "object"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Fact:
    """One value and where it comes from; a group has parts instead of a value."""

    path: tuple[str, ...]
    value: JsonValue
    source: Source
    shape: Shape = Shape.VALUE

    @property
    def name(self) -> str:
        """The path with dots: ``rope.theta``, ``layers.0.causal``."""
        return ".".join(self.path)


def fact(name: str, said: Sourced[T]) -> Fact:
    """The fact of one sourced value."""
    return Fact((name,), _json(said.value), said.source)


def group(name: str, parts: Iterable[Fact], *, source: Source | None = None) -> Iterator[Fact]:
    """The group and its parts, named below it; its own source is that of its first part unless given."""
    known = tuple(parts)
    first = known[0].source if known else Derived(f"the file has no field that belongs to {name}")
    yield Fact((name,), None, source or first, Shape.OBJECT)
    for part in known:
        yield replace(part, path=(name, *part.path))


def assemble(known: Iterable[Fact]) -> dict[str, JsonValue]:
    """The nested JSON of facts whose groups come before their parts."""
    document: dict[str, JsonValue] = {}
    for each in known:
        here: JsonValue = document
        for step in each.path[:-1]:
            here = here[step] if isinstance(here, dict) else _item(here, int(step))
        if isinstance(here, dict):
            here[each.path[-1]] = {} if each.shape is Shape.OBJECT else _start(each)
        elif isinstance(here, list):
            here.append({} if each.shape is Shape.OBJECT else _start(each))
    return document


def source_json(source: Source) -> dict[str, JsonValue]:
    """Where a value comes from, as JSON."""
    match source:
        case Written():
            return {"pointer": source.pointer, "line": source.line}
        case ClassDefault():
            return {"default": source.library}
        case Derived():
            return {"derived": source.rule}
        case Unknown():
            return {"unknown": source.reason}


def _start(each: Fact) -> JsonValue:
    return [] if each.shape is Shape.LIST else each.value


def _item(here: JsonValue, index: int) -> JsonValue:
    return here[index] if isinstance(here, list) else None


def _json(value: object) -> JsonValue:
    if isinstance(value, tuple | list):
        return [_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)  # the word of a StrEnum
    return value if isinstance(value, bool | int | float) else None
