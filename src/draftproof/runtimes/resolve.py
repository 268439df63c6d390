"""A pair put to an engine before a start: the question, the engine's record, what it means."""

from dataclasses import dataclass
from os.path import realpath

from draftproof.config.drafter import DrafterConfig
from draftproof.config.raw import RawConfig
from draftproof.findings.check import Report
from draftproof.findings.evidence import Model
from draftproof.findings.finding import NotLooked
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.draft_model import as_draft_model
from draftproof.runtimes.effective import Effective
from draftproof.runtimes.interpreter import NoAnswer
from draftproof.runtimes.judge_effective import Meant, judge_effective
from draftproof.runtimes.pair import Pair
from draftproof.runtimes.sglang.preflight_reading import preflight as ask_sglang
from draftproof.runtimes.vllm.preflight_reading import preflight as ask_vllm

__all__ = ["Preflight", "Question", "drafter_of", "meant_of", "resolve"]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of an engine."""

    engine: str
    subject: Model
    target: Model
    num_draft_tokens: int | None = None
    drafter_there: str | None = None
    """The drafter's path where the engine is; None for the path it was read from."""

    target_there: str | None = None


@dataclass(frozen=True, slots=True)
class Preflight:
    """Everything ``draftproof preflight`` says."""

    question: Question
    asked: str
    """The interpreter, as shown to people."""

    effective: Effective | None
    report: Report

    def as_dict(self) -> dict[str, object]:
        """The one object of ``--json``."""
        return {
            "schema": "draftproof.preflight/1",
            "subject": self.question.subject.given,
            "target": self.question.target.given,
            "engine": self.question.engine,
            "python": self.asked,
            "effective": self.effective.as_dict() if self.effective else None,
            "findings": [finding.as_dict() for finding in self.report.findings],
            "not_looked": [entry.as_dict() for entry in self.report.not_looked],
        }


def resolve(python: EnginePython, question: Question, *, timeout_seconds: float) -> Preflight:
    """Ask the engine, hold its record against the file. Raises UsageError where nothing can be asked."""
    subject, target = question.subject, question.target
    drafter = drafter_of(subject, target)
    for model in (subject, target):
        if not isinstance(model.raw, RawConfig):
            return _blind(question, python, f"{model.raw.subject}: {model.raw.found}")
    if drafter is None:
        return _blind(question, python, f"{subject.given} holds no drafter")
    pair = Pair(
        question.drafter_there or _absolute(subject),
        question.target_there or _absolute(target),
        drafter,
        question.num_draft_tokens,
    )
    ask = ask_vllm if question.engine == "vllm" else ask_sglang
    records = ask(python, [pair], timeout_seconds=timeout_seconds)
    if isinstance(records, NoAnswer):
        return _blind(question, python, records.reason)
    effective = records[0]
    meant = meant_of(subject, target)
    findings = judge_effective(effective, meant) if meant else ()
    not_known = tuple(
        NotLooked(name, fact.source) for name, fact in effective.flat.items() if not fact.is_known
    )
    return Preflight(question, str(python), effective, Report(findings, not_known, 1))


def drafter_of(model: Model, target: Model | None) -> DrafterConfig | None:
    """The drafter of a directory: its own file's, the target's own MTP head, or the whole model of another.

    Without a ``target`` a model is none of another's: only its own head can be meant.
    """
    if model.drafter is not None or model.target is None:
        return model.drafter
    if target is None or realpath(_absolute(target)) == realpath(_absolute(model)):
        return model.target.mtp.drafter if model.target.mtp else None
    return as_draft_model(model.target)


def meant_of(subject: Model, target: Model | None) -> Meant | None:
    """What the files describe; None where there is no drafter to hold an engine against."""
    drafter = drafter_of(subject, target)
    if drafter is None or not isinstance(subject.raw, RawConfig):
        return None
    return Meant.beside(subject.raw, drafter, target.target if target else None)


def _blind(question: Question, python: EnginePython, reason: str) -> Preflight:
    entry = NotLooked(f"{question.engine} before a start", f"could not look: {reason}", is_required=True)
    return Preflight(question, str(python), None, Report((), (entry,)))


def _absolute(model: Model) -> str:
    """The path as the engine is given it; of ``host:/path`` what stands behind the colon."""
    host, colon, path = model.given.partition(":/")
    if colon and "/" not in host and model.directory is None:
        return f"/{path}"
    return str((model.directory or model.config_path.parent).absolute())
