"""What a library's config class fills in where a file is silent: data, each table with its source.

Source: the constructors of the named classes in the named versions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = [
    "LLAMA",
    "QWEN2",
    "QWEN3",
    "SPECULATORS",
    "SPECULATORS_LAYER_CLASSES",
    "ClassDefaults",
    "layer_class",
]

Scalar = int | float | bool | str


@dataclass(frozen=True, slots=True)
class ClassDefaults:
    """The defaults of one config class."""

    library: str
    """Shown to people: library, versions, class."""

    values: Mapping[str, Scalar]
    head_dim_is_quotient: bool = False
    """An absent ``head_dim`` is hidden_size / num_attention_heads."""

    kv_heads_are_heads: bool = False
    """An absent ``num_key_value_heads`` is num_attention_heads."""

    has_window_gate: bool = False
    """The class knows ``use_sliding_window`` and ``max_window_layers`` (the Qwen classes)."""


_EVERY: dict[str, Scalar] = {"hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0}
_UNBIASED: dict[str, Scalar] = {"attention_bias": False, "tie_word_embeddings": False}
_GATE: dict[str, Scalar] = {
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "max_position_embeddings": 32768,
}
_GDN: dict[str, Scalar] = {
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "full_attention_interval": 4,
    "partial_rotary_factor": 0.25,
    "head_dim": 256,
    "max_position_embeddings": 32768,
}


def _library(name: str) -> str:
    return f"transformers 4.57.6 and 5.24.0 {name}"


def _shapes(vocab: int, hidden: int, intermediate: int, layers: int, heads: int) -> dict[str, Scalar]:
    return {
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
    }


QWEN3 = ClassDefaults(
    _library("Qwen3Config"),
    MappingProxyType(
        _EVERY
        | _UNBIASED
        | _GATE
        | _shapes(151936, 4096, 22016, 32, 32)
        | {"num_key_value_heads": 32, "head_dim": 128}
    ),
    has_window_gate=True,
)

QWEN2 = ClassDefaults(
    _library("Qwen2Config"),
    MappingProxyType(
        _EVERY
        | _GATE
        | _shapes(151936, 4096, 22016, 32, 32)
        | {"num_key_value_heads": 32, "tie_word_embeddings": False}
    ),
    head_dim_is_quotient=True,
    has_window_gate=True,
)

LLAMA = ClassDefaults(
    _library("LlamaConfig"),
    MappingProxyType(
        _EVERY
        | _UNBIASED
        | _shapes(32000, 4096, 11008, 32, 32)
        | {"max_position_embeddings": 2048, "mlp_bias": False}
    ),
    head_dim_is_quotient=True,
    kv_heads_are_heads=True,
)

_QWEN3_MOE = ClassDefaults(
    _library("Qwen3MoeConfig"),
    MappingProxyType(_EVERY | _UNBIASED | _GATE),
    head_dim_is_quotient=True,
    has_window_gate=True,
)
_QWEN3_NEXT = ClassDefaults(_library("Qwen3NextConfig"), MappingProxyType(_EVERY | _UNBIASED | _GDN))
_QWEN3_5 = ClassDefaults("transformers 5.24.0 Qwen3_5TextConfig", MappingProxyType(_EVERY | _UNBIASED | _GDN))
_QWEN3_5_MOE = ClassDefaults(
    "transformers 5.24.0 Qwen3_5MoeTextConfig", MappingProxyType(_EVERY | _UNBIASED | _GDN)
)
_MISTRAL = ClassDefaults(
    _library("MistralConfig"),
    MappingProxyType(_EVERY | {"tie_word_embeddings": False, "max_position_embeddings": 131072}),
    head_dim_is_quotient=True,
)
_GEMMA: dict[str, Scalar] = {
    "hidden_act": "gelu_pytorch_tanh",
    "attention_bias": False,
    "tie_word_embeddings": True,
    "head_dim": 256,
}
_GEMMA2 = ClassDefaults(
    _library("Gemma2Config"),
    MappingProxyType(
        _EVERY
        | _GEMMA
        | {
            "sliding_window": 4096,
            "max_position_embeddings": 8192,
            "final_logit_softcapping": 30.0,
            "attn_logit_softcapping": 50.0,
        }
    ),
)
_GEMMA3 = ClassDefaults(
    _library("Gemma3TextConfig"),
    MappingProxyType(
        _EVERY
        | _GEMMA
        | {
            "rope_theta": 1000000.0,
            "rope_local_base_freq": 10000.0,
            "sliding_window": 4096,
            "sliding_window_pattern": 6,
            "max_position_embeddings": 131072,
        }
    ),
)
_GEMMA4 = ClassDefaults(
    "transformers 5.24.0 Gemma4TextConfig",
    MappingProxyType(
        _GEMMA
        | {
            "rms_norm_eps": 1e-6,
            "rope_theta": 1000000.0,
            "rope_type": "proportional",
            "partial_rotary_factor": 0.25,
            "sliding_window": 512,
            "sliding_window_pattern": 6,
            "max_position_embeddings": 131072,
        }
    ),
)
_GPT_OSS = ClassDefaults(
    _library("GptOssConfig"),
    MappingProxyType(
        {
            "hidden_act": "silu",
            "rms_norm_eps": 1e-5,
            "rope_theta": 150000.0,
            "rope_type": "yarn",
            "head_dim": 64,
            "sliding_window": 128,
            "max_position_embeddings": 131072,
            "attention_bias": True,
            "tie_word_embeddings": False,
        }
    ),
)
_DEEPSEEK = ClassDefaults(
    _library("DeepseekV3Config"),
    MappingProxyType(_EVERY | _UNBIASED | {"max_position_embeddings": 4096}),
    head_dim_is_quotient=True,
)

SPECULATORS = "speculators 0.9.0"
"""The library whose checkpoints carry ``speculators_model_type``."""

SPECULATORS_LAYER_CLASSES: Mapping[str, ClassDefaults] = MappingProxyType(
    {"dflash": QWEN3, "dflash2": QWEN3, "dspark": QWEN3, "eagle3": LLAMA, "peagle": LLAMA, "mtp": QWEN2}
)
"""The class of ``transformer_layer_config`` where its ``model_type`` is absent."""

_BY_MODEL_TYPE: Mapping[str, ClassDefaults] = MappingProxyType(
    {
        "qwen2": QWEN2,
        "qwen3": QWEN3,
        "qwen3_moe": _QWEN3_MOE,
        "qwen3_next": _QWEN3_NEXT,
        "qwen3_5": _QWEN3_5,
        "qwen3_5_text": _QWEN3_5,
        "qwen3_5_moe": _QWEN3_5_MOE,
        "qwen3_5_moe_text": _QWEN3_5_MOE,
        "llama": LLAMA,
        "mistral": _MISTRAL,
        "gemma2": _GEMMA2,
        "gemma3": _GEMMA3,
        "gemma3_text": _GEMMA3,
        "gemma4": _GEMMA4,
        "gemma4_text": _GEMMA4,
        "gpt_oss": _GPT_OSS,
        "deepseek_v3": _DEEPSEEK,
    }
)


def layer_class(model_type: str | None) -> ClassDefaults | None:
    """The defaults of the class that a ``model_type`` names; None where no table is kept here."""
    return None if model_type is None else _BY_MODEL_TYPE.get(model_type)
