"""``draftproof preflight``: what an engine would make of a drafter, asked of it before it is started."""

from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.engine_option import EngineName, HostName, Prefix, SshConfig, engine_python
from draftproof.cli.output import emit_json, line, shown

if TYPE_CHECKING:
    from draftproof.findings.finding import Finding
    from draftproof.runtimes.effective import Effective
    from draftproof.runtimes.resolve import Preflight

__all__ = ["preflight", "print_effective", "print_finding"]


def preflight(
    subject: Annotated[str, typer.Argument(metavar="DIR", help="The drafter's directory.")],
    *,
    target: Annotated[str, typer.Option(metavar="DIR", help="The target it is to draft for.")],
    engine: Annotated[EngineName, typer.Option(help="Which engine is asked.")],
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The engine's own Python; this one if not given.")
    ] = None,
    host: HostName = None,
    prefix: Prefix = None,
    k: Annotated[
        int | None,
        typer.Option("--k", metavar="N", min=1, help="Tokens drafted per step; the file's if not given."),
    ] = None,
    there: Annotated[
        str | None,
        typer.Option("--drafter-there", metavar="DIR", help="Its path where the engine is, if another one."),
    ] = None,
    target_there: Annotated[
        str | None, typer.Option(metavar="DIR", help="The target's path there, if another one.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long the engine may take.")
    ] = 180.0,
    ssh_config: SshConfig = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Let an engine's own code resolve a drafter before any start: no GPU, no weights."""
    from draftproof.cli.elsewhere import fetched
    from draftproof.findings.evidence import Evidence, read_model
    from draftproof.runtimes.resolve import Question, resolve

    asked = engine_python(python, host, prefix, ssh_config)
    models = Evidence(read_model(subject), read_model(target, config_only=True), None, None, None)
    evidence = fetched(models, None, ssh_config)
    question = Question(
        engine, evidence.subject, evidence.target_model or evidence.subject, k, there, target_there
    )
    result = resolve(asked, question, timeout_seconds=timeout)
    if as_json:
        emit_json(result.as_dict())
    else:
        _print(result)
    return result.report.exit_code


def _print(result: "Preflight") -> None:
    line(f"drafter  {result.question.subject.given}")
    line(f"target   {result.question.target.given}")
    line(f"asked    {result.asked}")
    if result.effective is not None:
        print_effective(result.effective)
    for finding in result.report.findings:
        print_finding(finding)
    for entry in result.report.not_looked:
        line(f"not looked at: {entry.check} ({entry.reason})", style="dim")
    if result.report.exit_code == 0:
        line("the engine would run this drafter as its file says", style="good")


def print_effective(effective: "Effective") -> None:
    """The record as a table: name, value, how it is known, from where."""
    rank = "" if effective.rank is None else f", rank {effective.rank}"
    line(f"engine   {effective.engine} {effective.version}{rank}, {effective.path}")
    line("")
    rows = effective.flat
    width = max((len(name) for name in rows), default=0)
    values = max((len(shown(fact.value)) for fact in rows.values() if fact.is_known), default=0)
    for name, fact in rows.items():
        value = shown(fact.value) if fact.is_known else "?"
        style = None if fact.is_known else "dim"
        text = f"{name.ljust(width)}  {value.ljust(min(values, 40))}  {fact.how.value}: {fact.source}"
        line(text, style=style)


def print_finding(finding: "Finding") -> None:
    """One finding: what, where, what it means, what to do."""
    line("")
    line(f"{finding.severity.value} {finding.id} {finding.layer.value}", style=finding.severity.value)
    line(f"  {finding.subject}: expected {shown(finding.expected)}, found {shown(finding.found)}")
    for name, text in (("where", finding.where), ("means", finding.means), ("next", finding.next)):
        line(f"  {name:<6} {text}")
