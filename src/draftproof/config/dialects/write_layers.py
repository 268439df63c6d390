"""The parts that both formats write alike: shapes, layers, rope."""

from collections.abc import Mapping

from draftproof.config.dialects.attention import SLIDING
from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.raw import JsonValue
from draftproof.config.source import Sourced, Written

__all__ = ["has_modern_rope", "known", "layer_fields", "list_of"]

_QWEN_LAYERS = (Method.DFLASH, Method.DFLASH2, Method.DSPARK, Method.DOMINO)


def known(fields: Mapping[str, Sourced[JsonValue]]) -> dict[str, JsonValue]:
    """Those fields that have a value, or a null that is written."""
    return {key: said.value for key, said in fields.items() if said.value is not None or said.is_written}


def list_of(values: tuple[int | None, ...]) -> list[JsonValue]:
    """A JSON list."""
    return list(values)


def layer_fields(config: DrafterConfig) -> dict[str, JsonValue]:
    """The drafter's layers as a whole Hugging Face object: nothing is left to a class default."""
    block = config.method.value in _QWEN_LAYERS
    geometry = config.geometry
    fields: dict[str, JsonValue] = {"model_type": "qwen3" if block else "llama"}
    fields |= {
        key: value
        for key, value in (
            ("hidden_size", geometry.hidden_size.value),
            ("intermediate_size", geometry.intermediate_size.value),
            ("num_hidden_layers", geometry.num_hidden_layers.value),
            ("num_attention_heads", geometry.num_attention_heads.value),
            ("num_key_value_heads", geometry.num_key_value_heads.value),
            ("head_dim", geometry.head_dim.value),
            ("attention_bias", geometry.attention_bias.value),
            ("hidden_act", geometry.hidden_act.value),
            ("rms_norm_eps", geometry.rms_norm_eps.value),
            ("max_position_embeddings", geometry.max_position_embeddings.value),
            ("vocab_size", config.vocab_size.value),
        )
        if value is not None
    }
    return fields | _attention(config) | _rope(config)


def _attention(config: DrafterConfig) -> dict[str, JsonValue]:
    """Explicit layer_types, and the gate that lets transformers keep the window."""
    kinds = [layer.kind.value for layer in config.layers]
    if not kinds or None in kinds:
        return {}
    listed = {"layer_types": list[JsonValue](kinds)}
    kept = {
        key: config.extras[key].value
        for key in ("max_window_layers", "use_sliding_window", "sliding_window")
        if key in config.extras
    }
    if SLIDING not in kinds:
        return listed | kept
    window = next(layer.window for layer in config.layers if layer.kind.value == SLIDING)
    return listed | kept | {"use_sliding_window": True, "sliding_window": window.value}


def has_modern_rope(config: DrafterConfig) -> bool:
    """Whether the file writes its rope as transformers 5 does; such files put block_size inside, too."""
    source = config.rope.theta.source
    return isinstance(source, Written) and "/rope_parameters" in source.pointer


def _rope(config: DrafterConfig) -> dict[str, JsonValue]:
    """In the style the file itself uses: 5.x where it has rope_parameters, the flat 4.x keys otherwise."""
    rope = config.rope
    modern = has_modern_rope(config)
    scaled = dict(rope.scaling.value) if rope.scaling.value is not None else {}
    partial = {}
    if rope.partial_rotary_factor.is_written:
        partial = {"partial_rotary_factor": rope.partial_rotary_factor.value}
    neox = {"rope_is_neox_style": rope.is_neox.value} if rope.is_neox.is_written else {}
    theta = {} if rope.theta.value is None else {"rope_theta": rope.theta.value}
    if modern:
        return {"rope_parameters": {**theta, "rope_type": rope.type.value, **partial, **scaled}, **neox}
    unscaled = rope.type.value in (None, "default") and not scaled
    scaling: JsonValue = None if unscaled else {"rope_type": rope.type.value, **scaled}
    return {**theta, "rope_scaling": scaling, **partial, **neox}
