"""``draftproof apply``: every file of a plan put in place by a verified write."""

from pathlib import Path
from typing import Annotated

import typer

from draftproof.cli.output import emit_json

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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Put every file of the plan in place; each has its own receipt or error, and none hides another's.

    Exit: the first of 5 outcome unknown, 4 conflict, 1 refused, 3 level not reached or host not reached, that
    occurs; else 0.
    """
    from draftproof.cli.fleet_options import checked_jobs, error_line, error_object, order_for, sources
    from draftproof.cli.ledger_option import host_for, ledger_at
    from draftproof.cli.write import emit_receipt, emit_rehearsal
    from draftproof.deploy.fleet.fleet import each_file, worst
    from draftproof.deploy.fleet.plan import PlannedFile, read_plan
    from draftproof.deploy.writing.receipt import Receipt
    from draftproof.deploy.writing.rehearse import Rehearsal, rehearse
    from draftproof.deploy.writing.write import verified_write
    from draftproof.errors import DraftproofError

    files = read_plan(plan_file).files
    contents = sources(files)
    book = ledger_at(ledger)

    def work(file: PlannedFile) -> Receipt | Rehearsal:
        host, order = host_for(file.place, ssh_config), order_for(file, contents[file.source])
        return rehearse(host, order) if dry_run else verified_write(host, order, book)

    codes: list[int] = []
    results: list[dict[str, object]] = []
    for told in each_file(files, work, jobs=checked_jobs(jobs)):
        if isinstance(told.result, DraftproofError):
            codes.append(told.result.exit_code)
            results.append(error_object(told.file, told.result))
            if not as_json:
                error_line(told.file, told.result)
            continue
        results.append(dict(told.result.as_dict()))
        if isinstance(told.result, Rehearsal):
            codes.append(0 if as_json else emit_rehearsal(told.result, as_json=False))
        else:
            codes.append(0 if told.result.is_enough else 3)
            if not as_json:
                emit_receipt(told.result, as_json=False)
    if as_json:
        emit_json({"schema": "draftproof.apply/1", "plan": str(plan_file), "files": results})
    return worst(codes)
