"""config.dialects.target: what a drafter and an engine need of every target family."""

import json
from pathlib import Path
from typing import Any

import pytest

from draftproof.config.drafter import DrafterConfig
from draftproof.config.parse import parse_config
from draftproof.config.raw import parse_raw
from draftproof.config.source import ClassDefault, Derived, Unknown, Written
from draftproof.config.target import TargetConfig

CONFIGS = Path(__file__).parents[1] / "configs"
S, F, L = "sliding_attention", "full_attention", "linear_attention"
SHAPES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}


def _target(value: dict[str, Any]) -> TargetConfig:
    config = parse_config(parse_raw(json.dumps(value, indent=1).encode(), "test")).config
    assert isinstance(config, TargetConfig)
    return config


def _kinds(config: TargetConfig) -> list[str | None]:
    return [layer.kind.value for layer in config.layers]


def test_qwen36_27b_as_published() -> None:
    """Nested text_config: 48 linear and 16 full layers, gated attention, 1 + w norms, quarter rotary."""
    path = CONFIGS / "qwen3.6-27b-target.json"
    config = parse_config(parse_raw(path.read_bytes(), path.name)).config
    assert isinstance(config, TargetConfig)
    assert (config.family, config.text_pointer) == ("qwen3_5", "/text_config")
    assert _kinds(config).count(L) == 48
    assert _kinds(config)[3::4] == [F] * 16
    assert config.attn_output_gate.value is True
    assert config.norm_is_zero_centred.value is True
    assert config.rope.partial_rotary_factor.value == 0.25
    assert config.linear_attention.num_value_heads.value == 48
    assert config.vocab_size.source == Written("/text_config/vocab_size", 117)
    assert config.tie_word_embeddings.value is False


def test_flat_text_config_is_the_same_model() -> None:
    """The same fields at the top give the same description, but for the places."""
    nested = json.loads((CONFIGS / "qwen3.5-0.8b-target.json").read_text())
    flat = _target({"architectures": ["Qwen3_5ForCausalLM"], **nested["text_config"]})
    deep = _target(nested)
    assert flat.text_pointer == ""
    assert _kinds(flat) == _kinds(deep)
    assert flat.geometry.head_dim.value == deep.geometry.head_dim.value == 256


TYPES = pytest.mark.parametrize(
    ("model_type", "family"),
    [
        ("qwen2", "qwen2"),
        ("qwen3", "qwen3"),
        ("qwen3_moe", "qwen3_moe"),
        ("qwen3_next", "qwen3_next"),
        ("qwen3_5_text", "qwen3_5"),
        ("qwen3_5_moe_text", "qwen3_5_moe"),
        ("llama", "llama"),
        ("gemma2", "gemma"),
        ("gemma3_text", "gemma"),
        ("gemma4", "gemma"),
        ("gpt_oss", "gpt_oss"),
        ("deepseek_v3", "deepseek"),
    ],
)


@TYPES
def test_family_by_model_type(model_type: str, family: str) -> None:
    """The model type decides, with or without an architecture."""
    assert _target({"model_type": model_type, **SHAPES}).family == family


@TYPES
def test_bare_model_type_is_a_target_of_unknowns(model_type: str, family: str) -> None:
    """A file with nothing else is still recognised; its shapes are unknown, its layers none."""
    config = _target({"model_type": model_type})
    assert config.family == family
    assert config.layers == ()
    assert isinstance(config.layers_source, Unknown)
    assert isinstance(config.geometry.hidden_size.source, Unknown)


def test_family_by_architecture_where_the_type_is_absent() -> None:
    """The class name stands in for a missing model_type."""
    assert _target({"architectures": ["LlamaForCausalLM"], **SHAPES}).family == "llama"


def test_unknown_causal_lm_is_other_and_claims_little() -> None:
    """A causal model of an unknown family: its shapes are read, its traits unknown."""
    config = _target({"architectures": ["FooForCausalLM"], "model_type": "foo", **SHAPES})
    assert config.family == "other"
    assert isinstance(config.qk_norm.source, Unknown)
    assert isinstance(config.norm_is_zero_centred.source, Unknown)
    assert isinstance(config.rope.theta.source, Unknown)


def test_llama3_scaling_is_kept_whole() -> None:
    """The llama3 rope's four parameters, and head_dim as the quotient."""
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    config = _target({"model_type": "llama", **SHAPES, "rope_theta": 500000.0, "rope_scaling": scaling})
    assert config.rope.type.value == "llama3"
    assert config.rope.theta.value == 500000.0
    assert config.rope.scaling.value == {k: v for k, v in scaling.items() if k != "rope_type"}
    assert config.geometry.head_dim.value == 16
    assert isinstance(config.geometry.head_dim.source, Derived)
    assert _kinds(config) == [F] * 4


def test_llama_without_kv_heads_has_as_many_as_heads() -> None:
    """Llama 2 files leave num_key_value_heads out."""
    shapes = {key: value for key, value in SHAPES.items() if key != "num_key_value_heads"}
    assert _target({"model_type": "llama", **shapes}).geometry.num_key_value_heads.value == 4


def test_qwen2_has_biases_on_queries_keys_and_values_only() -> None:
    """No field says so: the class does."""
    config = _target({"model_type": "qwen2", **SHAPES})
    assert (config.qkv_bias.value, config.output_bias.value) == (True, False)
    assert config.qk_norm.value is False


def test_qwen3_normalises_queries_and_keys() -> None:
    """Qwen3: head_dim 128 where absent, norms per head, no bias."""
    config = _target({"model_type": "qwen3", **SHAPES})
    assert config.geometry.head_dim.value == 128
    assert isinstance(config.geometry.head_dim.source, ClassDefault)
    assert config.qk_norm.value is True
    assert config.qkv_bias.value is False
    assert config.norm_is_zero_centred.value is False


def test_qwen3_moe_experts() -> None:
    """Experts at their own places; dense models have none."""
    config = _target(
        {
            "model_type": "qwen3_moe",
            **SHAPES,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
        }
    )
    assert (config.experts.num_experts.value, config.experts.moe_intermediate_size.value) == (8, 32)
    dense = _target({"model_type": "qwen3", **SHAPES})
    assert isinstance(dense.experts.num_experts.source, Unknown)


@pytest.mark.parametrize(("interval", "kinds"), [(..., [L, L, L, F]), (2, [L, F, L, F])])
def test_hybrid_without_layer_types_follows_the_interval(interval: Any, kinds: list[str]) -> None:
    """Qwen3-Next: full attention at every fourth layer, or as full_attention_interval says."""
    value = {"model_type": "qwen3_next", **SHAPES}
    if interval is not ...:
        value["full_attention_interval"] = interval
    config = _target(value)
    assert _kinds(config) == kinds
    assert config.attn_output_gate.value is True
    assert config.rope.partial_rotary_factor.value == 0.25
    assert config.linear_attention.conv_kernel_dim.value == 4


def test_gemma2_alternates_and_caps() -> None:
    """Sliding first, then full; sqrt(hidden) on the embedding; soft caps kept."""
    config = _target({"model_type": "gemma2", **SHAPES, "final_logit_softcapping": 30.0})
    assert _kinds(config) == [S, F, S, F]
    assert config.layers[0].window.value == 4096
    assert config.extras["embedding_scale"].value == 8.0
    assert config.extras["final_logit_softcapping"].value == 30.0
    assert config.tie_word_embeddings.value is True
    assert config.geometry.hidden_act.value == "gelu_pytorch_tanh"
    assert config.norm_is_zero_centred.value is True


def test_gemma3_nested_has_one_full_layer_in_six() -> None:
    """Multimodal Gemma 3: text_config, five sliding layers to one full."""
    config = _target(
        {
            "architectures": ["Gemma3ForConditionalGeneration"],
            "model_type": "gemma3",
            "text_config": {
                "model_type": "gemma3_text",
                **SHAPES,
                "num_hidden_layers": 7,
                "sliding_window": 512,
            },
        }
    )
    assert _kinds(config) == [S, S, S, S, S, F, S]
    assert config.layers[0].window.source == Written("/text_config/sliding_window", 14)
    assert config.rope.theta.value == 1000000.0


def test_gemma4_has_a_rope_for_each_kind_of_layer() -> None:
    """rope_parameters by kind: the full layers' rope is the rope, the sliding layers' an extra."""
    config = _target(
        {
            "model_type": "gemma4_text",
            **SHAPES,
            "layer_types": [S, S, S, F],
            "rope_parameters": {
                "full_attention": {
                    "rope_theta": 1e6,
                    "rope_type": "proportional",
                    "partial_rotary_factor": 0.25,
                },
                "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"},
            },
        }
    )
    assert (config.rope.theta.value, config.rope.type.value) == (1e6, "proportional")
    assert config.rope.partial_rotary_factor.value == 0.25
    assert config.layers[0].window.value == 512
    assert config.geometry.head_dim.value == 256
    assert config.extras["rope_sliding_attention"].value == {"rope_theta": 1e4, "rope_type": "default"}


def test_gemma4_and_gpt_oss_without_rope_have_their_class_rope() -> None:
    """Both classes fill in a rope that is not the plain one."""
    gemma, oss = (_target({"model_type": name, **SHAPES}).rope for name in ("gemma4_text", "gpt_oss"))
    assert (gemma.type.value, gemma.theta.value, gemma.partial_rotary_factor.value) == (
        "proportional",
        1e6,
        0.25,
    )
    assert (oss.type.value, oss.theta.value) == ("yarn", 150000.0)
    assert isinstance(oss.type.source, ClassDefault)


def test_gpt_oss_alternates_with_biases_and_yarn() -> None:
    """Sliding first, window 128, biases everywhere, experts under their local names."""
    config = _target(
        {
            "architectures": ["GptOssForCausalLM"],
            "model_type": "gpt_oss",
            **SHAPES,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "rope_scaling": {"rope_type": "yarn", "factor": 32.0},
        }
    )
    assert _kinds(config) == [S, F, S, F]
    assert config.layers[0].window.value == 128
    assert (config.qkv_bias.value, config.output_bias.value) == (True, True)
    assert config.experts.num_experts.value == 4
    assert config.rope.type.value == "yarn"


def test_deepseek_keeps_its_latent_attention() -> None:
    """Low-rank sizes and routing are extras; shared experts are counted in width."""
    config = _target(
        {
            "architectures": ["DeepseekV3ForCausalLM"],
            "model_type": "deepseek_v3",
            **SHAPES,
            "kv_lora_rank": 512,
            "n_routed_experts": 256,
            "num_experts_per_tok": 8,
            "n_shared_experts": 2,
            "moe_intermediate_size": 32,
            "num_nextn_predict_layers": 1,
        }
    )
    assert config.extras["kv_lora_rank"].value == 512
    assert config.experts.shared_expert_intermediate_size.value == 64
    assert config.mtp is not None


def test_mistral_slides_everywhere_if_it_has_a_window() -> None:
    """A sliding_window without layer_types means all layers; null means none."""
    assert _kinds(_target({"model_type": "mistral", **SHAPES, "sliding_window": 8})) == [S] * 4
    assert _kinds(_target({"model_type": "mistral", **SHAPES, "sliding_window": None})) == [F] * 4


def test_outer_tie_flag_decides() -> None:
    """A multimodal file may say it twice; the outer one builds the model."""
    text = {"model_type": "qwen3_5_text", **SHAPES, "tie_word_embeddings": False}
    config = _target({"model_type": "qwen3_5", "text_config": text, "tie_word_embeddings": True})
    assert config.tie_word_embeddings.value is True


def test_a_target_with_a_draft_vocabulary_is_no_target() -> None:
    """draft_vocab_size belongs to drafters."""
    config = parse_config(parse_raw(json.dumps({"draft_vocab_size": 5, **SHAPES}).encode(), "test")).config
    assert isinstance(config, DrafterConfig)


def test_nothing_is_filled_in_for_a_family_that_is_not_known() -> None:
    """GLM rotates half of a head in pairs of neighbours: a default of other classes would be false."""
    rope = _target(SHAPES | {"architectures": ["GlmForCausalLM"], "model_type": "glm"}).rope
    assert isinstance(rope.partial_rotary_factor.source, Unknown)
    assert isinstance(rope.is_neox.source, Unknown)
    assert _target(SHAPES | {"model_type": "deepseek_v3"}).rope.is_neox.value is False
    assert _target(SHAPES | {"model_type": "qwen2"}).rope.is_neox.value is True


@pytest.mark.parametrize("key", ["sliding_window", "attn_type_list", "mamba_d_state", "full_attn_idxs"])
def test_a_hint_of_other_layers_is_no_stack_of_full_ones(key: str) -> None:
    """Where an unknown family says that some layers differ, which ones is not known; where not, none do."""
    value = SHAPES | {"architectures": ["SomeForCausalLM"], "model_type": "some"}
    assert _kinds(_target(value | {key: 8})) == [None] * 4
    assert _kinds(_target(value)) == [F] * 4


@pytest.mark.parametrize("interval", [0, -4])
def test_an_interval_that_is_none_gives_no_pattern(interval: int) -> None:
    """Full attention at every 0th layer is no pattern, and not the class's usual one."""
    value = SHAPES | {"model_type": "qwen3_5_text", "full_attention_interval": interval}
    assert _kinds(_target(value)) == [None] * 4


def test_a_kind_that_is_not_known_may_have_a_window() -> None:
    """A chunked layer sees a chunk: that it has no window is not said."""
    layer = _target(SHAPES | {"model_type": "llama", "layer_types": ["chunked_attention"] * 4}).layers[0]
    assert isinstance(layer.window.source, Unknown)


def test_a_head_of_minus_one_layers_is_none_with_its_reason() -> None:
    """No head, and no pointer that would pass -1 off as null; a target without layers has no last state."""
    head = _target(SHAPES | {"model_type": "qwen3_5_text", "mtp_num_hidden_layers": -1})
    assert head.mtp is None
    assert isinstance(head.mtp_layers.source, Unknown)
    none = _target(
        SHAPES | {"model_type": "qwen3_5_text", "mtp_num_hidden_layers": 1, "num_hidden_layers": 0}
    )
    assert none.mtp is not None
    assert none.mtp.drafter.taps.hidden_indexes.value is None
