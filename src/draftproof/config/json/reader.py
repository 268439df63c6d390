"""One JSON value out of text, with the place of every value and every defect by name."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from draftproof.config.json.lines import is_remains
from draftproof.config.json.log import DefectLog, StopReading
from draftproof.config.json.peers import all_read, all_refuse, depth_readers, nesting_depth
from draftproof.config.json.pointer import below
from draftproof.config.json.scan import Scanner
from draftproof.config.json.value import JsonValue, LineIndex, Reading, one_line, value_shown

__all__ = ["MAX_DEPTH", "MAX_VALUES", "read_value"]

MAX_DEPTH = 64
MAX_VALUES = 500_000

_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201d": "\u201d", "\u2018": "\u2019"}
_FEW = 5
_FAR = 200  # characters: a look around is bounded, so that no hostile file makes each as long as the file
_TEMPLATE = re.compile(
    r"\$\{[^}\n]{0,200}\}|\$\w+|\{\{.{0,200}?\}\}|\{%.{0,200}?%\}|<[A-Za-z_][^>\n]{0,200}>", re.DOTALL
)
_REST_OF_LINE = re.compile(rf"[^\r\n]{{0,{_FAR}}}")
_KEY_WORD = re.compile(r"[\w$.-]+")
_WORDS = ("true", "false", "null", "NaN", "Infinity")
_CUT_NUMBER = re.compile(r"-|-?[0-9]+(\.|(\.[0-9]+)?[eE][+-]?)")
_CLOSERS = {"{": "}", "[": "]"}
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class _Open:
    """A container that has begun and not ended."""

    pointer: str
    bracket: str
    offset: int


def read_value(text: str, start: int, lines: LineIndex, defects: DefectLog, oddities: DefectLog) -> Reading:
    """Read the value that begins at ``start`` (blanks before it allowed)."""
    return _Reader(text, start, lines, defects, oddities).read()


def _ends(occurrences: list[tuple[int, JsonValue]]) -> list[tuple[int, JsonValue]]:
    """All of a few, else the first two and the last."""
    return occurrences if len(occurrences) <= _FEW else [*occurrences[:2], occurrences[-1]]


class _Reader:
    """Recursive descent; recursion is bounded by MAX_DEPTH."""

    def __init__(
        self, text: str, start: int, lines: LineIndex, defects: DefectLog, oddities: DefectLog
    ) -> None:
        self._scan = Scanner(text, defects, oddities)
        self._scan.at = start
        self._text = text
        self._lines = lines
        self._log = defects
        self._offsets: dict[str, int] = {}
        self._open: list[_Open] = []
        self._num_values = 0

    def read(self) -> Reading:
        """The whole value, or as much as there was."""
        try:
            self._scan.skip_blanks()
            value = self._value("")
        except StopReading as stop:
            if stop.args:
                self._truncated(str(stop))
            return Reading(None, self._offsets, self._scan.at, is_whole=False)
        return Reading(value, self._offsets, self._scan.at, is_whole=True)

    def _value(self, pointer: str) -> JsonValue:
        character = self._scan.peek()
        self._offsets[pointer] = self._scan.at
        self._count(pointer)
        if character in ("{", "[") and not self._text.startswith(("{{", "{%"), self._scan.at):
            return self._container(pointer, character)
        if character == '"':
            return self._scan.string(pointer)
        if not character:
            raise StopReading("where a value is due")
        return self._no_plain_value(pointer, character)

    def _no_plain_value(self, pointer: str, character: str) -> JsonValue:
        """A word, a number, or something that stands where a value is due and is none."""
        if character in _QUOTES:
            return self._foreign_quotes(pointer, character)
        if template := _TEMPLATE.match(self._text, self._scan.at):
            shown = template.group()
            self._add("json-template", pointer, "a value", f"{shown[:_SHOWN_CHARACTERS]} not filled in")
            self._scan.at = template.end()
            return shown
        if character in ",}]:":
            self._add("json-missing-value", pointer, "a value", f"{character!r}")
            return None
        if self._is_cut_word():
            raise StopReading("inside a word or number")
        return self._scan.word(pointer)

    def _is_cut_word(self) -> bool:
        """Whether a literal or number runs into the end of the text before it is complete."""
        rest = self._text[self._scan.at : self._scan.at + _SHOWN_CHARACTERS]
        if self._scan.at + len(rest) < len(self._text) or not self._open:
            return False
        return bool(_CUT_NUMBER.fullmatch(rest)) or any(w.startswith(rest) and w != rest for w in _WORDS)

    def _foreign_quotes(self, pointer: str, character: str) -> str:
        name = "json-single-quotes" if character == "'" else "json-curly-quotes"
        self._add(name, pointer, 'a string in double quotes (")', f"U+{ord(character):04X} {character}")
        return self._scan.string(pointer, _QUOTES[character])

    def _container(self, pointer: str, bracket: str) -> JsonValue:
        self._open.append(_Open(pointer, bracket, self._scan.at))
        if len(self._open) > MAX_DEPTH:
            self._too_deep(pointer)
        self._scan.at += 1
        value: JsonValue = self._object(pointer) if bracket == "{" else self._array(pointer)
        self._open.pop()
        return value

    def _array(self, pointer: str) -> list[JsonValue]:
        items: list[JsonValue] = []

        def item() -> None:
            items.append(self._value(f"{pointer}/{len(items)}"))

        self._items(pointer, "]", item)
        return items

    def _object(self, pointer: str) -> dict[str, JsonValue]:
        items: dict[str, JsonValue] = {}
        seen: dict[str, list[tuple[int, JsonValue]]] = {}

        def member() -> None:
            offset = self._scan.at
            key = self._key(pointer)
            here = below(pointer, key)
            self._colon(here)
            value = items[key] = self._value(here)
            seen.setdefault(key, []).append((offset, value))

        self._items(pointer, "}", member)
        for key, occurrences in seen.items():
            if len(occurrences) > 1:
                self._duplicate(below(pointer, key), occurrences)
        return items

    def _items(self, pointer: str, closer: str, read_item: Callable[[], None]) -> None:
        """Everything between the brackets, commas included."""
        comma_at: int | None = None
        while True:
            self._scan.skip_blanks()
            character = self._scan.peek()
            if character == closer:
                if comma_at is not None:
                    self._add(
                        "json-trailing-comma", pointer, "no comma before the closing bracket", ",", comma_at
                    )
                self._scan.at += 1
                return
            if not character:
                raise StopReading("between two items")
            if character == ",":
                self._add("json-extra-comma", pointer, "an item before the comma", ",")
                self._scan.at += 1
                continue
            if character in "]}":
                self._mismatched(character)
            read_item()
            self._scan.skip_blanks()
            comma_at = self._scan.at if self._scan.peek() == "," else None
            if comma_at is not None:
                self._scan.at += 1
            elif self._scan.peek() not in ("", "]", "}"):
                self._missing_comma(pointer)

    def _key(self, pointer: str) -> str:
        character = self._scan.peek()
        if character == '"':
            return self._scan.string(pointer)
        if character in _QUOTES:
            return self._foreign_quotes(pointer, character)
        self._stop_at_remains(pointer)
        for pattern, name in ((_TEMPLATE, "json-template"), (_KEY_WORD, "json-unquoted-key")):
            if match := pattern.match(self._text, self._scan.at):
                self._add(name, pointer, "a key in double quotes", match.group()[:_SHOWN_CHARACTERS])
                self._scan.at = match.end()
                return match.group()
        self._syntax(pointer, "a key in double quotes")
        raise StopReading

    def _colon(self, pointer: str) -> None:
        self._scan.skip_blanks()
        character = self._scan.peek()
        if not character:
            raise StopReading("after a key")
        if character == ":":
            self._scan.at += 1
        elif character in "=,}]":
            self._syntax(pointer, "a colon after the key")
            raise StopReading
        else:
            self._add("json-missing-colon", pointer, "a colon after the key", repr(character))
        self._scan.skip_blanks()

    def _stop_at_remains(self, pointer: str) -> None:
        """A delimiter, a command or a server's message on a line of its own: the value was cut before it."""
        before = self._text[max(0, self._scan.at - _FAR) : self._scan.at].rstrip(" \t")
        line = _REST_OF_LINE.match(self._text, self._scan.at)
        if line and before.endswith(("\n", "\r")) and (name := is_remains(line.group())) is not None:
            self._add(name, pointer, "the rest of the value", one_line(line.group()))
            raise StopReading("before foreign text")

    def _missing_comma(self, pointer: str) -> None:
        self._stop_at_remains(pointer)
        character = self._scan.peek()
        if character in "\"'[{-" or character.isalnum() or character == "_":
            self._add("json-missing-comma", pointer, "a comma between two items", repr(character))
            return
        self._syntax(pointer, "a comma or the closing bracket")
        raise StopReading

    def _mismatched(self, character: str) -> None:
        opened = self._open[-1]
        self._add(
            "json-mismatched-bracket",
            opened.pointer,
            f"{_CLOSERS[opened.bracket]} for the {opened.bracket} of {self._log.place(opened.offset)}",
            character,
        )
        raise StopReading

    def _duplicate(self, pointer: str, occurrences: list[tuple[int, JsonValue]]) -> None:
        told = [f"{value_shown(v, pointer)} (line {self._log.line(o)})" for o, v in _ends(occurrences)]
        last = value_shown(occurrences[-1][1], pointer)
        self._log.add(
            "json-duplicate-key",
            at=occurrences[-1][0],
            pointer=pointer,
            expected="each key once in its object",
            found=f"{len(occurrences)} times: {', '.join(told)}",
            readers=all_read(f"keeps the last: {last}"),
        )

    def _too_deep(self, pointer: str) -> None:
        depth = nesting_depth(self._text)
        self._log.add(
            "json-too-deep",
            at=self._scan.at,
            pointer=pointer,
            expected=f"at most {MAX_DEPTH} containers inside one another",
            found=f"{depth}",
            readers=depth_readers(depth),
        )
        raise StopReading

    def _count(self, pointer: str) -> None:
        self._num_values += 1
        if self._num_values > MAX_VALUES:
            self._log.add(
                "json-too-many-values",
                at=self._scan.at,
                pointer=pointer,
                expected=f"at most {MAX_VALUES} values",
                found="more",
                readers=all_read("reads it"),
            )
            raise StopReading

    def _truncated(self, inside: str) -> None:
        still_open = ", ".join(
            f"{c.bracket} of {c.pointer or 'the whole'} (line {self._log.line(c.offset)})"
            for c in reversed(self._open)
        )
        self._log.add(
            "json-truncated",
            at=self._scan.at if inside == "before foreign text" else len(self._text),
            pointer=self._open[-1].pointer if self._open else "",
            expected="the end of every string, array and object that began",
            found=f"the text ends {inside}; still open: {still_open or 'the value itself'}",
            readers=all_refuse(),
        )

    def _syntax(self, pointer: str, expected: str) -> None:
        rest = self._text[self._scan.at : self._scan.at + _SHOWN_CHARACTERS]
        self._add("json-syntax", pointer, expected, repr(rest) if rest else "the end of the text")

    def _add(self, name: str, pointer: str, expected: str, found: str, at: int | None = None) -> None:
        place = self._scan.at if at is None else at
        self._log.add(name, at=place, pointer=pointer, expected=expected, found=found, readers=all_refuse())
