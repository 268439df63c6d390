"""``draftproof views``: intent, bytes and parsed side by side, with the first wrong layer of each field."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.engine_option import (
    EngineName,
    HostName,
    Prefix,
    SshConfig,
    check_engine_named,
    engine_python,
)
from draftproof.cli.output import emit_json, line, shown
from draftproof.cli.preflight import print_finding

if TYPE_CHECKING:
    from draftproof.config.view import Entry
    from draftproof.runtimes.effective import Fact
    from draftproof.runtimes.engine_views import EngineViews
    from draftproof.runtimes.views import Interpreter, Row, Views

__all__ = ["views"]

_ABSENT = "(absent)"
_LONGEST_COLUMN = 52


def views(
    subject: Annotated[
        str, typer.Argument(metavar="DIR", help="A drafter (or target) directory, or its config file.")
    ],
    *,
    intent: Annotated[str | None, typer.Option(metavar="PATH", help="The file that was meant.")] = None,
    target: Annotated[str | None, typer.Option(metavar="DIR", help="The target it is to draft for.")] = None,
    python: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="A Python whose transformers is asked; may be given again."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long one interpreter may take.")
    ] = 60.0,
    changed: Annotated[
        bool, typer.Option("--changed", help="List only fields that are not the same at every layer.")
    ] = False,
    engine: Annotated[
        EngineName | None, typer.Option(help="An engine that is asked too, in the Python named.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="A server of that engine: what its workers hold.")
    ] = None,
    pid: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Its process: command line and environment.")
    ] = None,
    records: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where SGLang's workers have written what they hold.")
    ] = None,
    k: Annotated[int | None, typer.Option("--k", metavar="N", min=1, help="Tokens drafted per step.")] = None,
    host: HostName = None,
    prefix: Prefix = None,
    ssh_config: SshConfig = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Show what was meant, what the file says and what a library and an engine make of it."""
    from draftproof.config.raw import RawConfig
    from draftproof.findings.evidence import Evidence, read_model
    from draftproof.runtimes.hf.reading import read_with
    from draftproof.runtimes.views import interpret, views_of

    named = {"--host": host, "--prefix": prefix, "--url": url, "--pid": pid, "--records": records, "--k": k}
    check_engine_named(engine, named)
    first = python[0] if python else None
    asked_engine = engine_python(first, host, prefix, ssh_config) if engine else None
    models = [read_model(given, config_only=True) if given else None for given in (subject, target, intent)]
    evidence = Evidence(models[0] or read_model(subject), models[1], models[2], None, None)
    raw = evidence.subject.raw
    asked = dict.fromkeys(python or ()) if isinstance(raw, RawConfig) else {}
    vocab_size = models[1].target.vocab_size.value if models[1] and models[1].target else None
    way = asked_engine.way if asked_engine else None
    answers = [
        interpret(path, raw, read_with(path, raw, timeout_seconds=timeout, way=way), vocab_size)
        for path in asked
        if isinstance(raw, RawConfig)
    ]
    result = views_of(evidence, answers)
    looked = None
    if engine is not None and asked_engine is not None:
        from draftproof.runtimes.engine_views import Asked, engine_views

        inquiry = Asked(engine, asked_engine, url, pid, k, records)
        looked = engine_views(inquiry, evidence.subject, models[1], models[2], timeout_seconds=timeout)
        result = result.with_engine(looked)
    if as_json:
        emit_json(result.as_dict())
    else:
        _print(result, only_changed=changed)
    return result.report.exit_code


def _print(result: "Views", *, only_changed: bool) -> None:
    line(f"bytes   {result.subject}")
    line(f"intent  {result.intent}" if result.intent else "intent  not given")
    for one in result.interpreters:
        line(f"parsed  {_asked(one)}")
    line("")
    rows = [row for row in result.rows if not only_changed or not _is_quiet(row)]
    _print_table(result, rows)
    if len(rows) < len(result.rows):
        line(
            f"{len(result.rows) - len(rows)} further fields are the same at every layer looked at",
            style="dim",
        )
    for row in rows:
        _print_reasons(row)
    if result.engine is not None:
        _print_engine(result.engine)
    for finding in result.report.findings:
        print_finding(finding)
    for entry in result.report.not_looked:
        line(f"not looked at: {entry.check} ({entry.reason})", style="dim")
    _print_verdict(result)


def _asked(one: "Interpreter") -> str:
    told = one.as_dict()
    if told["version"] is None:
        return f"{one.python}: {told['reason']}"
    name = f"{one.python}: Python {told['python_version']}, transformers {told['version']}"
    return f"{name} {told['class'] or '(no class)'}, {told['path']}"


def _print_table(result: "Views", rows: "list[Row]") -> None:
    pythons = [one for one in result.interpreters if one.fields]
    head = ["field"] + (["intent"] if result.intent else []) + ["bytes"]
    table = [head + [f"parsed ({one.as_dict()['version']})" for one in pythons] + ["first wrong"]]
    for row in rows:
        cells = [row.pointer]
        if result.intent:
            cells.append(_value(row.pointer, row.intent))
        cells.append(_value(row.pointer, row.bytes))
        cells += [_parsed(row, one.python) for one in pythons]
        table.append([*cells, row.first_wrong.value if row.first_wrong else ""])
    widths = [min(_LONGEST_COLUMN, max(len(cells[i]) for cells in table)) for i in range(len(table[0]))]
    for cells in table:
        text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        line(text, style="error" if cells[-1] and cells is not table[0] else None)


def _value(pointer: str, entry: "Entry | None") -> str:
    from draftproof.config.json.shown import mask_secrets, value_line
    from draftproof.config.source import Written

    if entry is None:
        return _ABSENT
    place = f" (l.{entry.source.line})" if isinstance(entry.source, Written) else ""
    return value_line(mask_secrets(entry.value, pointer)) + place


def _parsed(row: "Row", python: str) -> str:
    from draftproof.config.json.shown import mask_secrets, value_line

    field = row.parsed.get(python)
    if field is None:
        return "-"
    if field.how.value in ("kept", "refused"):
        return "=" if field.how.value == "kept" else "not parsed"
    return f"{value_line(mask_secrets(field.value, row.pointer))} {field.how.value}"


def _is_quiet(row: "Row") -> bool:
    return row.first_wrong is None and all(field.how.value == "kept" for field in row.parsed.values())


def _print_reasons(row: "Row") -> None:
    for field in row.parsed.values():
        if field.how.value not in ("kept", "refused"):
            line(f"  {row.pointer} {field.how.value}: {field.why}", style="dim")


def _print_engine(looked: "EngineViews") -> None:
    """The same drafter as quantities, one column per layer; the first wrong cell is marked."""
    line("")
    table = [["quantity", *(column.title for column in looked.columns)]]
    for row in looked.rows:
        cells = [_cell(fact) for fact in row.cells]
        if row.first_wrong is not None:
            cells[row.first_wrong] += " <-- first wrong"
        table.append([row.name, *cells])
    widths = [min(_LONGEST_COLUMN, max(len(cells[i]) for cells in table)) for i in range(len(table[0]))]
    for cells in table:
        text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        line(text, style="error" if "<-- first wrong" in text else None)


def _cell(fact: "Fact | None") -> str:
    if fact is None:
        return "-"
    if not fact.is_known:
        return "raises" if fact.how.value == "raised" else "?"
    return shown(fact.value) + (" (derived)" if fact.how.value == "derived" else "")


def _print_verdict(result: "Views") -> None:
    wrong = [row for row in result.rows if row.first_wrong]
    layers = list(dict.fromkeys(row.first_wrong.value for row in wrong if row.first_wrong))
    if wrong:
        told = f"first wrong layer: {', '.join(layers)} ({len(wrong)} fields)"
        line(told, style="error")
    for one in result.interpreters:
        _print_judgement(one)


def _print_judgement(one: "Interpreter") -> None:
    """Whether the library is to blame: named only where it changed something that matters."""
    from draftproof.runtimes.hf.reading import HfReading

    if not isinstance(one.answer, HfReading):
        return
    name = f"transformers {one.answer.version}"
    blamed = [finding for finding in one.findings if finding.severity.value != "note"]
    if one.answer.refusal is not None:
        line(f"{name} does not parse the file", style="error" if blamed else "dim")
    elif blamed:
        told = ", ".join(dict.fromkeys(f"{finding.subject} ({finding.id})" for finding in blamed))
        line(f"{name} changes what a consumer sees: {told}", style="error")
    else:
        line(f"{name} keeps what the file says", style="good")
