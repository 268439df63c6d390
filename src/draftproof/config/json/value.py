"""The words of reading JSON: a value, a place in the text, one thing wrong with the bytes."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from draftproof.printable import MASKED, is_secret_key

__all__ = [
    "Defect",
    "JsonValue",
    "LineIndex",
    "Position",
    "Positions",
    "json_type",
    "one_line",
    "value_shown",
]

_SHOWN_CHARACTERS = 40
_LINE_END = re.compile(r"\r\n|\n|\r")

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the text, both counted from 1; columns in characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line} column {self.column}"


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing wrong (or merely odd) about the bytes, by name."""

    id: str
    """A finding id, e.g. ``json-duplicate-key``."""

    pointer: str
    """RFC 6901; ``""`` for the whole file."""

    position: Position | None
    expected: str
    found: str
    readers: Mapping[str, str]
    """What each lenient reader makes of this alone: ``{"json": "keeps the last: null", ...}``."""

    def as_dict(self) -> dict[str, JsonValue]:
        """The defect for ``--json``."""
        return {
            "id": self.id,
            "pointer": self.pointer,
            "line": self.position.line if self.position else None,
            "column": self.position.column if self.position else None,
            "expected": self.expected,
            "found": self.found,
            "readers": dict(self.readers),
        }


@dataclass(frozen=True, slots=True)
class Reading:
    """What could be read."""

    value: JsonValue
    offsets: dict[str, int]
    """Pointer of every value -> character offset where it begins."""

    end: int
    """Offset just after the value."""

    is_whole: bool
    """False where reading stopped before the value's end; the defects say why."""


class LineIndex:
    """Offsets of a text turned into lines and columns.

    LF, CRLF and a lone CR each end a line, as in Python's text mode, which is how the libraries open a
    config; so a line number here is the one their messages and an editor show.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _starts(self) -> "array[int]":
        return array("L", (0, *(end.end() for end in _LINE_END.finditer(self._text))))

    def position(self, offset: int) -> Position:
        """The place of a character offset; the end of the text is a place too."""
        line = bisect_right(self._starts, offset)
        return Position(line=line, column=offset - self._starts[line - 1] + 1)


class Positions(Mapping[str, Position]):
    """Pointer to place, kept as offsets: a line is only counted when somebody asks."""

    def __init__(self, offsets: Mapping[str, int], lines: LineIndex) -> None:
        self._offsets = offsets
        self._lines = lines

    def __getitem__(self, pointer: str) -> Position:
        return self._lines.position(self._offsets[pointer])

    def __iter__(self) -> Iterator[str]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)


def json_type(value: JsonValue) -> str:
    """The type as people compare it; integer and float are two types, boolean is neither."""
    if value is None:
        return "null"
    if isinstance(value, bool):  # before int: Python's True is an int, JSON's is not
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def value_shown(value: JsonValue, pointer: str) -> str:
    """A value in a sentence: short, JSON spelling, secrets masked by the last key of the pointer."""
    if is_secret_key(pointer.rsplit("/", 1)[-1]):
        return MASKED
    if isinstance(value, dict):
        return f"object of {len(value)} keys"
    if isinstance(value, list):
        return f"array of {len(value)}"
    words = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return words[value]
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def one_line(text: str, width: int = 60) -> str:
    """Text in a sentence: blanks folded, cut at ``width`` characters."""
    line = " ".join(text[: 10 * width].split()) or repr(text[:width])
    return line if len(line) <= width else line[: width - 3] + "..."
