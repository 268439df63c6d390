"""``draftproof verify``: every file of a plan read again, the wrong ones told by their cause."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_json, line

if TYPE_CHECKING:
    from draftproof.deploy.fleet.verify import Verdict

__all__ = ["verify"]


def verify(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="Which files are meant where.")],
    *,
    jobs: Annotated[int, typer.Option(help="So many files at a time.")] = 8,
    pid: Annotated[int, typer.Option(help="A process on each host that is to see the files.")] = 0,
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client configuration for ssh instead of the user's.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(metavar="DIR", help="The ledger's directory.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Read every file of the plan where it is meant to be; wrong ones are told by their cause.

    Exit: 0 every file is in place; 1 one is not; 2 usage; 3 none is wrong, but one could not be read.
    """
    from draftproof.cli.fleet_options import checked_jobs, error_line, error_object, sources
    from draftproof.cli.ledger_option import host_for, ledger_at
    from draftproof.deploy.fleet.fleet import each_file, worst
    from draftproof.deploy.fleet.plan import PlannedFile, read_plan
    from draftproof.deploy.fleet.verify import Verdict
    from draftproof.deploy.fleet.verify import verify as verify_place
    from draftproof.errors import DraftproofError

    files = read_plan(plan_file).files
    contents = sources(files)
    book = ledger_at(ledger)

    def work(file: PlannedFile) -> Verdict:
        return verify_place(
            host_for(file.place, ssh_config), file.place, contents[file.source], book, pid=pid
        )

    codes: list[int] = []
    results: list[dict[str, object]] = []
    for told in each_file(files, work, jobs=checked_jobs(jobs)):
        if isinstance(told.result, DraftproofError):
            codes.append(told.result.exit_code)
            results.append(error_object(told.file, told.result))
            if not as_json:
                error_line(told.file, told.result)
            continue
        codes.append(1 if told.result.diagnosis else 0)
        results.append(dict(told.result.as_dict()))
        if not as_json:
            _print(told.result)
    if as_json:
        emit_json({"schema": "draftproof.verify/1", "plan": str(plan_file), "files": results})
    return worst(codes)


def _print(verdict: "Verdict") -> None:
    if verdict.diagnosis is not None:
        cause = verdict.diagnosis.cause.value
        line(f"{verdict.place}: not in place: {cause}: {verdict.diagnosis.detail}", style="error")
        return
    line(f"{verdict.place}: in place, {verdict.level.name}", style="good")
    for item in verdict.evidence:
        line(f"  {item.level.name} {'holds' if item.holds else 'not shown'}: {item.how}")
