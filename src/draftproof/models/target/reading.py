"""TargetConfig to DecoderShape: every field the forward pass needs, or an error with all that are missing."""

from collections.abc import Mapping

from draftproof.config.parse import Parsed
from draftproof.config.raw import JsonValue
from draftproof.config.target import TargetConfig, TargetLayer
from draftproof.errors import RefusedInput
from draftproof.models.target.needs import Needs
from draftproof.models.target.reading_rope import read_rope
from draftproof.models.target.shape import AttentionShape, DecoderShape, DeltaShape, LayerShape

__all__ = ["FAMILIES", "read_shape"]

FAMILIES = ("qwen2", "qwen3", "llama", "qwen3_5")
"""Families whose forward pass is built here."""

_OUTSIDE_TEXT = frozenset(
    {
        "/vision_config",
        "/image_token_id",
        "/video_token_id",
        "/vision_token_id",
        "/vision_start_token_id",
        "/vision_end_token_id",
        "/hidden_size",
    }
)
"""Unparsed keys beside ``text_config``: of the vision tower, which text never enters, or copies."""

_HARMLESS: Mapping[str, tuple[JsonValue, ...] | None] = {
    "max_window_layers": None,  # spent on the kinds of the layers
    "sliding_window": None,  # the same
    "use_sliding_window": None,  # the same
    "full_attention_interval": None,  # the same
    "mrope_section": None,  # the three position rows of text are equal, so the sections change nothing
    "mtp_use_dedicated_embeddings": None,  # the MTP head is a drafter
    "mlp_only_layers": ([], None),
    "output_gate_type": ("swish", "silu"),  # DeltaNet's gated norm multiplies by silu(z)
    "language_model_only": None,
    "attention_multiplier": (None,),
    "attn_logit_softcapping": (None,),
    "final_logit_softcapping": (None,),
    "embedding_multiplier": (None, 1.0),
    "residual_multiplier": (None, 1.0),
    "logits_scaling": (None, 1.0),
    "use_bidirectional_attention": (None, False),
}
"""Extras that leave the forward pass as it is here: whatever they say (None), or only these values."""


def read_shape(parsed: Parsed, origin: str) -> DecoderShape:
    """The decoder that a config file describes.

    Raises:
        RefusedInput: the file describes no target, a family not built here, leaves out a field the forward
            pass needs, or holds a field that would change it in a way not known here.
    """
    target = parsed.config
    needs = Needs("target config", origin)
    if not isinstance(target, TargetConfig) or target.family not in FAMILIES:
        raise _unknown_family(parsed, origin)
    _refuse_unread(parsed, target, needs)
    attention = _attention(target, needs)
    layers = tuple(_layer(i, layer, needs) for i, layer in enumerate(target.layers))
    geometry = target.geometry
    if len(layers) != needs.positive("num_hidden_layers", geometry.num_hidden_layers):
        needs.complain(f"layer_types ({len(layers)} of them for num_hidden_layers)")
    if needs.value("hidden_act", geometry.hidden_act, "silu") not in {"silu", "swish"}:
        needs.complain(f"hidden_act ({geometry.hidden_act.value!r}, not silu)")
    shape = DecoderShape(
        family=target.family,
        hidden_size=needs.positive("hidden_size", geometry.hidden_size),
        intermediate_size=needs.positive("intermediate_size", geometry.intermediate_size),
        vocab_size=needs.positive("vocab_size", target.vocab_size),
        max_length=needs.positive("max_position_embeddings", geometry.max_position_embeddings),
        norm_eps=float(needs.value("rms_norm_eps", geometry.rms_norm_eps, 1.0)),
        norm_is_zero_centred=needs.value("norm_is_zero_centred", target.norm_is_zero_centred, False),
        has_mlp_bias=_mlp_bias(target),
        is_tied=needs.value("tie_word_embeddings", target.tie_word_embeddings, False),
        attention=attention,
        delta=_delta(target, needs) if any(layer.is_recurrent for layer in layers) else None,
        layers=layers,
        rope=read_rope(target.rope, attention.head_dim, needs),
        sources=(),
    )
    needs.done()
    return _with_sources(shape, needs)


def _with_sources(shape: DecoderShape, needs: Needs) -> DecoderShape:
    fields = {name: getattr(shape, name) for name in shape.__dataclass_fields__}
    return DecoderShape(**(fields | {"sources": tuple(needs.sources)}))


def _unknown_family(parsed: Parsed, origin: str) -> RefusedInput:
    config = parsed.config
    found = "a drafter, or no model at all"
    if isinstance(config, TargetConfig):
        found = (
            f"family {config.family!r}, model_type {config.model_type.value!r}, {config.architecture.value!r}"
        )
    return RefusedInput(
        "architecture",
        expected=f"a target of one of the families {', '.join(FAMILIES)}",
        found=found,
        where=origin,
        means="there is no forward pass for it here",
        next_step=f"draftproof check {origin}",
    )


def _refuse_unread(parsed: Parsed, target: TargetConfig, needs: Needs) -> None:
    for pointer in parsed.unparsed:
        if not target.text_pointer or pointer not in _OUTSIDE_TEXT:
            needs.complain(f"{pointer} (a key not known here: it may change the forward pass)")
    for problem in parsed.problems:
        needs.complain(
            f"{problem.pointer or 'the file'} ({problem.kind}: {problem.found}, not {problem.expected})"
        )
    for key, said in target.extras.items():
        if key == "mlp_bias":
            continue
        if key not in _HARMLESS or (_HARMLESS[key] is not None and said.value not in (_HARMLESS[key] or ())):
            needs.complain(f"{key} ({said.value!r}: not built into this forward pass)")
    if target.experts.num_experts.is_known:
        needs.complain(f"num_experts ({target.experts.num_experts.value!r}: only dense MLPs are built here)")


def _mlp_bias(target: TargetConfig) -> bool:
    """Llama alone has the switch; every other family here is built without these biases."""
    return "mlp_bias" in target.extras and target.extras["mlp_bias"].value is True


def _attention(target: TargetConfig, needs: Needs) -> AttentionShape:
    geometry = target.geometry
    shape = AttentionShape(
        num_heads=needs.positive("num_attention_heads", geometry.num_attention_heads),
        num_kv_heads=needs.positive("num_key_value_heads", geometry.num_key_value_heads),
        head_dim=needs.positive("head_dim", geometry.head_dim),
        has_qkv_bias=needs.value("attention_bias", target.qkv_bias, False),
        has_output_bias=needs.value("attention_bias of o_proj", target.output_bias, False),
        has_qk_norm=needs.value("qk_norm", target.qk_norm, False),
        has_gate=needs.value("attn_output_gate", target.attn_output_gate, False),
    )
    if shape.num_heads % shape.num_kv_heads:
        needs.complain(f"num_key_value_heads ({shape.num_kv_heads} does not divide {shape.num_heads} heads)")
    return shape


def _layer(index: int, layer: TargetLayer, needs: Needs) -> LayerShape:
    kind = needs.value(f"layer_types/{index}", layer.kind, "full_attention")
    if kind == "sliding_attention":
        return LayerShape(
            is_recurrent=False, window=needs.positive(f"sliding_window of layer {index}", layer.window)
        )
    if kind not in {"full_attention", "linear_attention"}:
        needs.complain(f"layer_types/{index} ({kind!r}: not built here)")
    return LayerShape(is_recurrent=kind == "linear_attention", window=None)


def _delta(target: TargetConfig, needs: Needs) -> DeltaShape:
    said = target.linear_attention
    shape = DeltaShape(
        num_key_heads=needs.positive("linear_num_key_heads", said.num_key_heads),
        num_value_heads=needs.positive("linear_num_value_heads", said.num_value_heads),
        key_dim=needs.positive("linear_key_head_dim", said.key_head_dim),
        value_dim=needs.positive("linear_value_head_dim", said.value_head_dim),
        conv_taps=needs.positive("linear_conv_kernel_dim", said.conv_kernel_dim),
    )
    if shape.num_value_heads % shape.num_key_heads:
        needs.complain(
            f"linear_num_key_heads ({shape.num_key_heads} does not divide {shape.num_value_heads})"
        )
    if needs.value("mamba_ssm_dtype", said.state_dtype, "float32") != "float32":
        needs.complain(f"mamba_ssm_dtype ({said.state_dtype.value!r}: states are kept in float32 here)")
    return shape
