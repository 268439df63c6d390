"""``draftproof check``: is this drafter what was meant, and if not, what is wrong with it."""

from itertools import groupby
from json import dumps
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_error, emit_json, line, shown
from draftproof.cli.process_option import Pid, Port

if TYPE_CHECKING:
    from draftproof.config.json.value import JsonValue
    from draftproof.findings.check import Report
    from draftproof.findings.evidence import Evidence, Model
    from draftproof.findings.finding import Finding

__all__ = ["check"]

_SCHEMA = "draftproof.check/1"
_EFFECT = "; published effect: "
_NOTHING = ("nothing", "nothing to mend")
_VERDICTS = {0: "no fault found", 1: "faults found", 3: "could not look"}
_WIDTH = 100
_MOST = 64
_RUN = 2
_AS_DRAFT_MODEL = "an ordinary language model beside --target drafts with its own forward pass"


def check(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="A drafter (or target) directory, or its config file, here or host:/path."
        ),
    ],
    *,
    target: Annotated[str | None, typer.Option(metavar="DIR", help="The target it is to draft for.")] = None,
    intent: Annotated[str | None, typer.Option(metavar="PATH", help="The file that was meant.")] = None,
    tokenizer: Annotated[str | None, typer.Option(metavar="DIR", help="A tokenizer to name ids.")] = None,
    engine: Annotated[
        str | None,
        typer.Option(metavar="NAME@VERSION", help="An engine whose readers to hold the file against."),
    ] = None,
    digests: Annotated[
        bool, typer.Option("--digests", help="Read every byte of the weights, hash it, prove it.")
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The ledger to ask what was meant to be here.")
    ] = None,
    pid: Pid = None,
    port: Port = None,
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client configuration for ssh instead of the user's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Say what is wrong with a drafter directory, at the lowest layer that shows it."""
    from draftproof.cli.elsewhere import fetched, with_consumer, with_ledger
    from draftproof.cli.process_option import process_named
    from draftproof.findings.check import check as run_check
    from draftproof.findings.engines import parse_engine
    from draftproof.findings.evidence import read_evidence

    process = process_named(pid, port)
    named = read_evidence(
        subject,
        target=target,
        intent=intent,
        tokenizer=tokenizer,
        engine=None if engine is None else parse_engine(engine),
        with_digests=digests,
    )
    evidence = fetched(named, tokenizer, ssh_config)
    report = with_ledger(run_check(evidence), evidence, ledger, ssh_config)
    report = with_consumer(report, evidence, process, ssh_config)
    hashed = _digests(evidence.subject) if digests else []
    if as_json:
        document = _document(evidence, report)
        emit_json(document | {"digests": hashed} if digests else document)
    else:
        _print(evidence, report, hashed)
    return report.exit_code


def _digests(model: "Model") -> "list[dict[str, JsonValue]]":
    """Every weight file of the subject, hashed behind a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import Progress

    from draftproof.findings.digests import digest_as_dict, digest_weights, weight_files

    total = sum(path.stat().st_size for path in weight_files(model))
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not total or not console.is_terminal) as bar:
        task = bar.add_task("hashing", total=total)
        return [digest_as_dict(each) for each in digest_weights(model, lambda n: bar.advance(task, n))]


def _document(evidence: "Evidence", report: "Report") -> dict[str, object]:
    from draftproof.errors import CouldNotLook

    document: dict[str, object] = {
        "schema": _SCHEMA,
        "subject": evidence.subject.given,
        "findings": [finding.as_dict() for finding in report.findings],
        "not_looked": [entry.as_dict() for entry in report.not_looked],
        "facts": _facts(evidence),
        "verdict": _VERDICTS[report.exit_code],
        "counts": _counts(report),
        "exit": report.exit_code,
        "engine": None if evidence.engine is None else str(evidence.engine),
    }
    if isinstance(evidence.subject.raw, CouldNotLook):
        document["error"] = evidence.subject.raw.as_dict()
    return document


def _facts(evidence: "Evidence") -> dict[str, "JsonValue"]:
    """The canonical drafter and target; null for what is not there or could not be read."""
    subject, other = evidence.subject, evidence.target_model
    is_target = subject.target is not None and other is None
    drafter = None if is_target else _facts_of(subject)
    if isinstance(drafter, dict) and subject.target is not None:
        drafter |= {"role": "drafter", "method": "draft_model"}
        sources = drafter["sources"]
        if isinstance(sources, dict):
            sources |= {name: {"derived": _AS_DRAFT_MODEL} for name in ("role", "method")}
    return {
        "drafter": drafter,
        "target": _facts_of(subject) if is_target else _facts_of(other),
    }


def _facts_of(model: "Model | None") -> "JsonValue":
    from draftproof.config.facts import facts

    if model is None or model.parsed is None or (model.drafter is None and model.target is None):
        return None
    return facts(model.parsed)


def _print(evidence: "Evidence", report: "Report", hashed: "list[dict[str, JsonValue]]") -> None:
    from draftproof.errors import CouldNotLook

    if isinstance(evidence.subject.raw, CouldNotLook) and not report.findings:
        emit_error(evidence.subject.raw, as_json=False)  # every check lacks the same thing: told once
        return
    layer = None
    for finding in report.findings:
        if finding.layer is not layer:
            layer = finding.layer
            line(layer.value, style="dim")
        _print_finding(finding)
    if report.findings:
        line("")
    for digest in hashed:
        line(
            f"sha256 {digest['sha256']}  {digest['file']}"
            + ("" if digest["stable"] else "  changed meanwhile")
        )
    _print_not_looked(report)
    _print_summary(evidence, report)


def _print_finding(finding: "Finding") -> None:
    """Which, where and the cause on lines of their own, unbroken, for eyes and for grep; prose wrapped."""
    from draftproof.findings.catalogue import CATALOGUE

    line(f"{finding.severity.value} {finding.id}", style=finding.severity.value)
    said = f"{finding.subject}: expected {_short(finding.expected)}, found {_short(finding.found)}"
    _wrapped(said, "  ", "         ")
    line(f"  where  {finding.where}")
    means, _, effect = finding.means.partition(_EFFECT)
    if finding.cause is not None:
        detail, _, means = means.partition(f"; {CATALOGUE[finding.id].means}")
        line(f"  cause  {detail}")
        means = CATALOGUE[finding.id].means + means
    for name, text in (("means", means), ("effect", effect), ("next", finding.next)):
        if name == "next" and text.startswith("draftproof "):
            line(f"  next   {text}")  # a command is copied: never broken
        elif text and text not in _NOTHING:
            _wrapped(text, f"  {name:<6} ", "         ")


def _wrapped(text: str, first: str, rest: str, *, style: str | None = None) -> None:
    """Text in lines as wide as the terminal, never breaking a path or a key."""
    for part in wrap(
        text,
        width=min(get_terminal_size((_WIDTH, 24)).columns, _WIDTH),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        line(part, style=style)


def _short(value: "JsonValue") -> str:
    """A value in a line; equal neighbours of a list counted, a long list cut and its length told."""
    if not isinstance(value, list):
        return shown(value)
    items = [dumps(item, ensure_ascii=False) for item in value[:_MOST]]
    runs = [(item, len(list(run))) for item, run in groupby(items)]
    said = ", ".join(f"{n} x {item}" if n > _RUN else ", ".join([item] * n) for item, n in runs)
    return f"[{said}{f', ... {len(value)} entries' if len(value) > _MOST else ''}]"


def _print_not_looked(report: "Report") -> None:
    """What could not be looked at: inputs that were named first, then one paragraph a reason."""
    for entry in report.not_looked:
        if entry.is_required:
            _wrapped(f"could not look at the {entry.check}: {entry.reason}", "", "  ", style="error")
    by_reason: dict[str, list[str]] = {}
    for entry in report.not_looked:
        if not entry.is_required:
            by_reason.setdefault(entry.reason, []).append(entry.check)
    for reason, checks in by_reason.items():
        _wrapped(f"not looked at: {reason}", "", "  ", style="dim")
        _wrapped(", ".join(dict.fromkeys(checks)), "  ", "  ", style="dim")


def _print_summary(evidence: "Evidence", report: "Report") -> None:
    found = ", ".join(f"{n} {name}{'s' if n != 1 else ''}" for name, n in _counts(report).items() if n)
    lacking = len(report.not_looked)
    looked = f"{report.num_looked} of {report.num_looked + lacking} checks"
    verdict = _VERDICTS[report.exit_code]
    if report.exit_code == 0:
        told = f"{verdict} in {looked}" + (f" ({found})" if found else "")
    else:
        told = f"{verdict}: {found or 'no finding'} in {looked}"
    name = Path(evidence.subject.given).name or evidence.subject.given
    against = f"; held against {evidence.engine}" if evidence.engine else ""
    style = "good" if report.exit_code == 0 else "error"
    line(f"{name}: {told}; {lacking} not looked at{against}", style=style)


def _counts(report: "Report") -> dict[str, int]:
    counts = dict.fromkeys(("error", "warning", "note"), 0)
    for finding in report.findings:
        counts[finding.severity.value] += 1
    return counts
