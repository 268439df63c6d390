"""Readers: a field that changes the model must be read, a tensor it brings must have a parameter.

Without ``--engine`` only rows for which no version is known to be free are told, at BYTES; with it, what
that version drops is told at EFFECTIVE.
"""

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from draftproof.config.raw import JsonValue, RawConfig
from draftproof.findings.catalogue import found
from draftproof.findings.effects import EFFECTS
from draftproof.findings.engines import BLIND_SPOTS, BlindSpot, Verdict, trimmed, version_text, versions_read
from draftproof.findings.evidence import Evidence, NotApplicable
from draftproof.findings.fields import says
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.place import at_pointer, at_tensor
from draftproof.findings.rule import Answers, Rule
from draftproof.names import Layer

__all__ = ["RULES"]


def _spots(evidence: Evidence) -> Iterator[tuple[BlindSpot, bool]]:
    """Rows that concern this drafter, and whether the named engine is known to be one of them."""
    drafter = evidence.drafter
    for spot in BLIND_SPOTS:
        if drafter.method.value not in spot.methods or drafter.dialect not in spot.dialects:
            continue
        if evidence.engine is None:
            if spot.versions.until is None:
                yield spot, False
            continue
        verdict = spot.versions.verdict(evidence.engine)
        if verdict is not Verdict.HOLDS_NOT:
            yield spot, verdict is Verdict.HOLDS


def _says_something(raw: RawConfig, pointer: str) -> bool:
    """Whether the field asks for something other than what happens without it."""
    if not says(raw, pointer):
        return False
    value: JsonValue = raw.at(pointer)
    if pointer.endswith("layer_types"):
        return isinstance(value, list) and "sliding_attention" in value
    if pointer.endswith("max_window_layers"):
        return False  # a bound of the window, told with it
    return value not in (None, False)


def _ask_fields(evidence: Evidence) -> Answers:
    raw = evidence.raw
    for spot, is_known in _spots(evidence):
        for pointer in spot.fields:
            if _says_something(raw, pointer):
                told = found(
                    "field-without-reader",
                    pointer.rpartition("/")[2],
                    expected=f"a reader in {evidence.engine or spot.versions.engine}",
                    found=raw.at(pointer),
                    at=at_pointer(raw, pointer),
                    detail=(
                        f"{pointer} has no reader in {spot.where} ({spot.source}); {spot.versions}; "
                        f"{EFFECTS[spot.effect].sentence()}{_beyond(evidence, is_known=is_known)}"
                    ),
                    severity=Severity.ERROR if is_known else Severity.WARNING,
                    layer=Layer.EFFECTIVE if is_known else Layer.BYTES,
                )
                yield _with_next(evidence, told)


def _ask_tensors(evidence: Evidence) -> Answers:
    raw, weights = evidence.raw, evidence.weights
    if not any(spot.tensors for spot, _ in _spots(evidence)):
        raise NotApplicable
    for spot, is_known in _spots(evidence):
        asked = [pointer for pointer in spot.fields if _says_something(raw, pointer)]
        for pattern in spot.tensors if asked else ():
            for name in weights.tensors:
                if fnmatchcase(name.removeprefix("model."), pattern):
                    told = found(
                        "tensor-without-consumer",
                        name,
                        expected=f"a parameter in {evidence.engine or spot.versions.engine}",
                        found=f"a tensor that only {', '.join(asked)} gives a parameter to",
                        at=at_tensor(weights.root / weights.tensors[name].shard, name),
                        detail=f"no consumer where {', '.join(asked)} has no reader ({spot.source})"
                        + _beyond(evidence, is_known=is_known),
                        severity=Severity.ERROR if is_known else Severity.WARNING,
                        layer=Layer.EFFECTIVE if is_known else Layer.BYTES,
                    )
                    yield _with_next(evidence, told)


def _beyond(evidence: Evidence, *, is_known: bool) -> str:
    """That the row says nothing about the very version named, where it does not."""
    if evidence.engine is None or is_known:
        return ""
    return f"; whether {evidence.engine} still does is not recorded here"


def _with_next(evidence: Evidence, told: Finding) -> Finding:
    """Who has named an engine is not asked to name one."""
    if evidence.engine is None:
        return told
    return replace(told, next=f"use a version of {evidence.engine.name} that reads it")


def _ask_version(evidence: Evidence) -> Answers:
    """A version outside those whose source was read is said to be outside, not judged by its neighbours."""
    evidence.drafter  # noqa: B018 - raises NotApplicable where there is no drafter
    if evidence.engine is None:
        raise NotApplicable
    first, beyond = versions_read(evidence.engine.name)
    if not first <= trimmed(evidence.engine.version) < beyond:
        yield NotLooked(
            "engine's reading",
            f"--engine {evidence.engine}: only {evidence.engine.name} from {version_text(first)} and before "
            f"{version_text(beyond)} was read in source; other versions may read more, or less",
            is_required=True,
        )


RULES = (
    Rule("versions of the engine", (), _ask_version),
    Rule("fields with a reader in the engine", ("field-without-reader",), _ask_fields),
    Rule("tensors with a consumer in the engine", ("tensor-without-consumer",), _ask_tensors),
)
