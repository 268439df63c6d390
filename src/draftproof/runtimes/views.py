"""Intent, bytes and parsed side by side, field by field, with the first wrong layer of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from draftproof.config.drift import drifts
from draftproof.config.json.shown import mask_secrets
from draftproof.config.raw import JsonValue, RawConfig, pointer_of
from draftproof.config.source import ClassDefault, Derived, Written
from draftproof.config.view import Agreement, Entry, View, view_of_raw
from draftproof.findings.check import Report, check
from draftproof.findings.evidence import Evidence
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.rules import drift, files, windows
from draftproof.names import Layer
from draftproof.runtimes.engine_views import EngineViews
from draftproof.runtimes.hf.compare import compare
from draftproof.runtimes.hf.fields import FieldReading, How
from draftproof.runtimes.hf.judge import judge
from draftproof.runtimes.hf.reading import HfReading
from draftproof.runtimes.interpreter import NoAnswer

__all__ = ["Interpreter", "Row", "Views", "interpret", "views_of"]

BYTES_RULES = (files.RULES[0], *drift.RULES)
"""Whether the file can be read at all, and whether it is the file that was meant."""

CONTRADICTION = "sliding-without-window"
CONTRADICTION_RULES = tuple(rule for rule in windows.RULES if CONTRADICTION in rule.ids)
"""A file whose layers slide without a window contradicts itself: no parser is needed for that."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One Python, asked."""

    python: str
    answer: HfReading | NoAnswer
    fields: tuple[FieldReading, ...]
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, JsonValue]:
        """The entry of ``interpreters`` in ``--json``; ``reason`` says why there is nothing parsed."""
        if isinstance(self.answer, NoAnswer):
            known: dict[str, JsonValue] = dict.fromkeys(("python_version", "version", "path", "class"))
            reason: JsonValue = f"could not look: {self.answer.reason}"
        else:
            refusal = self.answer.refusal
            known = {
                "python_version": self.answer.python_version,
                "version": self.answer.version,
                "path": self.answer.path,
                "class": self.answer.class_name,
            }
            reason = refusal.sentence if refusal else None
        return {
            "python": self.python,
            "library": "transformers",
            **known,
            "ok": reason is None,
            "reason": reason,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One field at every layer looked at."""

    pointer: str
    intent: Entry | None
    bytes: Entry | None
    parsed: Mapping[str, FieldReading]
    """Interpreter -> what its library made of the field; absent where it has no such field."""

    first_wrong: Layer | None

    def as_dict(self, *, has_intent: bool) -> dict[str, JsonValue]:
        """The entry of ``fields`` in ``--json``; ``in_bytes`` tells a written null from an absence."""
        source = self.bytes.source if self.bytes else None
        return {
            "pointer": self.pointer,
            "intent": self._shown(self.intent.value if self.intent else None),
            "in_intent": self.intent is not None if has_intent else None,
            "bytes": self._shown(self.bytes.value if self.bytes else None),
            "in_bytes": self.bytes is not None,
            "line": source.line if isinstance(source, Written) else None,
            "parsed": {
                python: {
                    "value": self._shown(field.value),
                    "how": field.how.value,
                    "why": field.why,
                    "pointer": pointer_of(field.now) if field.now else self.pointer,
                }
                for python, field in self.parsed.items()
            },
            "first_wrong": self.first_wrong.value if self.first_wrong else None,
        }

    def _shown(self, value: JsonValue) -> JsonValue:
        return mask_secrets(value, self.pointer)


@dataclass(frozen=True, slots=True)
class Views:
    """Everything ``draftproof views`` says."""

    subject: str
    intent: str | None
    interpreters: tuple[Interpreter, ...]
    rows: tuple[Row, ...]
    report: Report
    engine: EngineViews | None = None

    def with_engine(self, looked: EngineViews) -> "Views":
        """The same with what an engine was seen to make of it."""
        findings = (*self.report.findings, *(_masked(finding) for finding in looked.findings))
        report = Report(findings, (*self.report.not_looked, *looked.not_looked), self.report.num_looked)
        return replace(self, engine=looked, report=report)

    def as_dict(self) -> dict[str, object]:
        """The one object of ``--json``."""
        return {
            "schema": "draftproof.views/1",
            "subject": self.subject,
            "intent": self.intent,
            "interpreters": [one.as_dict() for one in self.interpreters],
            "engine": self.engine.as_dict() if self.engine else None,
            "fields": [row.as_dict(has_intent=self.intent is not None) for row in self.rows],
            "findings": [finding.as_dict() for finding in self.report.findings],
            "not_looked": [entry.as_dict() for entry in self.report.not_looked],
        }


def interpret(
    python: str, raw: RawConfig, answer: HfReading | NoAnswer, vocab_size: int | None
) -> Interpreter:
    """One library's answer, compared with the file and judged."""
    if isinstance(answer, NoAnswer):
        return Interpreter(python, answer, (), ())
    fields = compare(raw.value, answer)
    return Interpreter(python, answer, fields, judge(raw, fields, answer, target_vocab_size=vocab_size))


def views_of(evidence: Evidence, interpreters: Sequence[Interpreter]) -> Views:
    """All layers of the subject that were looked at, side by side."""
    raw = evidence.subject.raw
    intent = evidence.intent.raw if evidence.intent else None
    lower = check(evidence, BYTES_RULES)
    contradictions = [f for f in check(evidence, CONTRADICTION_RULES).findings if f.id == CONTRADICTION]
    views = [view_of_raw(intent, Layer.INTENT)] if isinstance(intent, RawConfig) else []
    if isinstance(raw, RawConfig):
        views.append(_bytes_view(raw, contradictions))
    views += [_parsed_view(one, one.answer) for one in interpreters if isinstance(one.answer, HfReading)]
    found = (*lower.findings, *contradictions, *(finding for one in interpreters for finding in one.findings))
    report = Report(
        tuple(_masked(finding) for finding in found),
        (*_named(lower.not_looked), *_not_looked(evidence, interpreters)),
    )
    intended = str(evidence.intent.config_path) if evidence.intent else None
    return Views(
        str(evidence.subject.config_path), intended, tuple(interpreters), _rows(views, interpreters), report
    )


def _bytes_view(raw: RawConfig, contradictions: Sequence[Finding]) -> View:
    view = view_of_raw(raw, Layer.BYTES)
    wrong = {finding.pointer for finding in contradictions}
    entries = {
        pointer: replace(entry, agreement=Agreement.WRONG) if pointer in wrong else entry
        for pointer, entry in view.entries.items()
    }
    return replace(view, entries=entries)


def _masked(finding: Finding) -> Finding:
    """The finding without the value of a credential."""
    pointer = finding.pointer or ""
    expected, found = (mask_secrets(side, pointer) for side in (finding.expected, finding.found))
    return replace(finding, expected=expected, found=found)


def _named(entries: Sequence[NotLooked]) -> list[NotLooked]:
    return [entry for entry in entries if entry.is_required]


def _not_looked(evidence: Evidence, interpreters: Sequence[Interpreter]) -> list[NotLooked]:
    found = []
    if evidence.intent is None:
        found.append(NotLooked("intent", "no --intent was given: bytes are compared with nothing"))
    if not isinstance(evidence.subject.raw, RawConfig):
        found.append(
            NotLooked("parsed", "there is no strict JSON object that a library could be asked about")
        )
    elif not interpreters:
        found.append(
            NotLooked("parsed", "no --python was given: no library was asked what it makes of the file")
        )
    code = _named_code(evidence)
    if interpreters and code:
        found.append(NotLooked("code of the checkpoint", f"auto_map names {code}; it is never run here"))
    for one in interpreters:
        if isinstance(one.answer, NoAnswer):
            reason = f"could not look: {one.python}: {one.answer.reason}"
            found.append(NotLooked("parsed", reason, is_required=True))
        elif one.answer.refusal is None and one.answer.trials is None:
            reason = f"{one.python}: the class does not parse a second time to the same values"
            found.append(NotLooked("why a field changed", reason))
    return found


def _named_code(evidence: Evidence) -> str:
    """What the file's auto_map would have a trusting loader import."""
    raw = evidence.subject.raw
    named = raw.value.get("auto_map") if isinstance(raw, RawConfig) else None
    return ", ".join(f"{name}: {code}" for name, code in named.items()) if isinstance(named, dict) else ""


def _parsed_view(one: Interpreter, reading: HfReading) -> View:
    wrong = {finding.pointer for finding in one.findings if finding.severity is not Severity.NOTE}
    name = reading.name
    entries = {pointer_of(field.path): _entry(field, wrong, name) for field in one.fields}
    return View(Layer.PARSED, one.python, entries)


def _entry(field: FieldReading, wrong: set[str | None], name: str) -> Entry:
    pointer = pointer_of(field.path)
    if pointer in wrong:
        agreement = Agreement.WRONG
    else:
        agreement = Agreement.SAME if field.how is How.KEPT else Agreement.NORMALISED
    if field.how is How.DEFAULTED:
        return Entry(field.value, ClassDefault(name), agreement)
    return Entry(field.value, Derived(f"{name}: {field.how.value}"), agreement)


def _rows(views: Sequence[View], interpreters: Sequence[Interpreter]) -> tuple[Row, ...]:
    first = {drift.pointer: drift.first_wrong for drift in drifts(views)}
    by_layer: dict[Layer, Mapping[str, Entry]] = {
        v.layer: v.entries for v in views if v.layer is not Layer.PARSED
    }
    parsed = {one.python: {pointer_of(field.path): field for field in one.fields} for one in interpreters}
    pointers = dict.fromkeys(
        pointer
        for layer in (Layer.BYTES, Layer.INTENT, Layer.PARSED)
        for view in views
        if view.layer is layer
        for pointer in view.entries
    )
    return tuple(
        Row(
            pointer,
            _at(by_layer, Layer.INTENT, pointer),
            _at(by_layer, Layer.BYTES, pointer),
            {python: fields[pointer] for python, fields in parsed.items() if pointer in fields},
            first.get(pointer),
        )
        for pointer in pointers
    )


def _at(by_layer: Mapping[Layer, Mapping[str, Entry]], layer: Layer, pointer: str) -> Entry | None:
    entries = by_layer.get(layer)
    return entries.get(pointer) if entries else None
