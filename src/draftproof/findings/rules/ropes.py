"""Rope: one base, one style, and what several engines do not read of it.

Source: transformers 4.57.6 (rope_theta, rope_scaling) and 5.24.0 (rope_parameters); dflash 0.1.0.
"""

from draftproof.config.drafter import Method
from draftproof.config.json.pointer import resolve
from draftproof.config.raw import JsonValue, RawConfig
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence
from draftproof.findings.fields import layer_base, says, value_at
from draftproof.findings.finding import Severity
from draftproof.findings.place import at_pointer, at_source
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_FILLED_APART = frozenset({Method.DFLASH, Method.DFLASH2, Method.DSPARK, Method.DOMINO})
"""Methods whose engines fill an absent base with different numbers; Llama-style drafters all take 10000."""

_NEEDED = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "longrope": ("short_factor", "long_factor"),
    "su": ("short_factor", "long_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "mrope": (),
    "deepseek_yarn": ("factor",),
    "proportional": (),
}
"""Scalings that a reader knows -> the numbers each needs. Source: transformers 5.24 modeling_rope_utils
(required keys); vLLM 0.33 rotary_embedding (mrope, deepseek_yarn)."""


def _ask_base(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    base = layer_base(drafter)
    theta = drafter.rope.theta
    if (not theta.is_written or theta.value is None) and drafter.method.value is not Method.MTP:
        apart = drafter.method.value in _FILLED_APART
        nest = f"{base}/rope_parameters"
        is_nested = says(raw, nest) and not says(raw, f"{base}/rope_theta")
        yield found(
            "rope-absent",
            "rope_theta",
            expected="the trained rope base",
            found=None if theta.is_written else "absent",
            at=at_source(raw, theta, f"{nest if is_nested else base}/rope_theta"),
            severity=Severity.WARNING if apart else Severity.NOTE,
        )
    elif theta.value is not None and theta.is_written and theta.value <= 0:
        yield found(
            "field-invalid",
            "rope_theta",
            expected="a positive base",
            found=theta.value,
            at=at_source(raw, theta, f"{base}/rope_theta"),
        )
    nested, flat = f"{base}/rope_parameters/rope_theta", f"{base}/rope_theta"
    if says(raw, nested) and not says(raw, flat):
        yield found(
            "rope-nested-only",
            "rope_theta",
            expected=flat,
            found=nested,
            at=at_pointer(raw, nested),
            detail=f"{_shown(value_at(raw, nested))} on disk",
        )


def _ask_styles(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    base = layer_base(drafter)
    flat, nested = f"{base}/rope_theta", f"{base}/rope_parameters/rope_theta"
    if says(raw, flat) and says(raw, nested) and value_at(raw, flat) == value_at(raw, nested):
        yield found(
            "rope-two-styles", "rope_theta", expected="one style", found="both", at=at_pointer(raw, nested)
        )
    for flat, nested in _twins(raw, base):
        if says(raw, flat) and says(raw, nested):
            one, other = value_at(raw, flat), value_at(raw, nested)
            if one != other:
                yield found(
                    "rope-styles-conflict",
                    nested.rpartition("/")[2],
                    expected=one,
                    found=other,
                    at=at_pointer(raw, nested),
                    detail=f"{flat} says {_shown(one)}",
                )


def _twins(raw: RawConfig, base: str) -> list[tuple[str, str]]:
    """Fields that have a place in both styles: (flat, nested)."""
    twins = [
        (f"{base}/{name}", f"{base}/rope_parameters/{name}")
        for name in ("rope_theta", "partial_rotary_factor")
    ]
    scaling = f"{base}/rope_scaling"
    inner = resolve(raw.value, scaling) if says(raw, scaling) else None
    if isinstance(inner, dict):
        twins += [(f"{scaling}/{name}", f"{base}/rope_parameters/{name}") for name in inner]
    return twins


def _ask_layout(evidence: Evidence) -> Answers:
    raw, rope = evidence.raw, evidence.drafter.rope
    if rope.is_neox.is_written and rope.is_neox.value is False:
        yield found(
            "rope-interleaved",
            "is_neox_style",
            expected="an engine that reads it",
            found=False,
            at=at_source(raw, rope.is_neox, ""),
        )
    factor = rope.partial_rotary_factor
    if factor.is_written and factor.value is not None and not 0 < factor.value <= 1:
        yield found(
            "field-invalid",
            "partial_rotary_factor",
            expected="more than 0, at most 1",
            found=factor.value,
            at=at_source(raw, factor, ""),
        )
    elif factor.is_written and factor.value is not None and factor.value != 1:
        yield found(
            "rope-partial",
            "partial_rotary_factor",
            expected="an engine that reads it for drafters",
            found=factor.value,
            at=at_source(raw, factor, ""),
        )


def _ask_scaling(evidence: Evidence) -> Answers:
    """A scaling must be one that transformers knows, with the numbers it needs."""
    raw, base = evidence.raw, layer_base(evidence.drafter)
    for pointer in (f"{base}/rope_scaling", f"{base}/rope_parameters"):
        block = value_at(raw, pointer) if says(raw, pointer) else None
        if not isinstance(block, dict):
            continue
        named = next((key for key in ("rope_type", "type") if key in block), None)
        if named is None:
            continue
        kind = block[named]
        if not isinstance(kind, str) or kind not in _NEEDED:
            yield found(
                "field-invalid",
                named,
                expected=f"one of {', '.join(_NEEDED)}",
                found=kind,
                at=at_pointer(raw, f"{pointer}/{named}"),
            )
            continue
        for name in _NEEDED[kind]:
            if name not in block or block[name] is None:
                yield found(
                    "field-absent",
                    name,
                    expected=f"a number, as {kind} scaling needs it",
                    found=None if name in block else "absent",
                    at=at_pointer(raw, f"{pointer}/{name}"),
                )


def _shown(value: JsonValue) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


RULES = (
    Rule("rope base", ("rope-absent", "rope-nested-only", "field-invalid"), _ask_base),
    Rule("one rope style", ("rope-styles-conflict", "rope-two-styles"), _ask_styles),
    Rule("rope scaling", ("field-invalid", "field-absent"), _ask_scaling),
    Rule("rope layout", ("rope-interleaved", "rope-partial"), _ask_layout),
)
