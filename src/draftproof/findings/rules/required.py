"""Required: fields without which no reader can build the drafter, and values that no reader can use.

Source: transformers 4.57.6 and 5.24.0 Qwen3Config, LlamaConfig (class defaults); SGLang 0.5.23
models/dflash.py (silu only); speculators 0.9.0 (the registered types).
"""

import re
from difflib import get_close_matches

from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.json.value import one_line
from draftproof.config.source import Sourced, Unknown
from draftproof.findings.catalogue import found
from draftproof.findings.classes import CLASSES
from draftproof.findings.evidence import Evidence, NotApplicable
from draftproof.findings.fields import layer_base, says, text_at, texts_at, true_at, value_at
from draftproof.findings.finding import Severity
from draftproof.findings.place import at_pointer, at_source
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_SHAPES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
_BLOCK = frozenset({Method.DFLASH, Method.DFLASH2, Method.DSPARK, Method.DOMINO})
_DFLASH2_KEYS = ("selector_rank", "selector_top_k", "conv_kernel_size", "conv_group_size")
_DRAFTER_TYPES = ("qwen3", "gpt_oss")
"""``model_type`` of published block drafters: the class that parses the file and normalises it."""

_OTHERS = re.compile(r"(qwen|llama|gemma|glm|deepseek|mi[sx]tral|phi|lfm|kimi|minimax|mimo|nemotron|longcat)")
"""Beginnings of ordinary models' types: a drafter that carries one was given its target's."""

_SLIP = 0.9
"""Of difflib: DFlashDraftModell passes, DFlashQwen3Model for DFlashDraftModel does not."""

_DTYPES = ("float16", "bfloat16", "float32", "float64", "half", "float", "auto")


def _ask_shapes(evidence: Evidence) -> Answers:
    """Class defaults are another model's numbers: a shape that is not written is a hole."""
    raw, drafter = evidence.raw, evidence.drafter
    base = layer_base(drafter)
    if drafter.dialect in ("target", "mtp"):
        raise NotApplicable
    if base and not says(raw, base):
        yield found(
            "field-absent",
            base.removeprefix("/"),
            expected="the object that holds the shapes of the layers",
            found="absent",
            at=at_pointer(raw, base),
        )
        return
    # A Llama class derives an absent head_dim, and takes all heads for an absent number of kv heads.
    needed = _SHAPES if drafter.method.value not in _BLOCK else (*_SHAPES, "num_key_value_heads", "head_dim")
    for name in needed:
        pointer = f"{base}/{name}"
        if not says(raw, pointer) or value_at(raw, pointer) is None:
            yield found(
                "field-absent",
                name,
                expected="the number the weights were made with",
                found=None if says(raw, pointer) else "absent",
                at=at_pointer(raw, pointer),
            )


def _ask_numbers(evidence: Evidence) -> Answers:
    """Numbers that must be positive, beyond the shapes."""
    raw, shape = evidence.raw, evidence.drafter.geometry
    numbers: tuple[tuple[str, Sourced[float] | Sourced[int]], ...] = (
        ("rms_norm_eps", shape.rms_norm_eps),
        ("max_position_embeddings", shape.max_position_embeddings),
    )
    for name, number in numbers:
        if number.is_written and number.value is not None and number.value <= 0:
            yield found(
                "field-invalid",
                name,
                expected="more than 0",
                found=number.value,
                at=at_source(raw, number, ""),
            )
    tied = f"{layer_base(evidence.drafter)}/tie_word_embeddings"
    if says(raw, tied) and not isinstance(value_at(raw, tied), bool | None):
        yield found(
            "field-mistyped",
            "tie_word_embeddings",
            expected="true or false",
            found=value_at(raw, tied),
            at=at_pointer(raw, tied),
        )
    for pointer in ("/dtype", "/torch_dtype"):
        said = text_at(raw, pointer)
        if said is not None and said.removeprefix("torch.") not in _DTYPES and "float8" not in said:
            yield found(
                "field-invalid",
                pointer.removeprefix("/"),
                expected=f"one of {', '.join(_DTYPES)}",
                found=said,
                at=at_pointer(raw, pointer),
            )


def _ask_activation(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    act, is_block = drafter.geometry.hidden_act, drafter.method.value in _BLOCK
    if drafter.dialect in ("target", "mtp"):
        raise NotApplicable
    if act.is_written and act.value not in (None, "silu", "swish"):
        yield found(
            "activation-not-silu",
            "hidden_act",
            expected="silu",
            found=act.value,
            at=at_source(raw, act, f"{layer_base(drafter)}/hidden_act"),
            severity=None if is_block else Severity.NOTE,
        )


def _ask_class(evidence: Evidence) -> Answers:
    """The class that parses a native file goes by model_type, not by architectures."""
    raw, drafter = evidence.raw, evidence.drafter
    if drafter.dialect in ("target", "mtp"):
        raise NotApplicable
    if drafter.dialect != "native" or drafter.method.value not in _BLOCK:
        pointer = f"{layer_base(drafter)}/model_type"
        if not says(raw, pointer) and (not layer_base(drafter) or says(raw, layer_base(drafter))):
            yield found(
                "model-type-odd",
                "model_type",
                expected="the class the layers were written by (llama, qwen3)",
                found="absent",
                at=at_pointer(raw, pointer),
            )
        return
    said = text_at(raw, "/model_type")
    is_mistyped = said is None and says(raw, "/model_type") and value_at(raw, "/model_type") is not None
    if said not in _DRAFTER_TYPES and not is_mistyped:
        yield found(
            "model-type-odd",
            "model_type",
            expected=_DRAFTER_TYPES[0],
            found=said or "absent",
            at=at_pointer(raw, "/model_type"),
            severity=None if said is None or _OTHERS.match(said) else Severity.NOTE,
        )


def _ask_name(evidence: Evidence) -> Answers:
    """The class named must be one that an engine registers; a slip of the pen still reads as its method."""
    raw, drafter = evidence.raw, evidence.drafter
    names = texts_at(raw, "/architectures") or []
    if drafter.dialect in ("target", "mtp", "speculators") or not names:
        raise NotApplicable
    if not isinstance(drafter.architecture.value, str) or any(name in CLASSES for name in names):
        raise NotApplicable
    close = get_close_matches(names[0], CLASSES, n=1, cutoff=_SLIP)
    yield found(
        "architecture-unknown",
        "architectures",
        expected=close[0] if close else "a class that an engine registers for drafters",
        found=one_line(names[0]),
        at=at_pointer(raw, "/architectures"),
        severity=None if close else Severity.NOTE,
    )


def _ask_own(evidence: Evidence) -> Answers:
    """What DFlash 2 needs beyond DFlash: positive integers, all four."""
    raw, drafter = evidence.raw, evidence.drafter
    if drafter.method.value is not Method.DFLASH2 or drafter.dialect != "native":
        raise NotApplicable
    homes = {
        name: next(
            (p for p in (f"/dflash_config/{name}", f"/{name}") if says(raw, p)), f"/dflash_config/{name}"
        )
        for name in _DFLASH2_KEYS
    }
    if not any(says(raw, pointer) for pointer in homes.values()):
        raise NotApplicable  # not a DFlash 2 at all: told as a look-alike
    for name, pointer in homes.items():
        value = value_at(raw, pointer) if says(raw, pointer) else None
        if value is None:
            yield found(
                "field-absent",
                name,
                expected="the number the weights were made with",
                found=None if says(raw, pointer) else "absent",
                at=at_pointer(raw, pointer),
                severity=Severity.WARNING,
            )
        elif isinstance(value, bool) or not isinstance(value, int) or value < 1:
            yield found(
                "field-invalid" if type(value) is int else "field-mistyped",
                name,
                expected="an integer of 1 or more",
                found=value,
                at=at_pointer(raw, pointer),
            )


def _ask_method(evidence: Evidence) -> Answers:
    """A speculators file names its method by a registered type."""
    raw, drafter = evidence.raw, evidence.drafter
    pointer = "/speculators_model_type"
    said = text_at(raw, pointer)
    if drafter.dialect == "speculators" and said is not None and isinstance(drafter.method.source, Unknown):
        yield found(
            "field-invalid",
            "speculators_model_type",
            expected="dflash, dflash2, dspark, eagle3, peagle or mtp",
            found=said,
            at=at_pointer(raw, pointer),
        )


def _ask_anchor(evidence: Evidence) -> Answers:
    """Slots that predict one position further, and layers that look back only."""
    raw, drafter = evidence.raw, evidence.drafter
    if drafter.method.value not in (Method.DFLASH, Method.DFLASH2):
        raise NotApplicable
    if true_at(raw, "/sample_from_anchor") or true_at(raw, "/dflash_config/sample_from_anchor"):
        at = next(p for p in ("/sample_from_anchor", "/dflash_config/sample_from_anchor") if true_at(raw, p))
        yield found(
            "anchor-sampled",
            "sample_from_anchor",
            expected="false, as in every published file of this method",
            found=True,
            at=at_pointer(raw, at),
            severity=Severity.NOTE if drafter.dialect == "speculators" else Severity.WARNING,
        )
    yield from _all_causal(evidence, drafter)


def _all_causal(evidence: Evidence, drafter: DrafterConfig) -> Answers:
    raw = evidence.raw
    for pointer in ("/is_causal", "/dflash_config/causal"):
        if drafter.dialect != "speculators" and true_at(raw, pointer):
            yield found(
                "block-all-causal",
                pointer.rpartition("/")[2],
                expected="false or absent, as in every published file of this method",
                found=True,
                at=at_pointer(raw, pointer),
            )


RULES = (
    Rule("shapes written", ("field-absent",), _ask_shapes),
    Rule("values a reader can use", ("field-invalid", "field-mistyped"), _ask_numbers),
    Rule("activation of the drafter", ("activation-not-silu",), _ask_activation),
    Rule("class that parses the file", ("model-type-odd",), _ask_class),
    Rule("class that an engine registers", ("architecture-unknown",), _ask_name),
    Rule("fields of DFlash 2", ("field-absent", "field-invalid", "field-mistyped"), _ask_own),
    Rule("method named", ("field-invalid",), _ask_method),
    Rule("labels and causality of the block", ("anchor-sampled", "block-all-causal"), _ask_anchor),
)
