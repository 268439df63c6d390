"""``draftproof verify``: every file of a plan read again, the wrong ones told by their cause."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import line
from draftproof.cli.process_option import Pid, Port

if TYPE_CHECKING:
    from draftproof.deploy.fleet.plan import PlannedFile
    from draftproof.deploy.fleet.verify import Verdict

__all__ = ["tell_verdict", "verify"]


def verify(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="Which files are meant where.")],
    *,
    jobs: Annotated[int, typer.Option(help="So many files at a time.")] = 8,
    pid: Pid = None,
    port: Port = None,
    witness: Annotated[
        Path | None,
        typer.Option(metavar="RECORD", help="What the engine's processes here wrote down as they opened it."),
    ] = None,
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client configuration for ssh instead of the user's.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(metavar="DIR", help="The ledger's directory.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Read every file of the plan where it is meant to be; wrong ones are told by their cause.

    Exit: 0 every file is in place; 1 one is not; 2 usage; 3 none is wrong, but one could not be read.
    """
    from draftproof.cli.fleet_options import run_plan
    from draftproof.cli.ledger_option import host_for, ledger_at
    from draftproof.cli.process_option import process_named
    from draftproof.deploy.fleet.verify import verify as verify_place
    from draftproof.deploy.process import Process
    from draftproof.runtimes.witness.record import read_record

    record = read_record(witness) if witness else None
    book, named = ledger_at(ledger), process_named(pid, port)

    def work(file: "PlannedFile", content: bytes) -> "Verdict":
        process = named if named.is_named else Process(port=file.port)
        verdict = verify_place(host_for(file.place, ssh_config), file.place, content, book, process=process)
        return verdict.with_witness(record) if record else verdict

    return run_plan("verify", plan_file, work, tell_verdict, _exit_of, jobs=jobs, as_json=as_json)


def _exit_of(verdict: "Verdict") -> int:
    return 1 if verdict.diagnosis else 0


def tell_verdict(verdict: "Verdict") -> None:
    """Show what was found at one place."""
    if verdict.diagnosis is not None:
        cause = verdict.diagnosis.cause.value
        line(f"{verdict.place}: not in place: {cause}: {verdict.diagnosis.detail}", style="error")
        return
    line(f"{verdict.place}: in place, {verdict.level.name}", style="good")
    for item in verdict.evidence:
        line(f"  {item.level.name} {'holds' if item.holds else 'not shown'}: {item.how}")
