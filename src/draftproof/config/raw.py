"""Bytes to RawConfig: one strict JSON object, every value with its line and column."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from draftproof.errors import RefusedInput
from draftproof.names import Sha256

__all__ = ["Defect", "JsonValue", "Position", "RawConfig", "RefusedConfig", "parse_raw", "read_raw"]

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the text, both counted from 1; columns in characters."""

    line: int
    column: int


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
    """What each lenient reader would have made of it: ``{"json": "keeps the last: null", ...}``."""


@dataclass(frozen=True, slots=True)
class RawConfig:
    """A file that is one strict JSON object."""

    origin: str
    """Where the bytes came from, as shown to people."""

    sha256: Sha256
    size_bytes: int
    text: str
    value: dict[str, JsonValue]
    positions: Mapping[str, Position]
    """Pointer of every value -> where it begins."""

    oddities: tuple[Defect, ...]
    """Accepted, but named: CRLF, no final newline, escape sequences inside strings, ..."""

    def line(self, pointer: str) -> int:
        """The line of the value at ``pointer``. Raises KeyError where there is none."""
        return self.positions[pointer].line


class RefusedConfig(RefusedInput):
    """The bytes are not one strict JSON object; every defect is listed."""

    defects: tuple[Defect, ...]
    recovered: JsonValue
    """What ``json.loads(bytes.decode("utf-8-sig"))`` makes of the bytes, None if it refuses too."""


def parse_raw(data: bytes, origin: str) -> RawConfig:
    """Parse ``data`` strictly. Raises RefusedConfig with every defect found."""
    raise RuntimeError(f"{origin}: {len(data)} bytes")


def read_raw(path: Path) -> RawConfig:
    """Read and parse a file. Raises CouldNotLook if it cannot be read, RefusedConfig as parse_raw."""
    return parse_raw(path.read_bytes(), str(path))
