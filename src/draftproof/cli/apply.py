"""``draftproof apply``: every file of a plan put in place by a verified write."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from draftproof.deploy.fleet.plan import PlannedFile
    from draftproof.deploy.fleet.verify import Verdict
    from draftproof.deploy.writing.receipt import Receipt
    from draftproof.deploy.writing.rehearse import Rehearsal

__all__ = ["apply"]


def apply(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="Which files are meant where.")],
    *,
    jobs: Annotated[int, typer.Option(help="So many files at a time.")] = 8,
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client configuration for ssh instead of the user's.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(metavar="DIR", help="The ledger's directory.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; change nothing, record nothing.")
    ] = False,
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Write files anew that are in place already.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Put every file of the plan in place; each has its own receipt or error, and none hides another's.

    A file that is in place already, as far proven as the plan asks, is told so and left alone.

    Exit: the first of 5 outcome unknown, 4 conflict, 1 refused, 3 level not reached or host not reached, that
    occurs; else 0.
    """
    from draftproof.cli.fleet_options import order_for, run_plan
    from draftproof.cli.ledger_option import host_for, ledger_at
    from draftproof.deploy.fleet.verify import verify
    from draftproof.deploy.writing.content import check_content
    from draftproof.deploy.writing.rehearse import rehearse
    from draftproof.deploy.writing.write import verified_write

    book = ledger_at(ledger)

    def work(file: "PlannedFile", content: bytes) -> "Receipt | Rehearsal | Verdict":
        host, order = host_for(file.place, ssh_config), order_for(file, content)
        if dry_run:
            return rehearse(host, order)
        check_content(content, file.place.path)
        if not rewrite:
            verdict = verify(host, file.place, content, book, process=order.process)
            if verdict.diagnosis is None and verdict.is_enough(file.level):
                return verdict
        return verified_write(host, order, book)

    return run_plan("apply", plan_file, work, _tell, _exit_of, jobs=jobs, as_json=as_json)


def _tell(result: "Receipt | Rehearsal | Verdict") -> None:
    from draftproof.cli.verify import tell_verdict
    from draftproof.cli.write import emit_receipt, emit_rehearsal
    from draftproof.deploy.fleet.verify import Verdict
    from draftproof.deploy.writing.receipt import Receipt

    if isinstance(result, Verdict):
        tell_verdict(result)
    elif isinstance(result, Receipt):
        emit_receipt(result, as_json=False)
    else:
        emit_rehearsal(result, as_json=False)


def _exit_of(result: "Receipt | Rehearsal | Verdict") -> int:
    from draftproof.deploy.writing.receipt import Receipt

    return 3 if isinstance(result, Receipt) and not result.is_enough else 0
