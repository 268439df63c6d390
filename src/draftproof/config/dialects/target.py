"""Targets: the fields of a causal language model, flat or under ``text_config``.

Source: transformers 4.57.6 and 5.24.0 configuration and modeling files of the families named in families.py.
"""

from dataclasses import replace

from draftproof.config.defaults import ClassDefaults, layer_class
from draftproof.config.dialects.advisory import parse_advisory
from draftproof.config.dialects.attention import (
    FULL,
    LINEAR,
    SLIDING,
    gated_window,
    layer_kinds,
    layer_window,
)
from draftproof.config.dialects.families import Family, family_of
from draftproof.config.dialects.geometry import Holes, parse_geometry, parse_rope, partial_rotary
from draftproof.config.dialects.mtp import MTP_COUNT_KEYS, head_of_target
from draftproof.config.dialects.target_fields import EXTRA_KEYS
from draftproof.config.dialects.values import first_architecture
from draftproof.config.drafter import Geometry
from draftproof.config.raw import JsonValue
from draftproof.config.reader import Reader, default, derived, unknown
from draftproof.config.source import Source, Sourced, Unknown
from draftproof.config.target import Experts, LinearAttention, TargetConfig, TargetLayer

__all__ = ["parse_target", "text_reader"]

_GDN_PATTERN = "interval"
_MAX_WIDTH = 2**31
_OTHER_KINDS = (
    "sliding_window",
    "_sliding_window",
    "attention_chunk",
    "attn_type",
    "attn_layer",
    "full_attn",
    "hybrid",
    "linear_",
    "mamba",
    "ssm_",
    "conv_",
)
"""How the keys begin by which families say that some of their layers are not full attention."""


def text_reader(root: Reader) -> Reader:
    """A reader of the language model's fields: ``text_config`` where it describes one, else the top."""
    text = root.within("text_config")
    described = any(map(text.has, ("hidden_size", "num_hidden_layers", "model_type")))
    return text if described else root


def parse_target(root: Reader) -> TargetConfig:
    """The canonical target."""
    text = text_reader(root)
    family = family_of(root, text)
    model_type = text.string("model_type", absent=root.string("model_type"))
    known = layer_class(model_type.value)
    holes = Holes(known, fill_shapes=False)
    geometry = parse_geometry(text, holes)
    layers, layers_source = _layers(text, family, known, geometry)
    bias, qkv_bias, output_bias = _biases(family, geometry)
    target = TargetConfig(
        family=family.name,
        architecture=first_architecture(root),
        model_type=model_type,
        text_pointer=text.base,
        geometry=replace(geometry, attention_bias=bias),
        layers=layers,
        layers_source=layers_source,
        rope=parse_rope(
            text,
            theta_absent=holes.number(text, "rope_theta"),
            partial_absent=_partial(known),
            type_absent=_rope_type(known),
            is_neox_absent=_trait(
                family.half_split_rope,
                family,
                "rotates the two halves of a head",
                "rotates pairs of neighbours",
            ),
        ),
        vocab_size=text.integer("vocab_size", absent=_outer(root, text, "vocab_size")),
        tie_word_embeddings=_tied(root, text, holes),
        attn_output_gate=_gate(text, family),
        qkv_bias=qkv_bias,
        output_bias=output_bias,
        qk_norm=_trait(
            family.qk_norm,
            family,
            "normalises queries and keys per head",
            "leaves queries and keys as they are",
        ),
        norm_is_zero_centred=_trait(
            family.zero_centred_norm, family, "norms multiply by 1 + w", "norms multiply by w"
        ),
        linear_attention=_linear_attention(text, family, holes),
        experts=_experts(text),
        mtp_layers=_mtp_layers(root, text),
        mtp=None,
        extras=_extras(root, text, family, geometry),
        advisory=_advisory(root, text),
    )
    return _with_head(target, family, text)


def _with_head(target: TargetConfig, family: Family, text: Reader) -> TargetConfig:
    count = target.mtp_layers
    if count.value is not None and count.value < 0:
        return replace(target, mtp_layers=unknown(f"{count.value} is no number of layers"))
    if not count.value:
        return target
    dedicated = text.boolean("mtp_use_dedicated_embeddings", absent=default(False, "vLLM 0.33 qwen3_5_mtp"))
    return replace(target, mtp=head_of_target(target, dedicated, family.mtp_style))


def _mtp_layers(root: Reader, text: Reader) -> Sourced[int]:
    names = " or ".join(MTP_COUNT_KEYS)
    absent: Sourced[int] = unknown(f"no {names}: the file advertises no head (mtp.* tensors would decide)")
    outer = absent if text is root else root.integer(*MTP_COUNT_KEYS, absent=absent)
    return text.integer(*MTP_COUNT_KEYS, absent=outer)


def _outer(root: Reader, text: Reader, key: str) -> Sourced[int]:
    reason = f"the file does not say: no {text.pointer(key)}"
    return unknown(reason) if text is root else root.integer(key, absent=unknown(reason))


def _tied(root: Reader, text: Reader, holes: Holes) -> Sourced[bool]:
    """The outer flag where there is one: transformers ties by the config of the model it builds."""
    paths = (
        ("tie_word_embeddings",)
        if text is root
        else ("tie_word_embeddings", "text_config/tie_word_embeddings")
    )
    return root.boolean(*paths, absent=holes.boolean(text, "tie_word_embeddings"))


def _partial(known: ClassDefaults | None) -> Sourced[float]:
    if known is None:
        return unknown("no partial_rotary_factor, and the class that would fill it in is not known here")
    return partial_rotary(known)


def _rope_type(known: ClassDefaults | None) -> Sourced[str] | None:
    """The scaled rope that a class fills in for a file without any (gpt-oss, Gemma 4)."""
    value = known.values.get("rope_type") if known is not None else None
    return default(value, known.library) if known is not None and isinstance(value, str) else None


def _biases(family: Family, geometry: Geometry) -> tuple[Sourced[bool], Sourced[bool], Sourced[bool]]:
    said = geometry.attention_bias
    if family.qkv_bias is None:
        return said, said, said
    fixed = f"{family.name} attention: the class fixes its biases"
    qkv: Sourced[bool] = derived(family.qkv_bias, fixed)
    return (said if said.is_known else qkv), qkv, derived(family.output_bias, fixed)


def _trait(value: bool | None, family: Family, yes: str, no: str) -> Sourced[bool]:  # noqa: FBT001 - a value
    """What the family's code does and no field says, in the words for each case."""
    if value is None:
        return unknown(f"the family is not known here: whether it {yes} cannot be said")
    return derived(value, f"{family.name}: {yes if value else no}")


def _gate(text: Reader, family: Family) -> Sourced[bool]:
    if family.gated_attention is not None:
        absent = _trait(family.gated_attention, family, "gates the attention output", "has no such gate")
    elif family.layer_pattern == _GDN_PATTERN:
        absent = default(True, "transformers 5.24.0 Qwen3_5TextConfig")
    else:
        absent = unknown("the family is not known here")
    return text.boolean("attn_output_gate", absent=absent)


def _layers(
    text: Reader, family: Family, known: ClassDefaults | None, geometry: Geometry
) -> tuple[tuple[TargetLayer, ...], Source]:
    kinds = layer_kinds(text, geometry.num_hidden_layers, known)
    each, source = kinds.each, kinds.source
    if each and not kinds.is_listed:
        each = tuple(_patterned(text, family, i, kind) for i, kind in enumerate(each))
        source = each[0].source
    if known is not None and known.has_window_gate:
        window = gated_window(text, known)
    else:
        filler = known.values["sliding_window"] if known and "sliding_window" in known.values else None
        absent: Sourced[int] = unknown("the file does not say: no sliding_window")
        if isinstance(filler, int) and known is not None:
            absent = default(filler, known.library)
        window = text.integer("sliding_window", absent=absent)
    return tuple(TargetLayer(kind, layer_window(kind, window)) for kind in each), source


def _patterned(text: Reader, family: Family, index: int, gated: Sourced[str]) -> Sourced[str]:
    """The kind of layer ``index`` where the file has no layer_types."""
    pattern = family.layer_pattern
    if pattern == "window_gate":
        return gated
    if pattern in ("interval", "one_full_in"):
        return _every_nth_full(text, pattern, index)
    if pattern == "alternate":
        rule = "no layer_types: sliding and full attention alternate, sliding first"
        return derived(FULL if index % 2 else SLIDING, rule)
    if pattern == "window" and text.says("sliding_window"):
        return derived(SLIDING, "no layer_types and a sliding_window: every layer slides (Mistral)")
    written = text.keys()
    hints = [key for key in written if key.startswith(_OTHER_KINDS) and text.says(key)]
    if pattern == "unknown" and hints:
        return unknown(f"no layer_types, and how the family reads {', '.join(hints[:3])} is not known here")
    return derived(FULL, "no layer_types and no window: every layer is full attention")


def _every_nth_full(text: Reader, pattern: str, index: int) -> Sourced[str]:
    """Hybrid targets (linear attention between, 4 by default) and Gemma 3 (sliding between, 6 by default)."""
    keys: tuple[str, ...] = ("full_attention_interval",)
    filler, other = 4, LINEAR
    if pattern == "one_full_in":
        keys, filler, other = ("sliding_window_pattern", "_sliding_window_pattern"), 6, SLIDING
    every = text.integer(*keys)
    if every.value is None and text.says(*keys):
        return Sourced(None, every.source)
    if every.value is not None and every.value <= 0:
        return unknown(f"no layer_types, and {every.value} is no interval between full layers")
    step = every.value or filler
    kind = other if (index + 1) % step else FULL
    return derived(kind, f"no layer_types: full attention at every {step}th layer")


def _linear_attention(text: Reader, family: Family, holes: Holes) -> LinearAttention:
    if family.layer_pattern != _GDN_PATTERN and not text.has("linear_num_value_heads"):
        reason = "no layer of this family is linear attention"
        none: Sourced[int] = unknown(reason)
        return LinearAttention(none, none, none, none, none, unknown(reason))
    return LinearAttention(
        num_key_heads=holes.integer(text, "linear_num_key_heads"),
        num_value_heads=holes.integer(text, "linear_num_value_heads"),
        key_head_dim=holes.integer(text, "linear_key_head_dim"),
        value_head_dim=holes.integer(text, "linear_value_head_dim"),
        conv_kernel_dim=holes.integer(text, "linear_conv_kernel_dim"),
        state_dtype=text.string("mamba_ssm_dtype", absent=default("float32", "transformers 5.24.0")),
    )


def _experts(text: Reader) -> Experts:
    count = text.integer("num_experts", "num_local_experts", "n_routed_experts")
    if isinstance(count.source, Unknown) and not text.says(
        "num_experts", "num_local_experts", "n_routed_experts"
    ):
        none: Sourced[int] = unknown("a dense model: the file names no experts")
        return Experts(none, none, none, none)
    # A mixed model has both: the plain number is the width of its dense layers, not of its experts.
    width = text.integer(
        "moe_intermediate_size", "expert_intermediate_size", absent=text.integer("intermediate_size")
    )
    shared = text.integer("shared_expert_intermediate_size")
    num_shared = text.integer("n_shared_experts", "num_shared_experts")
    if shared.value is None and num_shared.value is not None and width.value is not None:
        shared = derived(num_shared.value * width.value, "n_shared_experts x moe_intermediate_size")
    return Experts(
        num_experts=count,
        num_experts_per_tok=text.integer("num_experts_per_tok", "experts_per_token", "top_k_experts"),
        moe_intermediate_size=width,
        shared_expert_intermediate_size=shared,
    )


def _extras(root: Reader, text: Reader, family: Family, geometry: Geometry) -> dict[str, Sourced[JsonValue]]:
    extras = text.collect(EXTRA_KEYS)
    for key in ("sliding_attention", "local_attention"):
        if text.has(f"rope_parameters/{key}"):
            extras[f"rope_{key}"] = text.anything(f"rope_parameters/{key}")
    if text.has("rope_parameters/mrope_section"):
        extras["mrope_section"] = text.anything("rope_parameters/mrope_section")
    width = geometry.hidden_size.value
    if family.name == "gemma" and width is not None and 0 < width <= _MAX_WIDTH:
        extras["embedding_scale"] = derived(width**0.5, "Gemma: sqrt(hidden_size)")
    return extras | root.collect(("quantization_config", "compression_config", "language_model_only"))


def _advisory(root: Reader, text: Reader) -> dict[str, Sourced[JsonValue]]:
    advisory = parse_advisory(text)
    if text is not root:
        advisory |= {f"outer.{key}": said for key, said in parse_advisory(root).items()}
    return advisory
