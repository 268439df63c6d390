"""Two files as bytes: how far apart they are although, or because, their values differ."""

import codecs
import json
import re
from collections import Counter
from enum import StrEnum

from draftproof.config.json.diff import canonical
from draftproof.config.json.value import JsonValue
from draftproof.config.raw import RawConfig, RefusedConfig, parse_raw

__all__ = ["BytesVerdict", "compare_bytes", "formatting_differences"]

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s\[\]{},:"]+|[\[\]{},:]|[ \t\r\n]+', re.DOTALL)


class BytesVerdict(StrEnum):
    """The least that explains the difference of two files."""

    IDENTICAL = "identical"
    LINE_ENDINGS = "line-endings"
    """LF, CRLF or CR; everything else byte for byte the same."""

    BOM = "bom"
    """A UTF-8 byte order mark on one side, possibly with another formatting; the values agree."""

    FORMATTING = "formatting"
    """Blanks, key order, the spelling of numbers and strings; the typed values agree."""

    DIFFERS = "differs"
    """The values differ, or cannot be compared because one of the two is no JSON."""


def compare_bytes(a: RawConfig | RefusedConfig | bytes, b: RawConfig | RefusedConfig | bytes) -> BytesVerdict:
    """The verdict on two files, each given as read, as refused, or as its bytes."""
    data_a, data_b = _bytes(a), _bytes(b)
    if data_a == data_b:
        return BytesVerdict.IDENTICAL
    body_a, body_b = data_a.removeprefix(codecs.BOM_UTF8), data_b.removeprefix(codecs.BOM_UTF8)
    same_marks = (body_a == data_a) == (body_b == data_b)
    if _unified(body_a) == _unified(body_b):
        return BytesVerdict.LINE_ENDINGS if same_marks else BytesVerdict.BOM
    value_a, value_b = _value(body_a), _value(body_b)
    if value_a is None or value_b is None or canonical(value_a) != canonical(value_b):
        return BytesVerdict.DIFFERS
    return BytesVerdict.FORMATTING if same_marks else BytesVerdict.BOM


def formatting_differences(a: RawConfig, b: RawConfig) -> tuple[str, ...]:
    """Which formatting differs between two files of equal values: key order, blanks, spelling."""
    blanks_a, words_a = _tokens(a.text)
    blanks_b, words_b = _tokens(b.text)
    told = {
        "key order": json.dumps(a.value) != json.dumps(b.value),
        "spelling of numbers or strings": Counter(words_a) != Counter(words_b),
        "blanks": Counter(blanks_a) != Counter(blanks_b),
    }
    return tuple(name for name, differs in told.items() if differs)


def _bytes(file: RawConfig | RefusedConfig | bytes) -> bytes:
    return file if isinstance(file, bytes) else file.data


def _unified(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _value(data: bytes) -> JsonValue:
    try:
        return parse_raw(data, "bytes").value
    except RefusedConfig:
        return None


def _tokens(text: str) -> tuple[list[str], list[str]]:
    tokens = _TOKENS.findall(text)
    return [t for t in tokens if t.isspace()], [t for t in tokens if not t.isspace()]
