"""The config a trained drafter ships with, in its native layout; its shape is read from it."""

from draftproof.config.raw import JsonValue
from draftproof.models.target.shape import DecoderShape
from draftproof.names import LayerId, hidden_index
from draftproof.training.drafters.recipe import DflashSize, Eagle3Size

__all__ = ["dflash_config", "eagle3_config"]


def dflash_config(size: DflashSize, target: DecoderShape, num_layers: int) -> dict[str, JsonValue]:
    """A DFlash drafter as z-lab writes it."""
    is_sliding = "sliding_attention" in size.layer_types
    return {
        "architectures": ["DFlashDraftModel"],
        **_common(size, target),
        "block_size": size.block_size,
        "dflash_config": {
            "mask_token_id": size.mask_token_id,
            "target_layer_ids": list(size.target_layer_ids),
        },
        "layer_types": list(size.layer_types),
        "max_window_layers": len(size.layer_types),
        "model_type": "qwen3",
        "num_hidden_layers": len(size.layer_types),
        "num_target_layers": num_layers,
        "sliding_window": size.sliding_window if is_sliding else None,
        "use_sliding_window": is_sliding,
    }


def eagle3_config(size: Eagle3Size, target: DecoderShape) -> dict[str, JsonValue]:
    """An EAGLE-3 drafter as SpecForge writes it; its taps in both numberings, for each engine reads one."""
    ids: list[JsonValue] = list(size.target_layer_ids)
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        **_common(size, target),
        "draft_vocab_size": size.draft_vocab_size,
        "eagle_aux_hidden_state_layer_ids": [hidden_index(LayerId(one)) for one in size.target_layer_ids],
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": ids},
        "model_type": "llama",
        "num_hidden_layers": 1,
    }


def _common(size: DflashSize | Eagle3Size, target: DecoderShape) -> dict[str, JsonValue]:
    return {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "dtype": "float32",
        "eos_token_id": None,
        "head_dim": size.head_dim,
        "hidden_act": "silu",
        "hidden_size": target.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": size.intermediate_size,
        "max_position_embeddings": target.max_length,
        "num_attention_heads": size.num_attention_heads,
        "num_key_value_heads": size.num_key_value_heads,
        "rms_norm_eps": target.norm_eps,
        "rope_scaling": None,
        "rope_theta": size.rope_theta,
        "tie_word_embeddings": False,
        "use_cache": True,
        "vocab_size": target.vocab_size,
    }
