"""Follow: findings that only repeat another one, taken out, so that one fault is told once.

A value of the wrong type leaves a hole that every later rule stumbles into; a tensor that a particular rule
explains is also a tensor that nobody reads. The particular finding stays, its echoes go.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from draftproof.findings.finding import Finding, Severity

__all__ = ["without_echoes"]

_HOLES = ("field-mistyped", "field-misspelt")
_KEPT = ("intent-", "json-", "hub-", "shard-", "index-")
"""Beginnings of ids that are told whatever else is."""

_TENSOR_ECHOES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "tensor-without-consumer": frozenset({"tensor-unread"}),
        "fc-bias-unannounced": frozenset({"tensor-unread"}),
        "tensor-size-mismatch": frozenset({"tensor-misshapen"}),
        **dict.fromkeys(
            ("d2t-absolute", "d2t-degenerate", "d2t-out-of-range", "d2t-not-integer", "d2t-duplicate-target"),
            frozenset({"draft-map-no-bytes", "t2d-against-d2t"}),
        ),
    }
)
"""A finding about a tensor -> ids that say no more about the same tensor."""

_POINTER_ECHOES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "window-outside-layer-config": frozenset({"field-misplaced"}),
        "field-without-reader": frozenset({"field-misplaced"}),
        "look-alike": frozenset({"field-odd", "architecture-unknown"}),
        "field-odd": frozenset({"architecture-unknown"}),
        "mask-names-token": frozenset({"mask-not-published", "mask-is-special"}),
        "field-conflict": frozenset({"shape-conflict"}),
        "causality-conflict": frozenset({"block-all-causal"}),
    }
)
"""A finding about a value -> ids that say no more about the same value, or the object it stands in."""


_FIELD_ECHOES: tuple[tuple[str, str, str], ...] = (
    ("shape-conflict", "num_hidden_layers", "layer-types-length"),
    ("field-invalid", "num_hidden_layers", "layer-types-length"),
    ("shape-conflict", "num_key_value_heads", "heads-indivisible"),
    ("shape-conflict", "num_attention_heads", "heads-indivisible"),
    ("tensor-misshapen", "fc.weight", "taps-width-conflict"),
    ("look-alike", "architectures", "tensor-unfilled"),
    ("look-alike", "architectures", "tensor-unread"),
)
"""(id, field) -> an id that repeats it from the other side."""

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")

_SIBLINGS = re.compile(r"conv|selector|codebook|markov|confidence|gru|embed_proj")
"""Parts of the tensors that only one of the sibling methods has."""


def without_echoes(findings: Iterable[Finding]) -> list[Finding]:
    """The findings without those that another one of the same file explains, in their order."""
    told = list(findings)
    mistyped = [f for f in told if f.id in _HOLES]
    echoes = {id(f) for f in told if any(_is_hole_of(f, cause) for cause in mistyped)}
    echoes.update(id(f) for f in _pairs(told))
    drifted = {(_file(f), f.pointer) for f in told if f.id == "intent-drift"}
    # A value that was never meant: what it would do in an engine is not the question.
    echoes.update(id(f) for f in told if f.severity is Severity.NOTE and (_file(f), f.pointer) in drifted)
    return [f for f in told if id(f) not in echoes]


def _is_hole_of(finding: Finding, cause: Finding) -> bool:
    """Whether a finding is about the hole that a mistyped value, or a misspelt key, left."""
    if finding.id in _HOLES or finding.id.startswith(_KEPT) or _file(finding) != _file(cause):
        return False
    if cause.id == "field-misspelt":
        return finding.id.endswith("-absent") and finding.subject == cause.expected
    below = finding.pointer is not None and f"{finding.pointer}/".startswith(f"{cause.pointer}/")
    return below or finding.subject == cause.subject


def _pairs(told: list[Finding]) -> Iterator[Finding]:
    causes = [f for f in told if f.id in _TENSOR_ECHOES or f.id in _POINTER_ECHOES]
    for kind, subject, echo in _FIELD_ECHOES:
        if any(f.id == kind and f.subject == subject for f in told):
            yield from (
                f for f in told if f.id == echo and (kind != "look-alike" or _SIBLINGS.search(f.subject))
            )
    for cause in causes:
        for finding in told:
            if finding is not cause and (_same_tensor(cause, finding) or _same_value(cause, finding)):
                yield finding


def _same_tensor(cause: Finding, finding: Finding) -> bool:
    if cause.id not in _TENSOR_ECHOES or finding.id not in _TENSOR_ECHOES[cause.id]:
        return False
    return finding.subject in (cause.subject, _NUMBER.sub("*", cause.subject))


def _same_value(cause: Finding, finding: Finding) -> bool:
    if cause.id not in _POINTER_ECHOES or finding.id not in _POINTER_ECHOES[cause.id]:
        return False
    if _file(finding) != _file(cause):
        return False
    return f"{cause.pointer}/".startswith(f"{finding.pointer}/")


def _file(finding: Finding) -> str:
    return finding.where.partition("#")[0]
