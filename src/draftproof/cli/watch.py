"""``draftproof watch``: a plan verified again and again, its state told as it changes and as metrics."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_json, line

if TYPE_CHECKING:
    from draftproof.deploy.fleet.watch import State

__all__ = ["watch"]


def watch(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="Which files are meant where.")],
    *,
    interval: Annotated[float, typer.Option(help="Seconds between two rounds.")] = 60.0,
    rounds: Annotated[int, typer.Option(help="Stop after so many rounds; 0 for never.")] = 0,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve Prometheus metrics at /metrics there.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="So many files at a time.")] = 8,
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client configuration for ssh instead of the user's.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(metavar="DIR", help="The ledger's directory.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object at the end; needs --rounds.")
    ] = False,
) -> int:
    """Verify the plan every --interval seconds and tell every change; files are only read.

    Exit, after --rounds: as draftproof verify for the last round.
    """
    from draftproof.cli.fleet_options import checked_jobs, sources
    from draftproof.cli.ledger_option import host_for, ledger_at
    from draftproof.cli.metrics_server import MetricsServer
    from draftproof.deploy.fleet.fleet import each_file
    from draftproof.deploy.fleet.plan import PlannedFile, read_plan
    from draftproof.deploy.fleet.verify import Verdict, verify
    from draftproof.deploy.fleet.watch import State, changes, metrics_text, state_of

    _check(interval, rounds, as_json=as_json)
    files = read_plan(plan_file).files
    book, workers, contents = ledger_at(ledger), checked_jobs(jobs), sources(files)
    server = MetricsServer(metrics) if metrics else None
    before: dict[str, State] = {}

    def work(file: PlannedFile) -> Verdict:
        return verify(host_for(file.place, ssh_config), file.place, contents[file.source], book)

    finished = 0
    while True:
        told = each_file(files, work, jobs=workers)
        now = [state_of(str(each.file.place), each.result) for each in told]
        finished += 1
        if server:
            server.text = metrics_text(now, rounds=finished, finished_s=time.time())
        for state in [] if as_json else changes(before, now):
            _tell(state)
        before = {state.target: state for state in now}
        if finished == rounds:
            break
        time.sleep(interval)
    if server:
        server.close()
    if as_json:
        emit_json(_document(str(plan_file), finished, now))
    return _exit_code(now)


def _tell(state: "State") -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if state.is_in_place:
        line(f"{stamp} {state.target}: in place, L{state.level}", style="good")
    else:
        line(f"{stamp} {state.target}: {state.trouble}", style="error")


def _document(plan: str, rounds: int, states: "list[State]") -> dict[str, object]:
    files = [
        {"target": s.target, "is_in_place": s.is_in_place, "level": f"L{s.level}", "trouble": s.trouble}
        for s in states
    ]
    return {"schema": "draftproof.watch/1", "plan": plan, "rounds": rounds, "files": files}


def _exit_code(states: "list[State]") -> int:
    if any(state.trouble.startswith("wrong:") for state in states):
        return 1
    return 3 if any(state.trouble for state in states) else 0


def _check(interval: float, rounds: int, *, as_json: bool) -> None:
    from draftproof.errors import UsageError

    if interval <= 0 or rounds < 0 or (as_json and not rounds):
        raise UsageError(
            "watch",
            expected="--interval above 0, --rounds 0 or more, and --rounds with --json",
            found=f"--interval {interval} --rounds {rounds}" + (" --json" if as_json else ""),
            where="command line",
            means="nothing was done",
            next_step="draftproof watch --help",
        )
