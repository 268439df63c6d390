"""Targets: the numbers of a language model that a drafter depends on must be possible.

Source: transformers 5.24.0 config classes (layer_types has one entry per layer; heads divide evenly).
"""

import shlex
from dataclasses import replace

from draftproof.config.drafter import DrafterConfig
from draftproof.config.json.value import one_line
from draftproof.config.parse import UnrecognisedConfig
from draftproof.config.raw import RawConfig
from draftproof.config.target import TargetConfig
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence, NotApplicable
from draftproof.findings.fields import integer_at, says, texts_at, value_at
from draftproof.findings.place import at_pointer
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_POSITIVE = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "full_attention_interval",
    "max_position_embeddings",
)
_COUNTS = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
_MOST_KEYS = 8
_NEEDED = ("hidden_size", "num_hidden_layers")


def _files(evidence: Evidence) -> list[tuple[RawConfig, TargetConfig]]:
    models = [evidence.subject] + ([evidence.target_model] if evidence.target_model else [])
    known = [(m.raw, m.target) for m in models if isinstance(m.raw, RawConfig) and m.target is not None]
    if not known:
        raise NotApplicable
    return [(raw, target) for raw, target in known if target is not None]


def _ask_numbers(evidence: Evidence) -> Answers:
    for raw, target in _files(evidence):
        base = target.text_pointer
        for name, least in (*((n, 1) for n in _POSITIVE), *((n, 0) for n in _COUNTS)):
            said = integer_at(raw, f"{base}/{name}")
            if said is not None and said < least:
                yield found(
                    "field-invalid",
                    name,
                    expected=f"{least} or more",
                    found=said,
                    at=at_pointer(raw, f"{base}/{name}"),
                )
        heads, kv_heads = (integer_at(raw, f"{base}/num_{n}_heads") for n in ("attention", "key_value"))
        if heads and kv_heads and kv_heads > 0 and heads % kv_heads:
            yield found(
                "heads-indivisible",
                "num_key_value_heads",
                expected=f"a divisor of num_attention_heads {heads}",
                found=kv_heads,
                at=at_pointer(raw, f"{base}/num_key_value_heads"),
            )


def _ask_written(evidence: Evidence) -> Answers:
    for raw, target in _files(evidence):
        for name in _NEEDED:
            pointer = f"{target.text_pointer}/{name}"
            if says(raw, pointer) and value_at(raw, pointer) is None:
                yield found(
                    "field-absent",
                    name,
                    expected="the number the weights were made with",
                    found=None,
                    at=at_pointer(raw, pointer),
                )


def _ask_layers(evidence: Evidence) -> Answers:
    for raw, target in _files(evidence):
        pointer = f"{target.text_pointer}/layer_types"
        types, depth = texts_at(raw, pointer), target.geometry.num_hidden_layers.value
        # Some files list their extra prediction layers too (Step-3.5-Flash).
        extra = integer_at(raw, f"{target.text_pointer}/num_nextn_predict_layers") or 0
        if types is not None and depth is not None and not depth <= len(types) <= depth + extra:
            yield found(
                "layer-types-length",
                "layer_types",
                expected=f"{depth} entries (num_hidden_layers)",
                found=f"{len(types)} entries",
                at=at_pointer(raw, pointer),
            )


def _ask_role(evidence: Evidence) -> Answers:
    """What --target names must be a language model, not a drafter and not nothing."""
    model = evidence.target_model
    if model is None or not isinstance(model.raw, RawConfig) or model.parsed is None:
        raise NotApplicable
    config = model.parsed.config
    if isinstance(config, DrafterConfig):
        is_swapped = evidence.subject.target is not None
        finding = found(
            "target-is-a-drafter",
            "--target",
            expected="the config of a language model",
            found=f"a drafter ({config.method.value or 'of an unknown method'})",
            at=at_pointer(model.raw, ""),
            detail="the two look swapped: what is checked is a language model" if is_swapped else "",
        )
        turned = f"draftproof check {shlex.quote(model.given)} --target {shlex.quote(evidence.subject.given)}"
        yield replace(finding, next=turned) if is_swapped else finding
    elif isinstance(config, UnrecognisedConfig):
        yield found(
            "target-unrecognised",
            "--target",
            expected="the config of a language model",
            found=", ".join(map(one_line, config.keys[:_MOST_KEYS])) or "an empty object",
            at=at_pointer(model.raw, ""),
        )


RULES = (
    Rule("what --target names", ("target-is-a-drafter", "target-unrecognised"), _ask_role),
    Rule("numbers of the target", ("field-invalid", "heads-indivisible"), _ask_numbers),
    Rule("shapes of the target written", ("field-absent",), _ask_written),
    Rule("layer types of the target", ("layer-types-length",), _ask_layers),
)
