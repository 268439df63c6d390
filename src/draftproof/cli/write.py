"""``draftproof write``: put a file in place, read it back, say how far that is proven."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_json, line
from draftproof.cli.process_option import Pid, Port

if TYPE_CHECKING:
    from draftproof.deploy.writing.receipt import OldDigest, Receipt
    from draftproof.deploy.writing.rehearse import Rehearsal

__all__ = ["emit_receipt", "emit_rehearsal", "write"]


def write(
    src: Annotated[Path, typer.Argument(metavar="SRC", help="The file with the intended content.")],
    dest: Annotated[str, typer.Argument(metavar="DEST", help="Where it is to be: a path, or host:/path.")],
    *,
    expect_old: Annotated[
        str | None,
        typer.Option(metavar="SHA256|absent", help="Refuse unless DEST holds this now."),
    ] = None,
    level: Annotated[str, typer.Option(help="The level of proof wanted, L0 to L7.")] = "L2",
    root: Annotated[str, typer.Option(metavar="DIR", help="Refuse a DEST that is not below DIR.")] = "/",
    pid: Pid = None,
    port: Port = None,
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client configuration for ssh instead of the user's.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(metavar="DIR", help="The ledger's directory.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; change nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the receipt as one JSON object.")] = False,
) -> int:
    """Put SRC at DEST, read it back, and say how far that is proven.

    Exit: 0 the level is reached; 1 refused; 2 usage; 3 the level is not reached, or no host or file to read;
    4 conflict, nothing changed; 5 outcome unknown.
    """
    from draftproof.cli.ledger_option import host_for, ledger_at, place_at, read_source
    from draftproof.cli.process_option import process_named
    from draftproof.deploy.proof.level import Level, level_named
    from draftproof.deploy.writing.rehearse import rehearse
    from draftproof.deploy.writing.write import WriteOrder, verified_write
    from draftproof.errors import UsageError

    place, process, asked = place_at(dest), process_named(pid, port), level_named(level)
    if asked >= Level.L6 and not process.is_named:
        raise UsageError(
            "--level",
            expected=f"--pid or --port beside {asked.name}: a process that is to see the file",
            found="neither",
            where="command line",
            means="nothing was done",
            next_step=f"--level {asked.name} --port N",
        )
    order = WriteOrder(
        place,
        read_source(src),
        source=str(src.absolute()),
        expected_old=_old_digest(expect_old),
        level=asked,
        root=root,
        process=process,
    )
    host = host_for(place, ssh_config)
    if dry_run:
        return emit_rehearsal(rehearse(host, order), as_json=as_json)
    return emit_receipt(verified_write(host, order, ledger_at(ledger)), as_json=as_json)


def emit_receipt(receipt: "Receipt", *, as_json: bool) -> int:
    """Show a receipt; the exit status says whether the level asked for is reached."""
    if as_json:
        emit_json(receipt.as_dict())
        return 0 if receipt.is_enough else 3
    style = "good" if receipt.is_enough else "error"
    line(f"{receipt.place}: {receipt.level.name} ({_claim(receipt)})", style=style)
    line(f"  sha256 {receipt.sha256}  before {receipt.old_sha256}  ledger entry {receipt.ledger_entry}")
    for item in receipt.evidence:
        line(f"  {item.level.name} {'holds' if item.holds else 'not shown'}: {item.how}")
    for note in receipt.notes:
        line(f"  {note}", style="warning")
    if not receipt.is_enough:
        line(f"  {receipt.asked.name} was asked for; the file holds the {receipt.state.value} content now")
    return 0 if receipt.is_enough else 3


def _claim(receipt: "Receipt") -> str:
    from draftproof.deploy.proof.level import CLAIMS

    return CLAIMS[receipt.level]


def emit_rehearsal(rehearsal: "Rehearsal", *, as_json: bool) -> int:
    """Show what a write would do."""
    if as_json:
        emit_json(rehearsal.as_dict())
        return 0
    line(f"{rehearsal.place}: {rehearsal.told}; nothing was changed")
    for changed in rehearsal.diff:
        line(changed)
    return 0


def _old_digest(option: str | None) -> "OldDigest | None":
    from draftproof.deploy.writing.receipt import ABSENT
    from draftproof.errors import UsageError
    from draftproof.names import Sha256

    if option is None:
        return None
    if option == ABSENT:
        return ABSENT
    digest = option.lower().removeprefix("sha256:")
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):  # noqa: PLR2004 - a sha256 in hex
        raise UsageError(
            "--expect-old",
            expected="64 hex digits, or absent",
            found=option,
            where="command line",
            means="nothing was done",
            next_step="sha256sum FILE",
        )
    return Sha256(digest)
