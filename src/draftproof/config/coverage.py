"""Which places of a file a description rests on, and which nobody looked at."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from draftproof.config.json.pointer import pointer_of
from draftproof.config.raw import JsonValue
from draftproof.config.source import Written

__all__ = ["covers", "leaves", "uncovered", "written_pointers"]


def written_pointers(described: object) -> frozenset[str]:
    """Every pointer named as the source of a value anywhere inside a description."""
    return frozenset(_pointers(described))


def covers(pointers: frozenset[str], pointer: str) -> bool:
    """Whether ``pointer`` is one of them, or lies below one."""
    parts = pointer.split("/")
    return any("/".join(parts[:end]) in pointers for end in range(len(parts), 1, -1))


def leaves(value: JsonValue, pointer: str = "") -> Iterator[str]:
    """Pointers of all values that are no containers, or empty ones, in file order."""
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from leaves(child, pointer + pointer_of([key]))
    elif isinstance(value, list) and value:
        for i, child in enumerate(value):
            yield from leaves(child, f"{pointer}/{i}")
    elif pointer:
        yield pointer


def uncovered(value: JsonValue, pointers: frozenset[str], pointer: str = "") -> Iterator[str]:
    """Pointers of what none of ``pointers`` covers, in file order; a subtree by its root."""
    if pointer in pointers:
        return
    below = pointer + "/"
    if pointer and not any(each.startswith(below) for each in pointers):
        yield pointer
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from uncovered(child, pointers, pointer + pointer_of([key]))
    elif isinstance(value, list):
        for i, child in enumerate(value):
            yield from uncovered(child, pointers, f"{pointer}/{i}")


def _pointers(described: object) -> Iterator[str]:
    if isinstance(described, Written):
        yield described.pointer
    elif is_dataclass(described):
        for field in fields(described):
            yield from _pointers(getattr(described, field.name))
    elif isinstance(described, Mapping):
        for each in described.values():
            yield from _pointers(each)
    elif isinstance(described, tuple | list):
        for each in described:
            yield from _pointers(each)
