"""Drift: the file on disk against the file that was meant, value by value and byte by byte."""

import shlex
from collections.abc import Mapping
from dataclasses import replace

from draftproof.config.diff import (
    ABSENT,
    BytesVerdict,
    Difference,
    Kind,
    compare_bytes,
    diff,
    formatting_differences,
)
from draftproof.config.json.pointer import split_pointer
from draftproof.config.json.shown import mask_secrets
from draftproof.config.json.value import JsonValue
from draftproof.config.raw import RefusedConfig
from draftproof.errors import CouldNotLook
from draftproof.findings.catalogue import found
from draftproof.findings.effects import EFFECTS
from draftproof.findings.evidence import Evidence, Lacking
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.place import at_file, at_pointer
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_NEVER_READ = frozenset(
    {
        "_name_or_path",
        "attention_dropout",
        "initializer_range",
        "speculators_version",
        "transformers_version",
        "use_cache",
    }
)
"""Keys that no engine reads of a drafter or a target."""

_NOT_OF_DRAFTERS = frozenset(
    {"auto_map", "bos_token_id", "dtype", "eos_token_id", "pad_token_id", "torch_dtype"}
)
"""Keys that no engine reads of a drafter: the target's are used."""

_EFFECTS: Mapping[str, str] = {
    "target_layer_ids": "tap-off-by-one",
    "aux_hidden_state_layer_ids": "tap-off-by-one",
    "eagle_aux_hidden_state_layer_ids": "tap-off-by-one",
    "layer_types": "window-dropped",
    "sliding_window": "window-dropped",
    "use_sliding_window": "window-dropped",
    "mask_token_id": "mask-fallback",
    "block_size": "block-trained-wider",
    "max_position_embeddings": "positions-short",
    "rope_theta": "rope-mismatch",
    "rope_parameters": "rope-mismatch",
    "rope_scaling": "rope-mismatch",
}
"""Published cost of a wrong value, by key."""


def _ask_values(evidence: Evidence) -> Answers:
    intended, raw = evidence.intended, evidence.raw
    for difference in diff(intended.value, raw.value):
        yield _drifted(evidence, difference)


def _drifted(evidence: Evidence, difference: Difference) -> Finding:
    keys = split_pointer(difference.pointer)
    name = next((key for key in reversed(keys) if not key.isdigit()), "")
    is_advisory = _is_advisory(evidence, keys, name)
    parts = [_how(difference)]
    if is_advisory:
        parts.append(
            "no engine reads this field, so it costs nothing by itself; it tells where the file came from"
        )
    if name in _EFFECTS:
        parts.append(EFFECTS[_EFFECTS[name]].sentence())
    drifted = found(
        "intent-drift",
        name or "the whole file",
        expected=_side(difference.a, difference.a_type, difference.pointer),
        found=_side(difference.b, difference.b_type, difference.pointer),
        at=at_pointer(evidence.raw, difference.pointer),
        detail="; ".join(parts),
        severity=Severity.WARNING if is_advisory else Severity.ERROR,
    )
    return replace(drifted, next=_mended_by(evidence))


def _is_advisory(evidence: Evidence, keys: tuple[str, ...], name: str) -> bool:
    if name in _NEVER_READ:
        return True
    return evidence.subject.drafter is not None and (
        name in _NOT_OF_DRAFTERS or (len(keys) > 0 and keys[0] in _NOT_OF_DRAFTERS)
    )


def _side(value: JsonValue, kind: str, pointer: str) -> JsonValue:
    """The value with every credential in it hidden; that it differs is still told."""
    return ABSENT if kind == ABSENT else mask_secrets(value, pointer)


def _mended_by(evidence: Evidence) -> str:
    """The command that puts the intended bytes where the others are."""
    intended = shlex.quote(str(evidence.intent.config_path)) if evidence.intent else "INTENT"
    return f"draftproof write {intended} {shlex.quote(str(evidence.subject.config_path))}"


def _how(difference: Difference) -> str:
    """The difference in words: what kind of thing changed into what."""
    words = {
        Kind.ADDED: f"on disk ({difference.b_type}), not intended at all",
        Kind.REMOVED: f"intended ({difference.a_type}), absent on disk",
        Kind.NULL: f"{difference.a_type} intended, {difference.b_type} on disk: a written null is a value",
        Kind.TYPE: f"{difference.a_type} intended, {difference.b_type} on disk: another JSON type",
        Kind.LENGTH: "another number of entries",
        Kind.REORDERED: "the same entries in another order",
        Kind.VALUE: "another value of the same type",
    }
    told = words[difference.kind]
    if difference.indexes and difference.kind is not Kind.REORDERED:
        told += f" (differs at {', '.join(map(str, difference.indexes[:8]))})"
    return told


def _ask_bytes(evidence: Evidence) -> Answers:
    """Bytes that differ while the values agree; a BOM refuses the file, and is named here too."""
    intended, subject = evidence.intended, evidence.subject.raw
    if isinstance(subject, CouldNotLook):
        raise Lacking(f"{evidence.subject.config_path} was not read")
    verdict = compare_bytes(intended, subject)
    place = at_file(evidence.subject.config_path)
    if verdict in (BytesVerdict.LINE_ENDINGS, BytesVerdict.BOM):
        yield found(
            "intent-line-endings",
            evidence.subject.config_path.name,
            expected="the intended file's bytes",
            found="another kind of line ending"
            if verdict is BytesVerdict.LINE_ENDINGS
            else "a byte order mark",
            at=place,
        )
    elif verdict is BytesVerdict.FORMATTING and not isinstance(subject, RefusedConfig):
        yield found(
            "intent-formatting",
            evidence.subject.config_path.name,
            expected="the intended file's bytes",
            found=", ".join(formatting_differences(intended, subject)) or "other spelling",
            at=place,
        )


def _ask_intent(evidence: Evidence) -> Answers:
    """The intended file must itself be one strict JSON object."""
    intent = evidence.intent
    if intent is None:
        return
    if isinstance(intent.raw, RefusedConfig):
        first = intent.raw.defects[0]
        yield found(
            "intent-refused",
            intent.config_path.name,
            expected=first.expected,
            found=first.found,
            at=at_file(intent.raw.where),
            detail=f"{len(intent.raw.defects)} defects, the first is {first.id}",
        )
    elif isinstance(intent.raw, CouldNotLook):
        yield NotLooked("intended file", f"{intent.raw.subject}: {intent.raw.found}", is_required=True)


RULES = (
    Rule("the intended file", ("intent-refused",), _ask_intent),
    Rule("values against the intended file", ("intent-drift",), _ask_values),
    Rule("bytes against the intended file", ("intent-line-endings", "intent-formatting"), _ask_bytes),
)
