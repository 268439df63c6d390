"""How results reach people and programs: one JSON object, or text with no escape of foreign origin."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TextIO

from rich.console import Console
from rich.text import Text

from draftproof.errors import DraftproofError
from draftproof.printable import printable

__all__ = ["emit_error", "emit_json", "line", "shown"]

_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan", "good": "green", "dim": "dim"}


class _Lines(Console):
    """A console that leaves a closed pipe to the command, which knows the exit status for it."""

    def on_broken_pipe(self) -> None:
        """Say so, instead of leaving with 1, which means findings here."""
        raise BrokenPipeError


def emit_json(document: Mapping[str, object]) -> None:
    """Write one JSON object to standard output; ASCII only, so no terminal control passes."""
    sys.stdout.write(json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n")


def emit_error(error: DraftproofError, *, as_json: bool) -> None:
    """Write an error: as the one JSON object on standard output, or as four lines on standard error."""
    if as_json:
        emit_json({"schema": "draftproof.error/1", "error": error.as_dict()})
        return
    summary = f"{error.id} {error.subject}: expected {error.expected}, found {error.found}"
    line(summary, style="error", to_stderr=True)
    for name, text in (("where", error.where), ("means", error.means), ("next", error.next_step)):
        line(f"  {name:<6} {text}", to_stderr=True)


def line(text: str, *, style: str | None = None, to_stderr: bool = False) -> None:
    """Print one line of text; foreign characters escaped, colour only on a terminal."""
    plain = "NO_COLOR" in os.environ  # no-color.org: no attribute at all, bold included
    console = _console(sys.stderr if to_stderr else sys.stdout)
    console.print(Text(printable(text), style=_COLOURS[style] if style and not plain else ""))


@lru_cache(maxsize=4)
def _console(stream: TextIO) -> _Lines:
    """One console a stream: making one takes as long as printing ten lines."""
    return _Lines(file=stream, highlight=False, markup=False, soft_wrap=True, emoji=False)


def shown(value: object) -> str:
    """A JSON value on one line, as short as it can be without losing anything."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence | Mapping) or value is None or isinstance(value, bool | int | float):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)
