"""A whole file read as JSON: its encoding, what it is instead, its one value, what stands around it."""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from draftproof.config.json.around import name_trailing, skip_leading
from draftproof.config.json.log import MAX_DEFECTS, DefectLog, StopReading
from draftproof.config.json.oddities import note_oddities
from draftproof.config.json.peers import all_read, all_refuse, not_an_object_readers
from draftproof.config.json.reader import read_value
from draftproof.config.json.recognise import foreign_bytes, foreign_text
from draftproof.config.json.value import (
    Defect,
    JsonValue,
    LineIndex,
    Position,
    Positions,
    Reading,
    value_shown,
)

__all__ = ["Document", "read_document"]

_WIDE = (
    (codecs.BOM_UTF32_LE, "json-utf32", "UTF-32, little endian, by its byte order mark"),
    (codecs.BOM_UTF32_BE, "json-utf32", "UTF-32, big endian, by its byte order mark"),
    (codecs.BOM_UTF16_LE, "json-utf16", "UTF-16, little endian, by its byte order mark"),
    (codecs.BOM_UTF16_BE, "json-utf16", "UTF-16, big endian, by its byte order mark"),
)
# What "surrogateescape" makes of bytes that are not UTF-8; valid UTF-8 never decodes to these.
_ESCAPED_BYTES = re.compile("[\ud800-\udfff]+")
_GUESSED_WIDE = (
    ((0, 0, 0, 1), "json-utf32", "UTF-32, big endian, without byte order mark"),
    ((1, 0, 0, 0), "json-utf32", "UTF-32, little endian, without byte order mark"),
    ((0, 1, 0, 1), "json-utf16", "UTF-16, big endian, without byte order mark"),
    ((1, 0, 1, 0), "json-utf16", "UTF-16, little endian, without byte order mark"),
)


@dataclass(frozen=True, slots=True)
class Document:
    """What a file's bytes came to."""

    text: str
    value: JsonValue
    positions: Mapping[str, Position]
    defects: tuple[Defect, ...]
    """Empty exactly where the bytes are one strict JSON object."""

    oddities: tuple[Defect, ...]


def read_document(data: bytes, max_bytes: int) -> Document:
    """Read ``data``; every defect found is in the result, nothing is raised."""
    whole_file = _too_large(data, max_bytes) or foreign_bytes(data) or _wide(data)
    if whole_file is not None:
        return Document("", None, {}, (whole_file,), ())
    has_bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if has_bom else data
    unpadded = body.rstrip(b"\x00")
    text, bad_bytes, cut = _decoded(unpadded)
    lines = LineIndex(text)
    log, oddities = DefectLog(lines), DefectLog(lines, most=None)
    try:
        if has_bom:
            found = "EF BB BF at the beginning"
            log.add("json-utf8-bom", at=0, expected="no byte order mark", found=found, readers=all_refuse())
        for offset, found in bad_bytes:
            log.add("json-not-utf8", at=offset, expected="UTF-8", found=found, readers=all_refuse())
        _name_zero_bytes(text, len(body) - len(unpadded), log)
        if (foreign := foreign_text(text)) is not None:
            return Document(text, None, {}, (foreign, *log.all()), ())
        reading = read_value(text, skip_leading(text, log), lines, log, oddities)
        _name_the_rest(text, cut, reading, log)
    except StopReading:  # too many defects; the log says so
        return Document(text, None, {}, log.all(), ())
    defects = log.all()
    if not defects and isinstance(reading.value, dict):
        note_oddities(text, reading.value, reading.offsets, oddities)
    return Document(text, reading.value, Positions(reading.offsets, lines), defects, oddities.all())


def _name_zero_bytes(text: str, num_padding: int, log: DefectLog) -> None:
    if num_padding:
        found = f"{num_padding} zero bytes"
        log.add("json-nul-tail", at=len(text), expected="no zero bytes", found=found, readers=all_refuse())
    if "\x00" in text:
        found, at = f"{text.count(chr(0))} zero bytes", text.index("\x00")
        log.add("json-nul-bytes", at=at, expected="no zero bytes", found=found, readers=all_refuse())


def _name_the_rest(text: str, cut: str, reading: Reading, log: DefectLog) -> None:
    """What can only be said once the value was read: what follows it, and whether it is an object."""
    if reading.is_whole:
        name_trailing(text, reading.end, log)
    if reading.is_whole and not isinstance(reading.value, dict):
        log.add(
            "json-not-an-object",
            at=reading.offsets[""],
            expected="an object ({...})",
            found=_not_an_object(reading.value),
            readers=not_an_object_readers(reading.value),
        )
    if cut and all(defect.id != "json-truncated" for defect in log.all()):
        log.add("json-not-utf8", at=len(text), expected="UTF-8", found=cut, readers=all_refuse())


def _not_an_object(value: JsonValue) -> str:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return "a string that holds an object: it was encoded twice"
    return value_shown(value, "")


def _too_large(data: bytes, max_bytes: int) -> Defect | None:
    if len(data) <= max_bytes:
        return None
    found = f"over {max_bytes} bytes"
    readers = all_read("sets no limit of its own")
    return Defect("json-too-large", "", None, f"at most {max_bytes} bytes", found, readers)


def _wide(data: bytes) -> Defect | None:
    """UTF-16 and UTF-32, by their mark or by where the zero bytes of the first characters stand."""
    found = [(name, said) for mark, name, said in _WIDE if data.startswith(mark)]
    head = data[:8]
    pattern = tuple(int(byte != 0) for byte in head)
    found += [
        (n, s)
        for signs, n, s in _GUESSED_WIDE
        if pattern == (signs * 2)[: len(head)] and len(head) >= len(signs)
    ]
    if not found:
        return None
    readers = all_refuse() | {
        "json": "refuses as UTF-8 text; json.loads of the bytes would guess the encoding"
    }
    return Defect(found[0][0], "", Position(1, 1), "UTF-8", found[0][1], readers)


def _decoded(data: bytes) -> tuple[str, list[tuple[int, str]], str]:
    """The text, each place (character offset, description) that is not UTF-8, and what is cut at the end.

    A wrong byte becomes U+FFFD, so that the rest can still be read and its faults named.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    text = decoder.decode(data)
    begun = decoder.getstate()[0]
    bad: list[tuple[int, str]] = []
    for run in islice(_ESCAPED_BYTES.finditer(text), MAX_DEFECTS + 1):
        wrong = run.group().encode("utf-8", "surrogateescape")
        latin = wrong.decode("cp1252", "replace")
        bad.append((run.start(), f"{wrong[:8].hex(' ')} (would be {latin[:8]!r} in Latin-1)"))
    if bad:
        text = _ESCAPED_BYTES.sub(lambda run: "\ufffd" * len(run.group()), text)
    return text, bad, f"{begun.hex(' ')}, a character that is cut off" if begun else ""
