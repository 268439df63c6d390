"""``draftproof launch PLAN.toml``: the engine started, held against its plan, and stopped again."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_json, line, shown

if TYPE_CHECKING:
    from types import FrameType

    from draftproof.deploy.launching.report import Launch, Stage
    from draftproof.deploy.serving.plan import ServePlan

__all__ = ["launch"]


def launch(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="A plan with a [serve] table.")],
    *,
    python: Annotated[
        str, typer.Option(metavar="PATH", help="The engine's own Python, where the plan does not say it.")
    ] = "",
    engine_version: Annotated[
        str, typer.Option(metavar="V", help="The engine's version, where the plan does not say it.")
    ] = "",
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the process that was looked at, right or wrong.")
    ] = False,
    only_look: Annotated[
        bool, typer.Option("--only-look", help="Stop it even when all is as meant.")
    ] = False,
    timeout: Annotated[
        float, typer.Option(metavar="S", min=1, help="How long it may take to become healthy.")
    ] = 900.0,
    request_timeout: Annotated[
        float, typer.Option(metavar="S", min=1, help="How long one request may take.")
    ] = 120.0,
    grace: Annotated[
        float, typer.Option(metavar="S", min=0, help="Between asking it to end and killing it.")
    ] = 20.0,
    probe: Annotated[
        int, typer.Option("--probe", metavar="N", min=0, max=8, help="Prompts a group; 0 for none.")
    ] = 2,
    logs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where its logs go; a new directory if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Start the engine of a plan, hold what it really does against the plan, stop it where they differ.

    It is looked at on loopback, with the engine's development endpoints; when all is as meant it is started
    again exactly as rendered, and left running.

    Exit: 0 all as meant; 1 it is not, or the plan cannot be held; 2 usage; 3 it did not start, or something
    could not be looked at.
    """
    from dataclasses import replace

    from draftproof.deploy.launching.launch import How
    from draftproof.deploy.launching.launch import launch as launched
    from draftproof.deploy.serving.plan import read_serve_plan
    from draftproof.deploy.serving.reason import Said
    from draftproof.deploy.serving.render import engine_of, render

    plan = read_serve_plan(plan_file)
    if python:
        plan = replace(plan, said={**plan.said, "python": Said(python, "--python", "command line")})
    engine, version = engine_of(plan, _engine(plan), engine_version)
    made = render(plan, engine, version)
    how = How(
        python=plan.text("python"),
        log_folder=_folder(logs),
        timeout_seconds=timeout,
        request_seconds=request_timeout,
        grace_seconds=grace,
        num_prompts=probe,
        is_kept=keep,
        is_only_look=only_look,
        verify_files=lambda: _verified(plan),
        told=lambda text: line(text, style="dim", to_stderr=True),
    )
    with _ended_by_signals():
        report = launched(made, how)
    if as_json:
        emit_json(report.as_dict())
    else:
        _print(report)
    return report.exit_code


def _engine(plan: "ServePlan") -> str:
    from draftproof.errors import UsageError

    name = plan.text("engine") or "vllm"
    if name not in ("vllm", "sglang") or not plan.text("python"):
        raise UsageError(
            "PLAN",
            expected="a plan for vllm or sglang, and the engine's own Python (python, or --python)",
            found=f"engine {name}, python {plan.text('python') or 'not named'}",
            where=f"{plan.origin}#/serve",
            means="nothing was started",
            next_step="draftproof launch plan.toml --python /opt/engine/bin/python",
        )
    return name


def _folder(logs: Path | None) -> Path:
    import tempfile

    from draftproof.errors import CouldNotLook

    if logs is None:
        return Path(tempfile.mkdtemp(prefix="draftproof-launch-log-"))
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CouldNotLook(
            "--logs",
            expected="a directory that can be made",
            found=error.strerror or str(error),
            where=str(logs),
            means="nothing was started",
            next_step="name another directory",
        ) from error
    return logs.absolute()


def _verified(plan: "ServePlan") -> "list[Stage]":
    """Each planned file of any machine, read again."""
    from draftproof.cli.ledger_option import host_for, ledger_at, read_source
    from draftproof.deploy.fleet.verify import verify
    from draftproof.deploy.launching.report import Stage

    stages = []
    for file in plan.files.files if plan.files else ():
        verdict = verify(host_for(file.place, None), file.place, read_source(file.source), ledger_at(None))
        if verdict.diagnosis is None:
            stages.append(Stage("files", f"{file.place}: in place, {verdict.level.name}", True))
        else:
            cause = f"{verdict.diagnosis.cause.value}: {verdict.diagnosis.detail}"
            stages.append(Stage("files", f"{file.place}: not in place: {cause}", False))
    return stages


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """TERM and HUP end the look as an interrupt does; one that was ignored from outside stays ignored."""

    def interrupt(number: int, _frame: "FrameType | None") -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    heard = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _print(report: "Launch") -> None:
    line(" ".join(report.argv), style="dim")
    for stage in report.stages:
        line(f"{stage.name:<14} {stage.told}", style="good" if stage.is_good else "error")
    for loss in report.made.losses:
        line(f"lost {loss.about} = {shown(loss.value)}: {loss.why}", style="error")
    for finding in report.findings:
        line(f"{finding.severity.value} {finding.id}", style=finding.severity.value)
        line(f"  {finding.subject}: expected {shown(finding.expected)}, found {shown(finding.found)}")
        for name, text in (("where", finding.where), ("means", finding.means), ("next", finding.next)):
            line(f"  {name:<6} {text}")
    for entry in report.not_looked:
        line(f"not looked at: {entry.check} ({entry.reason})", style="dim")
    for unlooked in report.made.unlooked:
        line(f"not looked at: {unlooked.about} ({unlooked.reason})", style="dim")
    line(f"log {report.log}", style="dim")
