"""A whole file read as JSON: its encoding, what it is instead, its one value, what stands around it."""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass

from draftproof.config.json_around import name_trailing, skip_leading
from draftproof.config.json_log import DefectLog
from draftproof.config.json_oddities import note_oddities
from draftproof.config.json_peers import all_read, all_refuse, not_an_object_readers
from draftproof.config.json_reader import read_value
from draftproof.config.json_value import Defect, JsonValue, LineIndex, Position, Positions, value_shown
from draftproof.config.recognise import foreign_bytes, foreign_text

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
    log, oddities = DefectLog(lines), DefectLog(lines)
    if has_bom:
        readers = all_refuse()
        log.add(
            "json-utf8-bom", at=0, expected="UTF-8 without byte order mark", found="EF BB BF", readers=readers
        )
    for offset, found in bad_bytes:
        log.add("json-not-utf8", at=offset, expected="UTF-8", found=found, readers=all_refuse())
    if len(unpadded) < len(body):
        found = f"{len(body) - len(unpadded)} zero bytes from byte {len(data) - len(body) + len(unpadded)} on"
        log.add("json-nul-tail", at=len(text), expected="no zero bytes", found=found, readers=all_refuse())
    if "\x00" in text:
        found = f"{text.count(chr(0))} zero bytes"
        at = text.index("\x00")
        log.add("json-nul-bytes", at=at, expected="no zero bytes", found=found, readers=all_refuse())
    if (foreign := foreign_text(text)) is not None:
        return Document(text, None, {}, (foreign, *log.all()), ())
    return _read_text(text, cut, lines, log, oddities)


def _read_text(text: str, cut: str, lines: LineIndex, log: DefectLog, oddities: DefectLog) -> Document:
    start = skip_leading(text, log)
    reading = read_value(text, start, lines, log, oddities)
    if reading.is_whole:
        name_trailing(text, reading.end, log)
        if not isinstance(reading.value, dict):
            log.add(
                "json-not-an-object",
                at=reading.offsets[""],
                expected="an object ({...})",
                found=value_shown(reading.value, ""),
                readers=not_an_object_readers(reading.value),
            )
    if cut and all(defect.id != "json-truncated" for defect in log.all()):
        log.add("json-not-utf8", at=len(text), expected="UTF-8", found=cut, readers=all_refuse())
    defects = log.all()
    if not defects and isinstance(reading.value, dict):
        note_oddities(text, reading.value, reading.offsets, oddities)
    return Document(text, reading.value, Positions(reading.offsets, lines), defects, oddities.all())


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
    for run in _ESCAPED_BYTES.finditer(text):
        wrong = run.group().encode("utf-8", "surrogateescape")
        latin = wrong.decode("cp1252", "replace")
        bad.append((run.start(), f"{wrong[:8].hex(' ')} (would be {latin[:8]!r} in Latin-1)"))
    if bad:
        text = _ESCAPED_BYTES.sub(lambda run: "\ufffd" * len(run.group()), text)
    return text, bad, f"{begun.hex(' ')}, a character that is cut off" if begun else ""
