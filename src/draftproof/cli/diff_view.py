"""What ``draftproof diff`` prints: one object, or one line a difference."""

from dataclasses import dataclass

from draftproof.cli.output import line
from draftproof.config.diff import (
    ABSENT,
    BytesVerdict,
    Difference,
    Kind,
    compare_bytes,
    diff,
    formatting_differences,
    patch,
)
from draftproof.config.json.defects import DEFECTS
from draftproof.config.json.shown import holds_secret, mask_secrets, ranges, value_line
from draftproof.config.json.value import Defect, JsonValue
from draftproof.config.raw import RawConfig, RefusedConfig
from draftproof.printable import printable

__all__ = ["Comparison", "print_refusal"]

_WIDEST = 100  # value_line cuts values there
_NOT_PLAIN = (Kind.TYPE, Kind.LENGTH, Kind.REORDERED)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two configs and all that differs between them."""

    a: RawConfig
    b: RawConfig
    differences: tuple[Difference, ...]
    verdict: BytesVerdict
    formatting: tuple[str, ...]
    """What of the formatting differs, where nothing else does."""

    @classmethod
    def of(cls, a: RawConfig, b: RawConfig) -> "Comparison":
        """The comparison of two configs as read."""
        verdict = compare_bytes(a, b)
        formatting = formatting_differences(a, b) if verdict is BytesVerdict.FORMATTING else ()
        return cls(a, b, diff(a.value, b.value), verdict, formatting)

    def document(self) -> dict[str, object]:
        """The one object of ``--json``."""
        secret = [d for d in self.differences if holds_secret(d.b, d.pointer)]
        return {
            "schema": "draftproof.diff/1",
            "a": _file(self.a),
            "b": _file(self.b),
            "equal": not self.differences,
            "bytes": self.verdict.value,
            "formatting": list(self.formatting),
            "differences": [self._entry(difference) for difference in self.differences],
            # A secret is not printed, so its operation cannot be; it is named instead.
            "patch": patch([d for d in self.differences if d not in secret]),
            "patch_leaves_out": [d.pointer for d in secret],
        }

    def _entry(self, difference: Difference) -> dict[str, object]:
        return {
            "pointer": difference.pointer,
            "kind": difference.kind.value,
            "a": _side(self.a, difference.pointer, difference.a, difference.a_type),
            "b": _side(self.b, difference.pointer, difference.b, difference.b_type),
            "indexes": list(difference.indexes),
        }

    def print(self) -> None:
        """One line a difference, then the verdict, then what is odd about either file."""
        rows = [_row(self.a, self.b, difference) for difference in self.differences]
        # A column is as wide as its cells, never as wide as a hostile key of millions of characters.
        pointer_width = min(_WIDEST, max((len(row[0]) for row in rows), default=0))
        left_width = min(_WIDEST, max((len(row[1]) for row in rows), default=0))
        for pointer, left, right, note in rows:
            line(f"{pointer:<{pointer_width}}  {left:<{left_width}}  ->  {right}{note}")
        if rows:
            line(f"{len(rows)} {'value differs' if len(rows) == 1 else 'values differ'}", style="error")
        elif self.verdict is BytesVerdict.IDENTICAL:
            line("values agree; bytes identical", style="good")
        else:
            told = ", ".join(self.formatting) or self.verdict.value
            line(f"values agree; bytes differ: {told}", style="good")
        for raw in (self.a, self.b):
            _print_oddities(raw)


def print_refusal(error: RefusedConfig) -> None:
    """Every defect of a refused file: its name and place, what was found, what other readers make of it."""
    count = f"{len(error.defects)} defect{'s' if len(error.defects) > 1 else ''}"
    line(f"{error.id} {error.subject}: not {error.expected}, {count}", style="error", to_stderr=True)
    for defect in error.defects:
        place = f"l.{defect.position.line} c.{defect.position.column}" if defect.position else "whole file"
        pointer = f"  {defect.pointer}" if defect.pointer else ""
        line(f"  {defect.id:<28} {place:<12}{pointer}  {defect.found}", to_stderr=True)
        if told := _readers_told(defect):
            line(f"  {'':<28} {told}", style="dim", to_stderr=True)
    for name, text in (("means", error.means), ("next", error.next_step)):
        line(f"  {name:<6} {text}", to_stderr=True)


def _readers_told(defect: Defect) -> str:
    """Empty where every reader refuses, which is what one expects."""
    by_answer: dict[str, list[str]] = {}
    for reader, answer in defect.readers.items():
        by_answer.setdefault(answer, []).append(reader)
    if len(by_answer) == 1:
        (answer,) = by_answer
        return "" if answer == "refuses" else f"every other reader {answer}"
    return "; ".join(f"{', '.join(readers)}: {answer}" for answer, readers in by_answer.items())


def _print_oddities(raw: RawConfig) -> None:
    for oddity in raw.oddities:
        if DEFECTS[oddity.id].severity == "warning":
            place = f" line {oddity.position.line}" if oddity.position else ""
            line(f"{raw.origin}#{oddity.pointer}{place}: {oddity.id}: {oddity.found}", style="warning")


def _file(raw: RawConfig) -> dict[str, object]:
    return {
        "path": raw.origin,
        "sha256": raw.sha256,
        "oddities": [defect.as_dict() for defect in raw.oddities],
    }


def _side(raw: RawConfig, pointer: str, value: JsonValue, kind: str) -> dict[str, object] | None:
    if kind == ABSENT:
        return None
    place = raw.positions[pointer]
    masked = mask_secrets(value, pointer)
    return {"type": kind, "value": masked, "line": place.line, "column": place.column}


def _row(a: RawConfig, b: RawConfig, difference: Difference) -> tuple[str, str, str, str]:
    # Added, removed, null and value are plain from the two sides; the others are not.
    note = f"  {difference.kind.value}" if difference.kind in _NOT_PLAIN else ""
    where = f"  [{ranges(difference.indexes)}]" if difference.indexes else ""
    return (
        printable(difference.pointer) or "(the whole)",
        _shown(a, difference.pointer, difference.a, difference.a_type),
        _shown(b, difference.pointer, difference.b, difference.b_type),
        f"{note}{where}",
    )


def _shown(raw: RawConfig, pointer: str, value: JsonValue, kind: str) -> str:
    if kind == ABSENT:
        return ABSENT
    shown = printable(value_line(mask_secrets(value, pointer)))
    return f"{shown} ({'' if kind == 'null' else kind + ', '}l.{raw.line(pointer)})"
