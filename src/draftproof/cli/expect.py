"""``draftproof expect``: record what is meant for a place before anybody writes it."""

from pathlib import Path
from typing import Annotated

import typer

from draftproof.cli.output import emit_json, line

__all__ = ["expect"]


def expect(
    src: Annotated[Path, typer.Argument(metavar="SRC", help="The file with the intended content.")],
    dest: Annotated[str, typer.Argument(metavar="DEST", help="Where it is to be: a path, or host:/path.")],
    *,
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client configuration for ssh instead of the user's.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(metavar="DIR", help="The ledger's directory.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Record SRC as meant for DEST, and what is there now; then let any tool write it, and check DEST.

    Exit: 0 recorded; 1 SRC or DEST is refused; 2 usage; 3 no file or host to read, or no ledger to write.
    """
    from draftproof.cli.ledger_option import host_for, ledger_at, place_at, read_source
    from draftproof.deploy.writing.expect import expect as record

    place = place_at(dest)
    content = read_source(src)
    expectation = record(
        host_for(place, ssh_config), place, content, source=str(src.absolute()), ledger=ledger_at(ledger)
    )
    if as_json:
        emit_json(expectation.as_dict())
        return 0
    line(f"{place}: expecting sha256 {expectation.sha256}")
    line(f"  before {expectation.old_sha256}  ledger entry {expectation.ledger_entry}")
    if expectation.sha256 == expectation.old_sha256:
        line("  it is there already", style="warning")
    if not expectation.is_old_kept:
        line("  the content from before is too large to be kept; its digest is", style="warning")
    return 0
