"""``draftproof build``: which copy of an engine would be imported, if it is whole, and what it can do."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.engine_option import engine_python
from draftproof.cli.output import emit_json, line, shown

if TYPE_CHECKING:
    from draftproof.runtimes.build.judge import Judged
    from draftproof.runtimes.build.reading import Build

__all__ = ["build"]

_LISTED = 12
"""So many names of a long list are shown; ``--json`` has all."""


def build(
    engine: Annotated[str, typer.Argument(metavar="ENGINE", help="vllm or sglang.")],
    *,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The engine's own Python; this one if not given.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="H", help="The machine it is on, as ssh knows it.")
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(metavar="CMD", help="What leads there: 'kubectl exec -i POD --', 'docker exec -i C'."),
    ] = None,
    cwd: Annotated[
        str | None, typer.Option(metavar="DIR", help="The directory that the server is started in.")
    ] = None,
    pid: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="A process there that serves: which copy it holds.")
    ] = None,
    expect_commit: Annotated[
        str | None, typer.Option(metavar="SHA", help="The commit that it is meant to be of.")
    ] = None,
    need: Annotated[
        list[str] | None,
        typer.Option(metavar="FEATURE", help="A feature that must be there; may be given again."),
    ] = None,
    is_imported: Annotated[
        bool,
        typer.Option("--import", help="Import it and run its resolvers as well, for what no file tells."),
    ] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long looking may take, and importing too.")
    ] = 60.0,
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An ssh client configuration instead of the user's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Look at an engine's installation with its own Python, importing nothing unless asked to."""
    from draftproof.runtimes.build.asking import Asked, ask_build
    from draftproof.runtimes.build.behaviour import ask_behaviour
    from draftproof.runtimes.build.document import build_document
    from draftproof.runtimes.build.judge import judge_build
    from draftproof.runtimes.interpreter import NoAnswer

    _known(engine, need or [], expect_commit)
    there = engine_python(python, host, prefix, ssh_config)
    named = there.python
    asked = Asked(engine, named, there.way, cwd or "", pid or 0, timeout if is_imported else 0.0)
    answer = ask_build(asked, timeout_seconds=timeout)
    is_alive = not isinstance(answer, NoAnswer) and answer.is_importable
    behaviour = ask_behaviour(engine, there, timeout_seconds=timeout) if is_alive else None
    judged = judge_build(answer, python=named, needs=need or [], commit=expect_commit, behaviour=behaviour)
    if as_json:
        emit_json(build_document(judged, engine=engine, python=named, host=host or ""))
    else:
        _print(judged)
    return judged.report.exit_code


def _known(engine: str, needs: list[str], commit: str | None) -> None:
    """Raises UsageError for an engine, a feature or a commit that cannot be meant."""
    import re

    from draftproof.runtimes.build.features import FEATURES, READ

    _one_of("ENGINE", engine, list(READ))
    for need in needs:
        _one_of("--need", need, [feature.id for feature in FEATURES if feature.engine == engine])
    if commit is not None and not re.fullmatch(r"g?[0-9a-fA-F]{7,40}", commit):
        raise _usage("--expect-commit", "7 to 40 hexadecimal digits", commit)


def _one_of(option: str, word: str, words: list[str]) -> None:
    if word not in words:
        raise _usage(option, " or ".join(words), word)


def _usage(option: str, expected: str, found: str) -> Exception:
    from draftproof.errors import UsageError

    return UsageError(
        option,
        expected=expected,
        found=repr(found),
        where="command line",
        means="nothing was looked at",
        next_step="draftproof build --help",
    )


def _print(judged: "Judged") -> None:
    from draftproof.runtimes.interpreter import NoAnswer

    if not isinstance(judged.build, NoAnswer):
        _print_build(judged.build)
    for ability in judged.abilities:
        mark = (
            ""
            if ability.expected is None
            else ", as published"
            if _is_as_published(ability)
            else ", NOT as published"
        )
        line(f"  {ability.outcome.value:<8} {ability.feature.id}: {ability.feature.title}{mark}")
    for finding in judged.report.findings:
        line("")
        line(f"{finding.severity.value} {finding.id} {finding.layer.value}", style=finding.severity.value)
        line(f"  {finding.subject}: expected {_short(finding.expected)}, found {_short(finding.found)}")
        for name, text in (("where", finding.where), ("means", finding.means), ("next", finding.next)):
            line(f"  {name:<6} {text}")
    for entry in judged.report.not_looked:
        line(f"not looked at: {entry.check} ({entry.reason})", style="error" if entry.is_required else "dim")
    if judged.report.exit_code == 0:
        line("no fault found", style="good")


def _is_as_published(ability: object) -> bool:
    from draftproof.runtimes.build.abilities import Ability, Outcome

    return isinstance(ability, Ability) and ability.expected is (ability.outcome is Outcome.YES)


def _print_build(build: "Build") -> None:
    from draftproof.runtimes.build.judge_parts import commit_of

    commit, source = commit_of(build)
    line(f"python    {build.python['executable']} ({build.python['python_full_version']})")
    line(f"imported  {build.imported.root or build.imported.kind}")
    stated = f"{commit} ({source})" if commit else "not stated"
    line(f"version   {build.version or 'not stated'}, commit {stated}")
    for claim in build.claims:
        line(f"brought by {claim.name} {claim.version} in {claim.folder}")
    if build.contents is None:
        return
    record = build.contents.record
    if record is not None:
        line(f"files     {record.checked} of {record.rows} rows of RECORD carry a digest and were read")
    for library in build.contents.native:
        line(f"native    {library.path} ({library.size} bytes, build id {library.build_id or 'none'})")


def _short(value: object) -> str:
    """A value on one line; of a long list its beginning and its length."""
    if isinstance(value, list) and len(value) > _LISTED:
        return f"{shown(value[:_LISTED])} and {len(value) - _LISTED} more"
    return shown(value)
