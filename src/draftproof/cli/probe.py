"""``draftproof probe``: requests to a server, and what it counts of them; or a recorded file, read."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_json, line
from draftproof.cli.probe_view import print_probe, print_reading

if TYPE_CHECKING:
    from draftproof.runtimes.observed.probe.report import Probe
    from draftproof.runtimes.observed.probe.target import Scored
    from draftproof.runtimes.observed.reading import Reading

__all__ = ["probe"]

_MOST_PROMPTS = 8


def probe(
    source: Annotated[
        str,
        typer.Argument(
            metavar="URL|FILE", help="A server (http://HOST:PORT), or recorded metrics, log or answers."
        ),
    ],
    *,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="As the server names it.")] = None,
    n: Annotated[
        int, typer.Option("--n", metavar="N", min=1, max=_MOST_PROMPTS, help="Prompts a group.")
    ] = 4,
    tokens: Annotated[int, typer.Option(metavar="N", min=8, max=4096, help="Tokens an answer.")] = 96,
    reference: Annotated[
        str | None,
        typer.Option(metavar="FILE|DIR", help="The target's log-probabilities, or the target itself."),
    ] = None,
    write_reference: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write this server's log-probabilities there.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="FILE", help="With recorded metrics: an earlier page of them.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="FILE", help="With a recorded file: another one to compare with.")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The environment variable with the server's key.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long one request may take.")
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Ask a server the shipped prompts one at a time, the target alone first, and read what it counts.

    Of a recorded file only what it says is read, and nothing is asked.
    """
    if not re.match(r"https?://", source):
        reading = _recorded(source, before, against)
        _say_reading(reading, as_json=as_json)
        return _exit_of(reading)
    _only_for_files(before, against)
    report = _asked(
        source,
        model,
        n=n,
        tokens=tokens,
        timeout=timeout,
        key=_key(api_key_env),
        reference=reference,
        with_scores=write_reference is not None,
    )
    if write_reference is not None:
        _write(write_reference, report)
    if as_json:
        emit_json(report.as_dict())
    else:
        print_probe(report)
    return report.exit_code


def _asked(
    url: str,
    model: str | None,
    *,
    n: int,
    tokens: int,
    timeout: float,
    key: str | None,
    reference: str | None,
    with_scores: bool,
) -> "Probe":
    from draftproof.runtimes.observed.http import address_of
    from draftproof.runtimes.observed.probe.client import connect
    from draftproof.runtimes.observed.probe.report import probe as ask_all

    known = None if reference is None else _reference(reference)
    client = connect(address_of(url, key), model, num_tokens=tokens, timeout_seconds=timeout)
    return ask_all(client, num_prompts=n, reference=known, with_scores=with_scores)


def _reference(given: str) -> "list[Scored]":
    """What the target should give: of a file, or computed from its directory."""
    from draftproof.runtimes.observed.probe.prompts import load_prompts
    from draftproof.runtimes.observed.probe.target import Scored, read_reference
    from draftproof.runtimes.observed.reading import text_of

    if not Path(given).is_dir():
        return read_reference(text_of(given), given)
    from draftproof.cli.engine_extra import require_engine

    require_engine()
    from draftproof.engine.text.scores import score_texts

    texts = load_prompts().reference
    scores = score_texts(Path(given), texts)
    return [Scored(text, tuple(ids), tuple(logs)) for text, (ids, logs) in zip(texts, scores, strict=True)]


def _recorded(source: str, before: str | None, against: str | None) -> "Reading":
    from draftproof.runtimes.observed.comparing import compared
    from draftproof.runtimes.observed.pages import page_of
    from draftproof.runtimes.observed.reading import read, read_page, text_of

    reading = read(source)
    if before is not None:
        reading = read_page(page_of(text_of(source), source), page_of(text_of(before), before))
    return reading if against is None else compared(reading, read(against))


def _say_reading(reading: "Reading", *, as_json: bool) -> None:
    if as_json:
        emit_json({"schema": "draftproof.probe/1", **reading.as_dict()})
    else:
        print_reading(reading)


def _exit_of(reading: "Reading") -> int:
    if any(finding.severity.value != "note" for finding in reading.findings):
        return 1
    return 0 if reading.acceptance is not None else 3


def _only_for_files(before: str | None, against: str | None) -> None:
    from draftproof.errors import UsageError

    for option, value in (("--before", before), ("--against", against)):
        if value is not None:
            raise UsageError(
                option,
                expected="a recorded file as the argument",
                found="a server",
                where="command line",
                means="nothing was asked: a probe looks at the counters itself, before and after",
                next_step="draftproof probe metrics-after.txt --before metrics-before.txt",
            )


def _key(variable: str | None) -> str | None:
    from draftproof.errors import UsageError

    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key or not key.isascii() or not key.isprintable():
        raise UsageError(
            "--api-key-env",
            expected="a variable that holds the server's key",
            found=f"{variable}, which is not set or holds other characters",
            where="environment",
            means="nothing was asked",
            next_step="export the variable, and name it with --api-key-env",
        )
    return key


def _write(path: Path, report: "Probe") -> None:
    from draftproof.errors import CouldNotLook
    from draftproof.runtimes.observed.probe.target import reference_text

    if not report.scored:
        line(f"not written: {path} (no log-probabilities came)", style="warning", to_stderr=True)
        return
    try:
        path.write_text(reference_text(report.scored), encoding="utf-8")
    except OSError as error:
        raise CouldNotLook(
            "--write-reference",
            expected="a file that can be written",
            found=error.strerror or str(error),
            where=str(path),
            means="the probe was made and its reference is not kept",
            next_step="name another file",
        ) from error
