"""Windows: layer types, the window, its gates and causality must say one thing.

Source: transformers 4.53 to 5.24 Qwen3Config (the gate and max_window_layers); vLLM 0.33
qwen3_dflash._resolve_layer_attention; SGLang 0.5.23 models/dflash.py; dflash 0.1.0 model.py.
"""

from draftproof.config.drafter import DrafterConfig
from draftproof.config.raw import RawConfig
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence
from draftproof.findings.fields import (
    first_written,
    integer_at,
    layer_base,
    says,
    text_at,
    texts_at,
    true_at,
    value_at,
)
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.place import at_pointer
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_KINDS = ("full_attention", "sliding_attention")
_MOST = 16
"""Entries told one by one; a longer list of them is one fault."""

_USE, _SIZE = "/dflash_config/use_swa", "/dflash_config/swa_window_size"
_SLIDING = "sliding_attention"
_GATED_TYPES = (None, "qwen3", "qwen2")
"""``model_type`` of the config classes that null the window without use_sliding_window."""


def _ask_layer_types(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    pointer = f"{layer_base(drafter)}/layer_types"
    types, depth = texts_at(raw, pointer), drafter.geometry.num_hidden_layers.value
    if types is None:
        return
    if depth is not None and len(types) != depth:
        yield found(
            "layer-types-length",
            "layer_types",
            expected=f"{depth} entries (num_hidden_layers)",
            found=f"{len(types)} entries",
            at=at_pointer(raw, pointer),
        )
    unknown = [index for index, kind in enumerate(types) if kind not in _KINDS]
    for index in unknown[:_MOST]:
        yield found(
            "layer-type-unknown",
            f"layer_types of layer {index}",
            expected=" or ".join(_KINDS),
            found=types[index],
            at=at_pointer(raw, f"{pointer}/{index}"),
            detail=f"{len(unknown)} entries in all" if len(unknown) > _MOST else "",
        )


def _ask_window(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    base = layer_base(drafter)
    types = texts_at(raw, f"{base}/layer_types")
    window = integer_at(raw, f"{base}/sliding_window")
    slides = types is not None and _SLIDING in types
    if slides and window is None and integer_at(raw, "/dflash_config/swa_window_size") is None:
        yield found(
            "sliding-without-window",
            "sliding_window",
            expected="a window in tokens",
            found=_shown(raw, f"{base}/sliding_window"),
            at=at_pointer(raw, f"{base}/sliding_window"),
        )
    if true_at(raw, _USE) and window is None and not slides and _inner(raw) is None:
        yield found(
            "sliding-without-window",
            "swa_window_size",
            expected="a window in tokens: use_swa is true",
            found=_shown(raw, _SIZE),
            at=at_pointer(raw, _SIZE),
        )
    inner = _inner(raw)
    if inner is not None and inner < 1:
        yield found(
            "field-invalid",
            "swa_window_size",
            expected="1 or more tokens",
            found=inner,
            at=at_pointer(raw, _SIZE),
        )
    elif inner is not None and not slides and not true_at(raw, _USE):
        yield found(
            "window-unused",
            "use_swa",
            expected="use_swa: true, a sliding layer, or no window",
            found=f"swa_window_size {inner}, use_swa {_word(raw)}",
            at=at_pointer(raw, _USE),
        )
    if window is not None and window < 1:
        yield found(
            "field-invalid",
            "sliding_window",
            expected="1 or more tokens",
            found=window,
            at=at_pointer(raw, f"{base}/sliding_window"),
        )
    elif _is_gated(raw, drafter):
        yield from _ask_gate(raw, drafter, types, window, slides=slides)
    elif window is not None and types is not None and not slides:
        yield _unused(raw, base, window)


def _inner(raw: RawConfig) -> int | None:
    return integer_at(raw, _SIZE)


def _word(raw: RawConfig) -> str:
    said = _shown(raw, _USE)
    return said if isinstance(said, str) else str(said).lower()


def _ask_gate(
    raw: RawConfig, drafter: DrafterConfig, types: list[str] | None, window: int | None, *, slides: bool
) -> Answers:
    gate, at_gate = true_at(raw, "/use_sliding_window"), "/use_sliding_window"
    if window is not None and not gate:
        if slides or not says(raw, at_gate):
            yield found(
                "window-gate-closed",
                "use_sliding_window",
                expected=True,
                found=_shown(raw, at_gate),
                at=at_pointer(raw, at_gate if says(raw, at_gate) else "/sliding_window"),
                detail=f"sliding_window {window} is parsed as null",
            )
    elif window is not None and types is not None and not slides:
        yield _unused(raw, "", window)
    elif window is not None and types is None and _is_silent(raw, "/layer_types"):
        yield from _ask_depth(raw, drafter, window)
    elif window is None and gate and types is not None and not slides:
        yield found(
            "window-gate-without-window",
            "sliding_window",
            expected="a window and sliding layers, or use_sliding_window: false",
            found=_shown(raw, "/sliding_window"),
            at=at_pointer(raw, "/sliding_window" if says(raw, "/sliding_window") else at_gate),
        )


def _ask_depth(raw: RawConfig, drafter: DrafterConfig, window: int) -> Answers:
    """Without layer_types only layers from max_window_layers on slide; absent, that is 28."""
    depth = drafter.geometry.num_hidden_layers.value
    start = integer_at(raw, "/max_window_layers")
    first = 28 if start is None else start
    if depth is not None and first >= depth:
        yield found(
            "window-starts-too-deep",
            "max_window_layers",
            expected=f"layer_types, or a start below {depth} layers",
            found=f"{start}" if start is not None else "absent: 28 by Qwen3Config",
            at=at_pointer(raw, "/max_window_layers" if start is not None else "/sliding_window"),
            detail=f"sliding_window {window} reaches no layer",
        )


def _unused(raw: RawConfig, base: str, window: int) -> Finding:
    return found(
        "window-unused",
        "layer_types",
        expected="a sliding layer, or no window",
        found=f"every layer full, sliding_window {window}",
        at=at_pointer(raw, f"{base}/layer_types"),
    )


def _ask_encodings(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    top, inner = integer_at(raw, "/sliding_window"), integer_at(raw, "/dflash_config/swa_window_size")
    if top is not None and inner is not None and top != inner:
        yield found(
            "window-conflict",
            "swa_window_size",
            expected=top,
            found=inner,
            at=at_pointer(raw, "/dflash_config/swa_window_size"),
        )
    types = texts_at(raw, "/layer_types")
    if true_at(raw, "/dflash_config/use_swa") and types and set(types) != {_SLIDING}:
        stated = first_written(raw, ("/is_causal", "/dflash_config/causal"))
        yield found(
            "window-encodings-conflict",
            "use_swa",
            expected="layer_types that slide where use_swa says so",
            found=f"{types.count(_SLIDING)} of {len(types)} layers slide, use_swa true",
            at=at_pointer(raw, "/dflash_config/use_swa"),
            detail="" if stated else "the file does not state causality either",
            severity=Severity.NOTE if stated else Severity.WARNING,
        )
    if drafter.dialect == "speculators":
        yield from _ask_outside(raw)


def _ask_outside(raw: RawConfig) -> Answers:
    for name in ("layer_types", "sliding_window", "use_sliding_window", "max_window_layers"):
        if says(raw, f"/{name}"):
            yield found(
                "window-outside-layer-config",
                name,
                expected=f"/transformer_layer_config/{name}",
                found=f"/{name}",
                at=at_pointer(raw, f"/{name}"),
            )


def _ask_causality(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    if says(raw, "/is_causal") and says(raw, "/dflash_config/causal"):
        top, inner = value_at(raw, "/is_causal"), value_at(raw, "/dflash_config/causal")
        if top is not inner:
            yield found(
                "causality-conflict",
                "causal",
                expected=top,
                found=inner,
                at=at_pointer(raw, "/dflash_config/causal"),
            )
    kinds = {layer.kind.value for layer in drafter.layers}
    switch = "/sliding_window_non_causal"
    if says(raw, switch) and value_at(raw, switch) is False and len(kinds) > 1:
        engine = evidence.engine
        hit = engine is not None and engine.name == "vllm" and (0, 26) <= engine.version < (0, 34)
        yield found(
            "causality-flattened",
            "sliding_window_non_causal",
            expected="causal sliding layers, full layers not causal, as trained",
            found=False,
            at=at_pointer(raw, switch),
            detail=f"{engine} is one of them" if hit else "",
            severity=Severity.WARNING if hit else Severity.NOTE,
        )


def _is_gated(raw: RawConfig, drafter: DrafterConfig) -> bool:
    return drafter.dialect != "speculators" and text_at(raw, "/model_type") in _GATED_TYPES


def _is_silent(raw: RawConfig, pointer: str) -> bool:
    return not says(raw, pointer) or value_at(raw, pointer) is None


def _shown(raw: RawConfig, pointer: str) -> str | int | float | bool | None:
    if not says(raw, pointer):
        return "absent"
    value = value_at(raw, pointer)
    return value if isinstance(value, str | int | float | bool) else None


RULES = (
    Rule("layer types", ("layer-types-length", "layer-type-unknown"), _ask_layer_types),
    Rule(
        "window and its gates",
        (
            "sliding-without-window",
            "field-invalid",
            "window-gate-closed",
            "window-unused",
            "window-starts-too-deep",
            "window-gate-without-window",
        ),
        _ask_window,
    ),
    Rule(
        "one encoding of the window",
        ("window-conflict", "window-encodings-conflict", "window-outside-layer-config"),
        _ask_encodings,
    ),
    Rule("causality inside the block", ("causality-conflict", "causality-flattened"), _ask_causality),
)
