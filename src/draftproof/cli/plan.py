"""``draftproof plan``: record a whole plan as expected, and show what would change."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import line

if TYPE_CHECKING:
    from draftproof.deploy.fleet.plan import PlannedFile
    from draftproof.deploy.writing.rehearse import Rehearsal

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
    from draftproof.cli.fleet_options import order_for, run_plan
    from draftproof.cli.ledger_option import host_for, ledger_at
    from draftproof.deploy.writing.expect import expect
    from draftproof.deploy.writing.rehearse import rehearse

    book = ledger_at(ledger)

    def work(file: "PlannedFile", content: bytes) -> "Rehearsal":
        host = host_for(file.place, ssh_config)
        rehearsal = rehearse(host, order_for(file, content))
        expect(host, file.place, content, source=str(file.source.absolute()), ledger=book)
        return rehearsal

    return run_plan("plan", plan_file, work, _tell, _exit_of, jobs=jobs, as_json=as_json)


def _tell(rehearsal: "Rehearsal") -> None:
    line(f"{rehearsal.place}: {rehearsal.told}")
    for changed in rehearsal.diff:
        line(f"  {changed}")


def _exit_of(rehearsal: "Rehearsal") -> int:
    return 0 if rehearsal.would == "nothing" else 1
