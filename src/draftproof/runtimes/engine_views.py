"""One drafter at every layer of one engine: intent, file, parsed, resolved before a start, held, observed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.raw import JsonValue, RawConfig
from draftproof.config.view import same_json
from draftproof.errors import CouldNotLook
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Model
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import Place
from draftproof.names import Layer
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.effective import Effective, Fact
from draftproof.runtimes.judge_effective import judge_effective
from draftproof.runtimes.observed.reading import Reading, read
from draftproof.runtimes.quantities import of_acceptance, of_drafter, of_parsed
from draftproof.runtimes.resolve import Preflight, Question, drafter_of, meant_of, resolve
from draftproof.runtimes.running import Running, look_at, read_records

__all__ = ["Asked", "Column", "EngineViews", "QuantityRow", "ask_before", "engine_views", "table"]

NOT_COMPARED = ("method",)
"""Files and engines name methods in words of their own."""

FOR_THE_WORKER = ("mask_id", "aux_layers", "k", "fc_features", "shared_embed", "shared_head", "runner")
"""Quantities that a worker must hold as its configuration code resolves them."""


SCRAPE_SECONDS = 10.0
"""A page of counters comes at once or not at all, however long an engine may be thought about."""


@dataclass(frozen=True, slots=True)
class Column:
    """One layer's facts."""

    layer: Layer
    title: str
    facts: Mapping[str, Fact]


@dataclass(frozen=True, slots=True)
class QuantityRow:
    """One quantity at every layer looked at."""

    name: str
    cells: tuple[Fact | None, ...]
    """One per column; None where that layer has no such quantity."""

    first_wrong: int | None
    """The column in which it first differs from what stands below."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be looked at beyond the files."""

    engine: str
    python: EnginePython
    url: str | None = None
    pid: int | None = None
    num_draft_tokens: int | None = None
    records: Path | None = None
    """A directory into which workers have written what they hold."""


@dataclass(frozen=True, slots=True)
class EngineViews:
    """Everything that was looked at of one engine."""

    asked: Asked
    columns: tuple[Column, ...]
    rows: tuple[QuantityRow, ...]
    preflight: Preflight | None
    running: Running | None
    observed: Reading | None
    findings: tuple[Finding, ...] = ()
    not_looked: tuple[NotLooked, ...] = field(default=())

    def as_dict(self) -> dict[str, object]:
        """The entry ``engine`` of ``--json``."""
        effective = self.preflight.effective if self.preflight else None
        return {
            "name": self.asked.engine,
            "python": str(self.asked.python),
            "columns": [{"layer": one.layer.value, "title": one.title} for one in self.columns],
            "quantities": [self._row(row) for row in self.rows],
            "preflight": effective.as_dict() if effective else None,
            "running": self.running.as_dict() if self.running else None,
            "observed": self.observed.as_dict() if self.observed else None,
        }

    def _row(self, row: QuantityRow) -> dict[str, JsonValue]:
        cells: list[JsonValue] = [cell.as_dict() if cell else None for cell in row.cells]
        wrong = None if row.first_wrong is None else self.columns[row.first_wrong].layer.value
        return {
            "name": row.name,
            "cells": cells,
            "first_wrong": wrong,
            "first_wrong_column": row.first_wrong,
        }


def engine_views(
    asked: Asked,
    subject: Model,
    target: Model | None,
    intent: Model | None,
    *,
    timeout_seconds: float,
    resolved: Preflight | None = None,
) -> EngineViews:
    """Ask the engine before a start, and the one that serves where a URL or a process is named.

    ``resolved`` is what ``ask_before`` said of the same files; without it the engine is asked now.
    """
    preflight = resolved or ask_before(asked, subject, target, timeout_seconds=timeout_seconds)
    running = _held(asked, timeout_seconds)
    observed, unobserved = _observed(asked, timeout_seconds)
    drafter = drafter_of(subject, target)
    is_whole_model = drafter is not None and drafter.method.value is Method.DRAFT_MODEL
    meant = drafter_of(intent, target if is_whole_model else None) if intent else None
    columns = tuple(_columns((meant, drafter), preflight, running, observed))
    lacks = [*_lacks(asked, preflight, target), *unobserved]
    findings: list[Finding] = list(preflight.report.findings) if preflight else []
    lacks += preflight.report.not_looked if preflight else ()
    if running is not None:
        findings += [*running.findings, *_judged(running, preflight, subject, target)]
        lacks += running.not_looked
    if observed is not None:
        findings += observed.findings
        lacks += observed.not_looked
    return EngineViews(
        asked, columns, table(columns), preflight, running, observed, tuple(findings), tuple(lacks)
    )


def table(columns: Sequence[Column]) -> tuple[QuantityRow, ...]:
    """Every quantity once, with the first column that differs from the known one below."""
    names = dict.fromkeys(name for column in columns for name in column.facts)
    return tuple(
        QuantityRow(name, tuple(one.facts.get(name) for one in columns), _first_wrong(name, columns))
        for name in names
    )


def _first_wrong(name: str, columns: Sequence[Column]) -> int | None:
    below: Fact | None = None
    for index, column in enumerate(columns):
        here = column.facts.get(name)
        if here is None or not here.is_known or name in NOT_COMPARED:
            continue
        if below is not None and not _agree(name, below.value, here.value, column.layer):
            return index
        below = here
    return None


def _agree(name: str, below: JsonValue, here: JsonValue, layer: Layer) -> bool:
    """Whether a layer says what the one below says; fewer draft tokens than trained are a choice."""
    if name == "k" and layer is Layer.EFFECTIVE and isinstance(below, int) and isinstance(here, int):
        return here <= below
    if name == "shared_embed" and below is False and here is True:
        return True  # an own copy equal to the target's is given up for it
    return same_json(below, here)


def ask_before(
    asked: Asked, subject: Model, target: Model | None, *, timeout_seconds: float
) -> Preflight | None:
    """What the engine's own code resolves before a start; None without a target, which it needs."""
    if target is None:
        return None
    question = Question(asked.engine, subject, target, asked.num_draft_tokens)
    return resolve(asked.python, question, timeout_seconds=timeout_seconds)


def _held(asked: Asked, timeout_seconds: float) -> Running | None:
    if asked.records is not None:
        return read_records(asked.records)
    if asked.url is None and asked.pid is None:
        return None
    return look_at(asked.python, asked.url or "", asked.pid, timeout_seconds=timeout_seconds)


def _observed(asked: Asked, timeout_seconds: float) -> tuple[Reading | None, list[NotLooked]]:
    if asked.url is None:
        return None, [NotLooked("observed", "no --url was given: no counter was read")]
    if asked.python.way is not None:
        return None, [NotLooked("observed", "counters are read from this machine: run it there")]
    try:
        return read(asked.url, timeout_seconds=min(timeout_seconds, SCRAPE_SECONDS)), []
    except CouldNotLook as error:
        return None, [NotLooked("observed", f"could not look: {error.found}")]


def _columns(
    drafters: Sequence[DrafterConfig | None],
    preflight: Preflight | None,
    running: Running | None,
    observed: Reading | None,
) -> Iterator[Column]:
    for drafter, layer, title in zip(drafters, (Layer.INTENT, Layer.BYTES), ("intent", "file"), strict=True):
        if drafter is not None:
            yield Column(layer, title, of_drafter(drafter))
    effective = preflight.effective if preflight else None
    if effective is not None:
        name = f"{effective.engine} {effective.version}"
        method = drafters[-1].method.value if drafters[-1] else None
        parsed = of_parsed(effective.config, name, method) if effective.config else None
        if parsed is not None:
            yield Column(Layer.PARSED, f"parsed ({name})", parsed)
        yield Column(Layer.EFFECTIVE, f"preflight ({name})", effective.flat)
    for record in running.records[:1] if running else ():
        ranks = len(running.records) if running else 0
        yield Column(Layer.EFFECTIVE, f"worker (rank {record.rank} of {ranks})", record.flat)
    if running and not running.records and running.outside:
        yield Column(Layer.EFFECTIVE, "outside", running.outside)
    acceptance = observed.acceptance if observed else None
    if acceptance is not None:
        yield Column(Layer.OBSERVED, "observed", of_acceptance(acceptance))


def _lacks(asked: Asked, preflight: Preflight | None, target: Model | None) -> Iterator[NotLooked]:
    if preflight is None and target is None:
        reason = f"no --target was given: {asked.engine} cannot resolve a drafter alone"
        yield NotLooked(f"{asked.engine} before a start", reason)
    if asked.url is None and asked.records is None:
        yield NotLooked("the drafter in the worker", "no --url was given: no server was asked")


def _judged(
    running: Running, preflight: Preflight | None, subject: Model, target: Model | None
) -> Iterator[Finding]:
    """The first rank held against the file, and against what the engine's own code resolves from it."""
    record = running.records[0] if running.records else None
    resolved = preflight.effective if preflight else None
    if record is None:
        return
    if resolved is not None:
        yield from _not_as_resolved(running.url, record, resolved)
    elif isinstance(subject.raw, RawConfig):
        meant = meant_of(subject, target)
        yield from judge_effective(record, meant) if meant else ()


def _not_as_resolved(where: str, record: Effective, resolved: Effective) -> Iterator[Finding]:
    held, wanted = record.flat, resolved.flat
    for name, fact in held.items():
        other = wanted.get(name)
        is_compared = name in FOR_THE_WORKER or name.startswith("layers/")
        if not is_compared or other is None or not fact.is_known or not other.is_known:
            continue
        if not same_json(fact.value, other.value):
            yield found(
                "effective-not-as-resolved",
                name,
                expected=other.value,
                found=fact.value,
                at=Place(f"{where} rank {record.rank}: {fact.source}"),
            )
