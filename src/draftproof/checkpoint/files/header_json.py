"""The JSON of a safetensors header: strict, every duplicate key named, nothing accepted unseen."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from draftproof.checkpoint.files.shard import ArtefactDefect

__all__ = ["MAX_TENSORS", "Entry", "Layout", "parse_layout"]

MAX_TENSORS = 1_000_000
"""Objects in one header. The largest public checkpoints have some 10**5 tensors a shard; a header of
100 MB could hold a thousand million values that fill memory."""

_MAX_VALUES = 16 * MAX_TENSORS
_METADATA = "__metadata__"
_FIELDS = {"dtype", "shape", "data_offsets"}
_U64 = 1 << 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor as the header writes it; offsets counted from the start of the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """What the JSON says."""

    entries: tuple[Entry, ...] | None
    """None where it is no JSON object; an entry that is malformed is left out and named."""

    metadata: Mapping[str, str]
    defects: tuple[ArtefactDefect, ...]
    has_duplicates: bool


def parse_layout(data: bytes, name: str, where: Path) -> Layout:
    """Parse the header bytes of the shard ``name``."""
    if data.count(b"{") > MAX_TENSORS or data.count(b",") + data.count(b"[") > _MAX_VALUES:
        expected = f"at most {MAX_TENSORS} tensors"
        found = f"{data.count(b'{')} objects, {data.count(b',')} commas"
        return _refused(ArtefactDefect("header-too-many-tensors", name, expected, found, str(where)))
    keys = _Keys()
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=keys.collect, parse_constant=_no_constant, parse_int=_unsigned
        )
        text.encode("utf-8")
    except (ValueError, RecursionError) as error:
        found = "nesting without end" if isinstance(error, RecursionError) else str(error)
        return _refused(ArtefactDefect("header-not-json", name, "one JSON object", found, str(where)))
    if not isinstance(value, dict):
        found = f"a JSON {type(value).__name__}"
        return _refused(ArtefactDefect("header-not-json", name, "one JSON object", found, str(where)))
    defects = [_duplicate(key, where) for key in keys.duplicates]
    if data[:1] != b"{" or data.rstrip(b" ")[-1:] != b"}":
        expected = "'{' as the first byte, and only spaces after the last '}'"
        found = f"begins {data[:4]!r}, ends {data[-4:]!r}"
        defects.append(ArtefactDefect("header-padding-odd", name, expected, found, str(where)))
    metadata = _metadata(value.pop(_METADATA, {}), name, where, defects)
    entries = tuple(e for n, v in value.items() if (e := _entry(n, v, where, defects)) is not None)
    return Layout(entries, metadata, tuple(defects), bool(keys.duplicates))


class _Keys:
    """The keys that stand twice in one object."""

    def __init__(self) -> None:
        self.duplicates: list[str] = []

    def collect(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        """Keep the last of two, as the library does, and remember the name."""
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    self.duplicates.append(key)
                seen.add(key)
        for key in result:
            key.encode("utf-8")  # a lone surrogate is no text: UnicodeEncodeError is a ValueError
        return result


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _unsigned(text: str) -> int:
    if text[0] == "-":
        raise ValueError(f"{text}: sizes and offsets are not negative")
    return int(text)


def _duplicate(key: str, where: Path) -> ArtefactDefect:
    expected, found = "each key once", f"{key!r} more than once; the library keeps the last"
    return ArtefactDefect("header-duplicate-key", key, expected, found, str(where))


def _metadata(value: object, name: str, where: Path, defects: list[ArtefactDefect]) -> dict[str, str]:
    if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
        return value
    found = json.dumps(value)[:200]
    expected = "an object whose values are all text"
    defects.append(ArtefactDefect("header-metadata-not-text", name, expected, found, f"{where} {_METADATA}"))
    return {}


def _entry(name: str, value: object, where: Path, defects: list[ArtefactDefect]) -> Entry | None:
    place = f"{where} tensor {name}"
    if isinstance(value, dict):
        dtype, shape, span = value.get("dtype"), _sizes(value.get("shape")), _span(value.get("data_offsets"))
        if isinstance(dtype, str) and shape is not None and span is not None:
            if extra := sorted(value.keys() - _FIELDS):
                expected = "dtype, shape and data_offsets"
                found = ", ".join(extra) + " besides"
                defects.append(ArtefactDefect("tensor-field-unknown", name, expected, found, place))
            return Entry(name, dtype, shape, *span)
    expected = "dtype text, shape a list of sizes, data_offsets [begin, end] with begin <= end"
    found = json.dumps(value)[:200]
    defects.append(ArtefactDefect("tensor-entry-malformed", name, expected, found, place))
    return None


def _sizes(value: object) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(type(v) is int and 0 <= v < _U64 for v in value):
        return tuple(value)
    return None


def _span(value: object) -> tuple[int, int] | None:
    match _sizes(value):
        case (begin, end) if begin <= end:
            return begin, end
    return None


def _refused(defect: ArtefactDefect) -> Layout:
    return Layout(None, {}, (defect,), has_duplicates=False)
