"""How results reach people and programs: one JSON object, or text with no escape of foreign origin."""

import json
import os
import sys
from collections.abc import Mapping, Sequence

from draftproof.errors import DraftproofError
from draftproof.printable import printable

__all__ = ["emit_error", "emit_json", "line", "shown"]

_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan", "good": "green", "dim": "dim"}


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
    from draftproof.cli.console import print_styled

    plain = "NO_COLOR" in os.environ  # no-color.org: no attribute at all, bold included
    shade = _COLOURS[style] if style and not plain else ""
    print_styled(printable(text), shade, sys.stderr if to_stderr else sys.stdout)


def shown(value: object) -> str:
    """A JSON value on one line, as short as it can be without losing anything."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence | Mapping) or value is None or isinstance(value, bool | int | float):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)
