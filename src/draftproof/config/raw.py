"""Bytes to RawConfig: one strict JSON object, every value with its line and column."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from draftproof.config.json.bytes import read_limited
from draftproof.config.json.defects import DEFECTS
from draftproof.config.json.document import read_document
from draftproof.config.json.pointer import pointer_of, resolve, split_pointer
from draftproof.config.json.reader import MAX_DEPTH
from draftproof.config.json.value import Defect, JsonValue, Position
from draftproof.errors import RefusedInput
from draftproof.names import Sha256

__all__ = [
    "DEFECTS",
    "MAX_BYTES",
    "MAX_DEPTH",
    "Defect",
    "JsonValue",
    "Position",
    "RawConfig",
    "RefusedConfig",
    "parse_raw",
    "pointer_of",
    "read_raw",
    "split_pointer",
]

MAX_BYTES = 16 * 1024 * 1024
_TOLD_DEFECTS = 3


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

    @property
    def data(self) -> bytes:
        """The very bytes that were read."""
        return self.text.encode("utf-8")

    def at(self, pointer: str) -> JsonValue:
        """The value at ``pointer``; a written null is None. Raises KeyError where there is none."""
        return resolve(self.value, pointer)

    def has(self, pointer: str) -> bool:
        """Whether the file writes a value (null included) at ``pointer``."""
        return pointer in self.positions

    def line(self, pointer: str) -> int:
        """The line of the value at ``pointer``. Raises KeyError where there is none."""
        return self.positions[pointer].line


class RefusedConfig(RefusedInput):
    """The bytes are not one strict JSON object; every defect is listed."""

    defects: tuple[Defect, ...]
    recovered: JsonValue
    """What ``json.loads(bytes.decode("utf-8-sig"))`` makes of the bytes, None if it refuses too."""

    def __init__(self, origin: str, data: bytes, defects: tuple[Defect, ...]) -> None:
        self.defects = defects
        self.recovered = _recovered(data)
        self.data = data
        self.sha256 = Sha256(hashlib.sha256(data).hexdigest())
        first = defects[0]
        told = [_told(defect) for defect in defects[:_TOLD_DEFECTS]]
        more = len(defects) - len(told)
        super().__init__(
            origin,
            expected="one strict JSON object in UTF-8",
            found="; ".join(told) + (f"; and {more} more" if more else ""),
            where=f"{origin}#{first.pointer}" + (f" line {first.position.line}" if first.position else ""),
            means=DEFECTS[first.id].means,
            next_step=DEFECTS[first.id].next_step,
        )

    def as_dict(self) -> dict[str, object]:
        """The error for ``--json`` with every defect."""
        return super().as_dict() | {
            "sha256": self.sha256,
            "defects": [defect.as_dict() for defect in self.defects],
        }


def _told(defect: Defect) -> str:
    place = f" at {defect.position}" if defect.position else ""
    return f"{defect.id}{place}: {defect.found}"


def _recovered(data: bytes) -> JsonValue:
    if len(data) > MAX_BYTES:
        return None
    try:
        recovered: JsonValue = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        return None
    return recovered


def parse_raw(data: bytes, origin: str) -> RawConfig:
    """Parse ``data`` strictly. Raises RefusedConfig with every defect found.

    Strict: UTF-8 without byte order mark, exactly one value, an object; no key twice; finite numbers;
    at most 64 containers inside one another and 16 MiB.
    """
    document = read_document(data, MAX_BYTES)
    if document.defects or not isinstance(document.value, dict):
        raise RefusedConfig(origin, data, document.defects)
    return RawConfig(
        origin=origin,
        sha256=Sha256(hashlib.sha256(data).hexdigest()),
        size_bytes=len(data),
        text=document.text,
        value=document.value,
        positions=document.positions,
        oddities=document.oddities,
    )


def read_raw(path: Path) -> RawConfig:
    """Read and parse a file. Raises CouldNotLook if it cannot be read, RefusedConfig as parse_raw."""
    return parse_raw(read_limited(path, MAX_BYTES), str(path))
