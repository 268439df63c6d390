"""``draftproof history``: what was meant for which place, and how far each is proven."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_json, line

if TYPE_CHECKING:
    from draftproof.deploy.ledger.history import Intent
    from draftproof.deploy.ledger.ledger import LedgerText

__all__ = ["history"]


def history(
    dest: Annotated[
        str | None, typer.Argument(metavar="[DEST]", help="Only this place; without it, all.")
    ] = None,
    *,
    ledger: Annotated[Path | None, typer.Option(metavar="DIR", help="The ledger's directory.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Show every recorded write and expectation, oldest first, with its outcome; the chain is checked.

    Exit: 0 the ledger fits together (an empty one does); 1 it is damaged; 2 usage; 3 it cannot be read.
    """
    from draftproof.cli.ledger_option import ledger_at, place_at
    from draftproof.deploy.ledger.history import all_intents

    book = ledger_at(ledger)
    text = book.read()
    place = place_at(dest) if dest is not None else None
    intents = [intent for intent in all_intents(text) if place is None or intent.place == place]
    if as_json:
        emit_json(_document(str(book.directory), text, intents))
        return 0
    for intent in intents:
        line(f"{intent.seq:>5} {intent.time} {intent.kind:<6} {intent.place}")
        line(f"      {_outcome(intent)}{_entries(intent)}")
        line(f"      sha256 {intent.sha256[:16]}, before {intent.old_sha256[:16]}")
    if not intents:
        line(f"{book.directory}: nothing recorded" + (f" for {place}" if place else ""))
    if text.set_back:
        numbers = ", ".join(map(str, text.set_back))
        line(f"the clock was set back before entry {numbers}: the order is by number", style="warning")
    if text.torn:
        line(f"{len(text.torn)} bytes of an unfinished entry at the end: never acknowledged", style="warning")
    return 0


def _outcome(intent: "Intent") -> str:
    if intent.is_refused:
        return "refused, nothing done"
    if intent.level:
        return f"{intent.level} reached" + ("" if intent.is_seen else ", content not seen in place")
    return "seen in place" if intent.is_seen else "not seen in place yet"


def _entries(intent: "Intent") -> str:
    """The ledger's entries behind the outcome: every number of the ledger is shown once."""
    many = "ies" if len(intent.outcomes) > 1 else "y"
    return f" (entr{many} {', '.join(map(str, intent.outcomes))})" if intent.outcomes else ""


def _document(directory: str, text: "LedgerText", intents: "list[Intent]") -> dict[str, object]:
    return {
        "schema": "draftproof.history/1",
        "ledger": directory,
        "num_lines": len(text.entries),
        "torn_bytes": len(text.torn),
        "clock_set_back_before": list(text.set_back),
        "entries": [
            {
                "ledger_entry": intent.seq,
                "time": intent.time,
                "kind": intent.kind,
                "target": str(intent.place),
                "sha256": intent.sha256,
                "old_sha256": intent.old_sha256,
                "is_old_kept": intent.is_old_kept,
                "source": intent.source,
                "level": intent.level or None,
                "is_seen": intent.is_seen,
                "is_refused": intent.is_refused,
                "outcome_entries": list(intent.outcomes),
            }
            for intent in intents
        ],
    }
