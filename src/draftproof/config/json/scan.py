"""Tokens of JSON text: blanks, strings, numbers and words, each fault named and read past where it can be."""

import re
import unicodedata

from draftproof.config.json.log import DefectLog, StopReading
from draftproof.config.json.peers import (
    MAX_INT_DIGITS,
    all_read,
    all_refuse,
    infinite_readers,
    integer_readers,
    json_alone_reads,
)
from draftproof.config.json.value import JsonValue, one_line

__all__ = ["Scanner"]

_BLANKS = re.compile(r"[ \t\n\r]*")
_SIMPLE = re.compile(r'"([^"\\\x00-\x1f]*)"')
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_RUN = re.compile(r"[-+.\w]+")
_LEADING_ZERO = re.compile(r"-?0[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_COMMENT = re.compile(r"//[^\n\r]*|#[^\n\r]*|/\*.*?\*/", re.DOTALL)
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_CUT_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{0,3})?")
_NEXT_ITEM = re.compile(r'[ \t\r\n]{0,200}(["}\]]|\Z)')
# What may follow blanks without a closer look: brackets, quotes, separators, and all that begins a value.
_ORDINARY = frozenset('"{}[],:-0123456789tfnNI')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
_PYTHON_WORDS: dict[str, JsonValue] = {"True": True, "False": False, "None": None}
_INFINITE = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
_INFINITE_SPELLINGS = {"nan", "inf", "infinity"}
_SHOWN_CHARACTERS = 40


class Scanner:
    """A place in a text, moved forward token by token."""

    def __init__(self, text: str, log: DefectLog, oddities: DefectLog) -> None:
        self.text = text
        self.at = 0
        self.log = log
        self.oddities = oddities

    def peek(self) -> str:
        """The character here, or ``""`` at the end."""
        return self.text[self.at : self.at + 1]

    def skip_blanks(self) -> None:
        """Move past JSON's four blanks; comments and foreign blanks are named and moved past as well."""
        while True:
            if match := _BLANKS.match(self.text, self.at):
                self.at = match.end()
            character = self.text[self.at : self.at + 1]
            if not character or character in _ORDINARY:
                return
            if character in "/#" and (comment := _COMMENT.match(self.text, self.at)):
                self._add(
                    "json-comment", "no comment: JSON has none", one_line(comment.group(), _SHOWN_CHARACTERS)
                )
                self.at = comment.end()
            elif character.isspace() or unicodedata.category(character) in {"Cf", "Cc"}:
                self._foreign_blank(character)
                self.at += 1
            else:
                return

    def _foreign_blank(self, character: str) -> None:
        if character == "\0":  # named once for the whole file, as json-nul-bytes
            return
        name = unicodedata.name(character, "control character")
        expected = "space, tab, line feed or carriage return between values"
        self._add("json-foreign-space", expected, f"U+{ord(character):04X} {name}")

    def string(self, pointer: str, quote: str = '"') -> str:
        """The string that starts here, decoded. ``quote`` is its closing quote.

        Raises:
            StopReading: the text ends inside the string.
        """
        start = self.at
        if quote == '"' and (whole := _SIMPLE.match(self.text, self.at)):
            self.at = whole.end()
            return whole.group(1)
        self.at += 1
        parts: list[str] = []
        plain = _PLAIN if quote == '"' else re.compile(rf"[^{quote}\\\x00-\x1f]*")
        while True:
            if match := plain.match(self.text, self.at):
                parts.append(match.group())
                self.at = match.end()
            character = self.peek()
            if not character:
                self.at = start
                raise StopReading("inside a string")
            if character == quote:
                self.at += 1
                return self._joined("".join(parts), pointer, start)
            if character == "\\":
                parts.append(self._escape(pointer, quote))
            elif character in "\n\r" and _NEXT_ITEM.match(self.text, self.at):
                return self._unclosed("".join(parts), pointer, start)
            else:
                self._control_character(character, pointer)
                parts.append(character)
                self.at += 1

    def _control_character(self, character: str, pointer: str) -> None:
        if character != "\0":  # named once for the whole file, as json-nul-bytes
            expected = "control characters in strings written as escapes"
            found = f"raw U+{ord(character):04X} inside a string"
            self._add("json-control-character", expected, found, pointer=pointer)

    def _unclosed(self, value: str, pointer: str, start: int) -> str:
        """A string whose line ends before its quote does, while the next line looks like a new item."""
        self.log.add(
            "json-unclosed-string",
            at=start,
            pointer=pointer,
            expected="a closing quote on the same line",
            found=one_line(value, _SHOWN_CHARACTERS),
            readers=all_refuse(),
        )
        stripped = value.rstrip()
        if stripped.endswith(","):
            self.at -= len(value) - len(stripped) + 1
            return stripped[:-1]
        return value

    def _escape(self, pointer: str, quote: str) -> str:
        letter = self.text[self.at + 1 : self.at + 2]
        if letter in _ESCAPES and letter:
            self.at += 2
            return _ESCAPES[letter]
        if letter == "u" and (match := _HEX4.match(self.text, self.at + 2)):
            self.at += 6
            return chr(int(match.group(), 16))
        shown = self.text[self.at : self.at + (6 if letter == "u" else 2)]
        if _CUT_ESCAPE.fullmatch(shown) and self.at + len(shown) == len(self.text):
            raise StopReading("inside a string")
        self._add(
            "json-invalid-escape", 'one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX', shown, pointer=pointer
        )
        self.at += 1
        if letter == quote:
            self.at += 1
            return letter
        return "\\"

    def _joined(self, value: str, pointer: str, start: int) -> str:
        """Surrogate pairs joined; one that stands alone is a defect."""
        if not any("\ud800" <= c <= "\udfff" for c in value):
            return value
        joined = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        alone = next((c for c in joined if "\ud800" <= c <= "\udfff"), None)
        if alone is not None:
            self.log.add(
                "json-lone-surrogate",
                at=start,
                pointer=pointer,
                expected="surrogates only as a high and a low one together",
                found=f"\\u{ord(alone):04x} alone",
                readers=json_alone_reads("reads a string that cannot be encoded"),
            )
        return joined

    def word(self, pointer: str) -> JsonValue:
        """The number or literal that starts here; what is neither is named and kept as text."""
        match = _RUN.match(self.text, self.at)
        run = match.group() if match else self.peek()
        start = self.at
        self.at += len(run)
        if run in _WORDS:
            return _WORDS[run]
        if (number := _NUMBER.fullmatch(run)) is not None:
            return self._number(run, number, pointer, start)
        if run in _INFINITE:
            is_nan = run == "NaN"
            self.log.add(
                "json-nan" if is_nan else "json-infinity",
                at=start,
                pointer=pointer,
                expected="a finite number",
                found=run,
                readers=infinite_readers(_INFINITE[run]),
            )
            return float(_INFINITE[run])
        return self._no_json_word(run, pointer, start)

    def _no_json_word(self, run: str, pointer: str, start: int) -> JsonValue:
        value: JsonValue = run
        bare = run.lstrip("+-").lower()
        if run in _PYTHON_WORDS:
            name, expected, value = "json-python-constant", "true, false or null", _PYTHON_WORDS[run]
        elif bare in _INFINITE_SPELLINGS:
            name, expected = ("json-nan" if bare == "nan" else "json-infinity"), "a finite number"
        elif _LEADING_ZERO.fullmatch(run):
            name, expected = "json-leading-zero", "a number without leading zeros"
        elif run[0] in "-+." or run[0].isdigit():
            name, expected = "json-malformed-number", "a JSON number"
        else:
            name, expected = "json-unknown-word", "a JSON value"
        self.log.add(
            name,
            at=start,
            pointer=pointer,
            expected=expected,
            found=one_line(run, _SHOWN_CHARACTERS),
            readers=all_refuse(),
        )
        return value

    def _number(self, run: str, match: re.Match[str], pointer: str, start: int) -> JsonValue:
        if match.group(2) is None and match.group(3) is None:
            return self._integer(run, pointer, start)
        value = float(run)
        if value in {float("inf"), float("-inf")}:
            self.log.add(
                "json-float-overflow",
                at=start,
                pointer=pointer,
                expected="a number a double can hold (up to 1.8e308)",
                found=one_line(run, _SHOWN_CHARACTERS),
                readers=infinite_readers(repr(value)),
            )
        elif value == 0.0 and any(c in "123456789" for c in run.lower().split("e")[0]):
            self.oddities.add(
                "json-float-underflow",
                at=start,
                pointer=pointer,
                expected="a number a double can hold (from 5e-324)",
                found=one_line(run, _SHOWN_CHARACTERS),
                readers=all_read(f"reads {value!r}"),
            )
        return value

    def _integer(self, run: str, pointer: str, start: int) -> JsonValue:
        num_digits = len(run.lstrip("-"))
        if num_digits > MAX_INT_DIGITS:
            self.log.add(
                "json-integer-too-long",
                at=start,
                pointer=pointer,
                expected=f"an integer of at most {MAX_INT_DIGITS} digits",
                found=f"{num_digits} digits: {one_line(run, _SHOWN_CHARACTERS)}",
                readers=all_refuse(),
            )
            return 0
        value = int(run)
        if (readers := integer_readers(value)) is not None:
            self.oddities.add(
                "json-integer-beyond-64-bits",
                at=start,
                pointer=pointer,
                expected="an integer within 64 bits",
                found=one_line(run, _SHOWN_CHARACTERS),
                readers=readers,
            )
        return value

    def _add(self, defect_id: str, expected: str, found: str, *, pointer: str = "") -> None:
        """A fault at this very place that every reader refuses."""
        self.log.add(
            defect_id, at=self.at, pointer=pointer, expected=expected, found=found, readers=all_refuse()
        )
