"""What is legal JSON and still worth a word: line endings, hidden characters, keys that look like others."""

import unicodedata
from collections.abc import Iterator

from draftproof.config.json.log import DefectLog
from draftproof.config.json.peers import all_read
from draftproof.config.json.pointer import pointer_of
from draftproof.config.json.value import JsonValue
from draftproof.printable import printable

__all__ = ["note_oddities"]

# What the Hugging Face hub, S3-like stores and web frameworks answer with; no config has these keys alone.
_ERROR_SIGNS = {"error", "errors", "message", "detail"}
_ERROR_KEYS = _ERROR_SIGNS | {
    "status",
    "statusCode",
    "code",
    "type",
    "path",
    "requestId",
    "request_id",
    "timestamp",
}
_HIDDEN = {"Cf", "Zl", "Zp"}
_LOOKALIKE_SCRIPTS = ("CYRILLIC", "GREEK", "FULLWIDTH", "ARMENIAN", "CHEROKEE", "MATHEMATICAL")
_HARMLESS_CONTROLS = "\t\n\r\f\0"
_SHOWN_CHARACTERS = 60


def note_oddities(text: str, value: dict[str, JsonValue], offsets: dict[str, int], log: DefectLog) -> None:
    """Note every oddity of a text that was read without a defect."""
    _line_endings(text, log)
    if value and value.keys() <= _ERROR_KEYS and value.keys() & _ERROR_SIGNS:
        _file(log, "json-error-body", "a config's keys", f"only {', '.join(value)}")
    for pointer, string, is_key in _strings(value, ()):
        _string(pointer, string, offsets[pointer], log, is_key=is_key)


def _line_endings(text: str, log: DefectLog) -> None:
    crlf = text.count("\r\n")
    lone_cr = text.count("\r") - crlf
    lone_lf = text.count("\n") - crlf
    kinds = [f"{n} {name}" for n, name in ((crlf, "CRLF"), (lone_cr, "CR"), (lone_lf, "LF")) if n]
    if len(kinds) > 1:
        _file(log, "json-mixed-line-endings", "one kind of line ending", ", ".join(kinds))
    elif crlf:
        _file(log, "json-crlf", "LF", f"CRLF at the end of {crlf} lines")
    elif lone_cr:
        _file(log, "json-lone-cr", "LF", f"CR alone at the end of {lone_cr} lines")
    if text and text[-1] not in "\n\r":
        log.add(
            "json-no-final-newline",
            at=len(text),
            expected="a line ending at the end of the file",
            found=f"{text[-1]!r} as the last character",
            readers=all_read("reads it"),
        )


def _file(log: DefectLog, name: str, expected: str, found: str) -> None:
    log.add(name, at=None, expected=expected, found=found, readers=all_read("reads it"))


def _strings(value: JsonValue, path: tuple[str | int, ...]) -> Iterator[tuple[str, str, bool]]:
    """Every key and every string value with its pointer; a key has the pointer of its value."""
    if isinstance(value, str):
        yield pointer_of(path), value, False
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield pointer_of((*path, key)), key, True
            yield from _strings(item, (*path, key))


def _string(pointer: str, string: str, offset: int, log: DefectLog, *, is_key: bool) -> None:
    if string.isascii() and string.isprintable() and not (is_key and string != string.strip()):
        return
    kind = "key" if is_key else "string"

    def note(name: str, expected: str) -> None:
        shown = printable(string)
        shown = shown if len(shown) <= _SHOWN_CHARACTERS else shown[: _SHOWN_CHARACTERS - 3] + "..."
        readers = all_read("reads it")
        log.add(name, at=offset, pointer=pointer, expected=expected, found=f"{kind} {shown}", readers=readers)

    if any(unicodedata.category(c) == "Cc" and c not in _HARMLESS_CONTROLS for c in string):
        note("json-terminal-escape", "no character that drives a terminal")
    if any(unicodedata.category(c) in _HIDDEN for c in string):
        note("json-hidden-character", "no invisible or text-reordering character")
    if "\0" in string:
        note("json-nul-in-string", "no NUL character: C code ends the string there")
    if is_key and string != string.strip():
        note("json-padded-key", "a key without blanks at its ends")
    if is_key and _is_lookalike(string):
        note("json-lookalike-key", "a key of one script")


def _is_lookalike(key: str) -> bool:
    """Whether letters of another script stand among ASCII ones, or alone imitate them."""
    foreign = [c for c in key if not c.isascii() and c.isalpha()]
    scripts = [unicodedata.name(c, "").startswith(_LOOKALIKE_SCRIPTS) for c in foreign]
    return any(scripts) and any(c.isascii() and (c.isalpha() or c == "_") for c in key)
