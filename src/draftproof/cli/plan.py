"""``draftproof plan``: record a whole plan as expected, and show what would change."""

from pathlib import Path
from typing import Annotated

import typer

from draftproof.cli.output import emit_json, line

__all__ = ["plan"]


def plan(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="Which files are meant where.")],
    *,
    jobs: Annotated[int, typer.Option(help="So many files at a time.")] = 8,
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client configuration for ssh instead of the user's.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(metavar="DIR", help="The ledger's directory.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Record every file of the plan as expected, with what is there now, and show what would change.

    Then draftproof apply, or any other tool, may write; draftproof verify says what came of it.
    Exit: 0 everything is in place; 1 something would change or is refused; 2 usage; 3 a host or file cannot
    be read.
    """
    from draftproof.cli.fleet_options import checked_jobs, error_line, error_object, order_for, sources
    from draftproof.cli.ledger_option import host_for, ledger_at
    from draftproof.deploy.fleet.fleet import each_file, worst
    from draftproof.deploy.fleet.plan import PlannedFile, read_plan
    from draftproof.deploy.writing.expect import expect
    from draftproof.deploy.writing.rehearse import Rehearsal, rehearse
    from draftproof.errors import DraftproofError

    files = read_plan(plan_file).files
    contents = sources(files)
    book = ledger_at(ledger)

    def work(file: PlannedFile) -> Rehearsal:
        host, content = host_for(file.place, ssh_config), contents[file.source]
        rehearsal = rehearse(host, order_for(file, content))
        expect(host, file.place, content, source=str(file.source.absolute()), ledger=book)
        return rehearsal

    codes: list[int] = []
    results: list[dict[str, object]] = []
    for told in each_file(files, work, jobs=checked_jobs(jobs)):
        if isinstance(told.result, DraftproofError):
            codes.append(told.result.exit_code)
            results.append(error_object(told.file, told.result))
            if not as_json:
                error_line(told.file, told.result)
            continue
        codes.append(0 if told.result.would == "nothing" else 1)
        results.append(dict(told.result.as_dict()))
        if not as_json:
            line(f"{told.file.place}: would {told.result.would}")
            for changed in told.result.diff:
                line(f"  {changed}")
    if as_json:
        emit_json({"schema": "draftproof.plan/1", "plan": str(plan_file), "files": results})
    return worst(codes)
