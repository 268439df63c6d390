"""What ``draftproof probe`` prints: one table, what was found, and the verdict."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from draftproof.cli.output import line, shown

if TYPE_CHECKING:
    from draftproof.findings.finding import Finding, NotLooked
    from draftproof.runtimes.observed.probe.group import Measured
    from draftproof.runtimes.observed.probe.report import Probe
    from draftproof.runtimes.observed.reading import Reading
    from draftproof.speculation.acceptance import Acceptance, Figure

__all__ = ["print_probe", "print_reading"]

_HEAD = ("prompts", "n", "prompt", "cached", "tokens", "tok/s", "drafts", "K", "tau", "rate", "per position")
_FIGURES = ("counted by", "drafts", "drafted", "accepted", "K", "tau", "rate", "per position")
_MOST_POSITIONS = 8
_MOST_RECORDS = 20


def print_probe(report: "Probe") -> None:
    """The report as text."""
    line(f"server  {report.server}, {report.engine or 'engine unknown'}, model {report.model}")
    line(f"asked   one request at a time, greedy, prompts {report.prompts[:12]}")
    line("")
    _table([_HEAD, *(_row(measured) for measured in report.groups)])
    names = dict.fromkeys(m.acceptance.estimator.name for m in report.groups if m.acceptance)
    for name in names:
        line(f"tau, rate and positions by: {name}", style="dim")
    _tail(report.findings, report.not_looked)
    line("")
    line(
        f"verdict {report.verdict}",
        style="error" if report.exit_code == 1 else "good" if not report.exit_code else "warning",
    )


def print_reading(reading: "Reading") -> None:
    """What a recorded file says, as text."""
    line(f"read    {reading.where} ({reading.engine or 'engine unknown'})")
    line("")
    if reading.acceptances:
        records = reading.acceptances[:_MOST_RECORDS]
        _table([_FIGURES, *(_figures(record) for record in records)])
        if len(reading.acceptances) > len(records):
            line(f"{len(reading.acceptances) - len(records)} further records, see --json", style="dim")
        for text in dict.fromkeys(why for record in records for why in _reasons(record)):
            line(f"- {text}", style="dim")
    _tail(reading.findings, reading.not_looked)


def _row(measured: "Measured") -> tuple[str, ...]:
    record = measured.acceptance
    speed = measured.tokens_per_second
    cells = (
        measured.group.name,
        str(len(measured.answers)),
        _count(measured.num_prompt_tokens),
        _count(measured.cached_tokens),
        _count(measured.num_tokens),
        f"{speed:.1f}" if speed else "-",
    )
    return (*cells, *(_numbers(record) if record else ("-",) * 5))


def _numbers(record: "Acceptance") -> tuple[str, ...]:
    return (
        _count(record.num_drafts.value),
        _count(record.num_draft_tokens.value),
        _number(record.tau, ".2f"),
        _number(record.rate, ".1%"),
        _positions(record.per_position.value),
    )


def _figures(record: "Acceptance") -> tuple[str, ...]:
    return (
        record.estimator.name,
        _count(record.num_drafts.value),
        _count(record.num_drafted.value),
        _count(record.num_accepted.value),
        _count(record.num_draft_tokens.value),
        _number(record.tau, ".3f"),
        _number(record.rate, ".1%"),
        _positions(record.per_position.value),
    )


def _reasons(record: "Acceptance") -> list[str]:
    """Why figures are absent, and what the source cannot say."""
    named = (
        ("drafts", record.num_drafts),
        ("drafted", record.num_drafted),
        ("accepted", record.num_accepted),
        ("K", record.num_draft_tokens),
        ("tau", record.tau),
        ("rate", record.rate),
        ("per position", record.per_position),
    )
    reasons: dict[str, list[str]] = {}
    for name, figure in named:
        if figure.value is None:
            reasons.setdefault(figure.how, []).append(name)
    told = [f"no {', '.join(names)}: {why}" for why, names in reasons.items()]
    return told + ([record.estimator.caution] if record.estimator.caution else [])


def _tail(findings: "Sequence[Finding]", missing: "Sequence[NotLooked]") -> None:
    for finding in findings:
        line("")
        line(f"{finding.severity.value} {finding.id} {finding.layer.value}", style=finding.severity.value)
        line(f"  {finding.subject}: expected {shown(finding.expected)}, found {shown(finding.found)}")
        for name, text in (("where", finding.where), ("means", finding.means), ("next", finding.next)):
            line(f"  {name:<6} {text}")
    if missing:
        line("")
    for entry in missing:
        line(f"not looked at: {entry.check} ({entry.reason})", style="dim")


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (
            c.ljust(w) if i in (0, len(widths) - 1) else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        line("  ".join(cells).rstrip())


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _number(figure: "Figure[float]", form: str) -> str:
    return "-" if figure.value is None else format(figure.value, form)


def _positions(shares: Sequence[float] | None) -> str:
    if shares is None:
        return "-"
    told = " ".join(f"{share:.2f}" for share in shares[:_MOST_POSITIONS])
    return told + (f" .. {shares[-1]:.2f}" if len(shares) > _MOST_POSITIONS else "")
