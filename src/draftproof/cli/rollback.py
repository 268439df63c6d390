"""``draftproof rollback``: put back what stood before a recorded write, as a verified write."""

from pathlib import Path
from typing import Annotated

import typer

from draftproof.cli.write import emit_receipt, emit_rehearsal

__all__ = ["rollback"]


def rollback(
    dest: Annotated[str, typer.Argument(metavar="DEST", help="The place: a path, or host:/path.")],
    *,
    entry: Annotated[
        int | None, typer.Option(help="Go back before this ledger entry; without it, the latest.")
    ] = None,
    level: Annotated[str, typer.Option(help="The level of proof wanted, L0 to L7.")] = "L2",
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client configuration for ssh instead of the user's.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(metavar="DIR", help="The ledger's directory.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; change nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the receipt as one JSON object.")] = False,
) -> int:
    """Put back the content from before the latest recorded write to DEST (or before --entry).

    Without --entry, DEST must still hold what that write put there; otherwise it is a conflict.
    Exit: as draftproof write.
    """
    from draftproof.cli.ledger_option import host_for, ledger_at, place_at
    from draftproof.deploy.ledger.history import history_of
    from draftproof.deploy.proof.level import level_named
    from draftproof.deploy.writing.rehearse import rehearse
    from draftproof.deploy.writing.rollback import intent_to_undo, preimage
    from draftproof.deploy.writing.write import WriteOrder, verified_write
    from draftproof.names import Sha256

    place, book = place_at(dest), ledger_at(ledger)
    intent = intent_to_undo(history_of(book.read(), place), entry)
    order = WriteOrder(
        place,
        preimage(intent, place, book),
        source=f"rollback before entry {intent.seq}",
        expected_old=Sha256(intent.sha256) if entry is None else None,
        level=level_named(level),
    )
    host = host_for(place, ssh_config)
    if dry_run:
        return emit_rehearsal(rehearse(host, order), as_json=as_json)
    return emit_receipt(verified_write(host, order, book), as_json=as_json)
