"""Place: where a finding points, in words and as pointer and line."""

from dataclasses import dataclass
from pathlib import Path

from draftproof.config.raw import RawConfig
from draftproof.config.source import Sourced, Written

__all__ = ["Place", "at_file", "at_pointer", "at_source", "at_tensor"]


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file."""

    where: str
    pointer: str | None = None
    line: int | None = None


def at_pointer(raw: RawConfig, pointer: str) -> Place:
    """The value at ``pointer``; its nearest written ancestor's line where it is absent."""
    known = pointer
    while known and known not in raw.positions:
        known = known.rpartition("/")[0]
    number = raw.positions[known].line if known in raw.positions else 1
    return Place(f"{raw.origin}#{pointer} line {number}", pointer, number)


def at_source(raw: RawConfig, value: Sourced[object], otherwise: str) -> Place:
    """The place a value was read from, or ``otherwise`` where the file does not hold it."""
    if isinstance(value.source, Written):
        return at_pointer(raw, value.source.pointer)
    return at_pointer(raw, otherwise)


def at_file(path: Path | str) -> Place:
    """A file as a whole."""
    return Place(str(path))


def at_tensor(path: Path | str, name: str) -> Place:
    """A tensor of a file."""
    return Place(f"{path} tensor {name}")
