"""TargetConfig: the fields of a target that a drafter, or our own engine, depends on."""

from collections.abc import Mapping
from dataclasses import dataclass

from draftproof.config.drafter import DrafterConfig, Geometry, Rope
from draftproof.config.raw import JsonValue
from draftproof.config.source import Source, Sourced

__all__ = ["Experts", "LinearAttention", "MtpHead", "TargetConfig", "TargetLayer"]


@dataclass(frozen=True, slots=True)
class TargetLayer:
    """How one decoder layer mixes positions."""

    kind: Sourced[str]
    """``full_attention``, ``sliding_attention`` or ``linear_attention``."""

    window: Sourced[int]


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Gated DeltaNet shapes of a hybrid target; unknown on others."""

    num_key_heads: Sourced[int]
    num_value_heads: Sourced[int]
    key_head_dim: Sourced[int]
    value_head_dim: Sourced[int]
    conv_kernel_dim: Sourced[int]
    state_dtype: Sourced[str]


@dataclass(frozen=True, slots=True)
class Experts:
    """Mixture-of-experts shapes; unknown on dense targets."""

    num_experts: Sourced[int]
    num_experts_per_tok: Sourced[int]
    moe_intermediate_size: Sourced[int]
    shared_expert_intermediate_size: Sourced[int]


@dataclass(frozen=True, slots=True)
class MtpHead:
    """A multi-token-prediction head that the target's own checkpoint advertises."""

    style: str
    """``qwen`` (tensors ``mtp.*``) or ``deepseek`` (an extra ``model.layers.L``)."""

    num_layers: Sourced[int]
    dedicated_embeddings: Sourced[bool]
    drafter: DrafterConfig
    """The same head as a drafter: method ``mtp``, taps the last hidden state."""


@dataclass(frozen=True, slots=True)
class TargetConfig:
    """A target model as its file describes it, each value with its source."""

    family: str
    """``qwen2``, ``qwen3``, ``qwen3_moe``, ``qwen3_next``, ``qwen3_5``, ``qwen3_5_moe``, ``llama``,
    ``gemma``, ``gpt_oss``, ``deepseek`` or ``other``."""

    architecture: Sourced[str]
    model_type: Sourced[str]
    text_pointer: str
    """Where the language model's fields stand: ``""`` or ``/text_config``."""

    geometry: Geometry
    layers: tuple[TargetLayer, ...]
    layers_source: Source
    """Where the list of layers comes from, or why it is empty."""

    rope: Rope
    vocab_size: Sourced[int]
    tie_word_embeddings: Sourced[bool]
    attn_output_gate: Sourced[bool]
    """Whether ``q_proj`` also puts out a gate per head (Qwen3-Next, Qwen3.5)."""

    qkv_bias: Sourced[bool]
    """Whether ``q_proj``, ``k_proj`` and ``v_proj`` have a bias (Qwen2 always)."""

    output_bias: Sourced[bool]
    """Whether ``o_proj`` has a bias."""

    qk_norm: Sourced[bool]
    """Whether queries and keys are normalised per head (Qwen3, Gemma 3)."""

    norm_is_zero_centred: Sourced[bool]
    """Whether a norm multiplies by 1 + w (Gemma, Qwen3-Next, Qwen3.5) instead of w."""

    linear_attention: LinearAttention
    experts: Experts
    mtp_layers: Sourced[int]
    """How many MTP layers the file advertises; where ``mtp`` is None, the reason."""

    mtp: MtpHead | None
    extras: Mapping[str, Sourced[JsonValue]]
    """Further fields of this family that change its forward pass (softcapping, mrope, ...)."""

    advisory: Mapping[str, Sourced[JsonValue]]
    """Ids, dtypes and versions that do not change the forward pass."""
