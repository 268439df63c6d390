"""Tiny seeded DFlash drafters as checkpoints, in every layout the tests need."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

__all__ = ["native_config", "speculators_config", "tensors_of", "write_drafter"]


def native_config(num_target_layers: int = 3, **changes: Any) -> dict[str, Any]:
    """A drafter in z-lab's layout for the tiny targets: two full layers, 6 slots, two taps."""
    config: dict[str, Any] = {
        "architectures": ["DFlashDraftModel"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "block_size": 6,
        "bos_token_id": None,
        "dflash_config": {"mask_token_id": 127, "target_layer_ids": [0, 1]},
        "dtype": "float32",
        "eos_token_id": 0,
        "head_dim": 16,
        "hidden_act": "silu",
        "hidden_size": 48,
        "initializer_range": 0.02,
        "intermediate_size": 80,
        "layer_types": ["full_attention", "full_attention"],
        "max_position_embeddings": 1024,
        "max_window_layers": 2,
        "model_type": "qwen3",
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "num_target_layers": num_target_layers,
        "rms_norm_eps": 1e-6,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": 128,
    }
    inner = changes.pop("dflash_config", {})
    config["dflash_config"] |= inner
    return config | changes


def speculators_config(draft_vocab_size: int) -> dict[str, Any]:
    """The same drafter as speculators write it, its taps counted as hidden states."""
    native = native_config()
    inner = (
        "attention_bias",
        "head_dim",
        "hidden_act",
        "hidden_size",
        "intermediate_size",
        "layer_types",
        "max_position_embeddings",
        "model_type",
        "num_attention_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "rms_norm_eps",
        "vocab_size",
    )
    layer = {key: native[key] for key in inner}
    return {
        "architectures": ["DFlashDraftModel"],
        "aux_hidden_state_layer_ids": [1, 2],
        "block_size": 6,
        "draft_vocab_size": draft_vocab_size,
        "mask_token_id": 127,
        "sliding_window_non_causal": False,
        "speculators_config": {
            "algorithm": "dflash",
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 5}],
            "verifier": {"architectures": ["Qwen3ForCausalLM"], "name_or_path": None},
        },
        "speculators_model_type": "dflash",
        "speculators_version": "0.9.0",
        "transformer_layer_config": layer
        | {"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}},
    }


def tensors_of(config: Mapping[str, Any], *, seed: int = 0, num_taps: int = 2) -> dict[str, Tensor]:
    """Seeded weights in the native spelling, of a size that keeps activations near 1."""
    c = config.get("transformer_layer_config", config)
    h, i, d = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    q, kv = c["num_attention_heads"] * d, c["num_key_value_heads"] * d
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (h, num_taps * h),
        "hidden_norm.weight": (h,),
        "norm.weight": (h,),
    }
    for layer in range(c["num_hidden_layers"]):
        at = f"layers.{layer}"
        shapes |= {f"{at}.{name}.weight": (h,) for name in ("input_layernorm", "post_attention_layernorm")}
        maps = {"q_proj": (q, h), "k_proj": (kv, h), "v_proj": (kv, h), "o_proj": (h, q)}
        shapes |= {f"{at}.self_attn.{name}.weight": shape for name, shape in maps.items()}
        if c["attention_bias"]:
            shapes |= {f"{at}.self_attn.{name}.bias": shape[:1] for name, shape in maps.items()}
        shapes |= {f"{at}.self_attn.{name}.weight": (d,) for name in ("q_norm", "k_norm")}
        shapes |= {f"{at}.mlp.{name}.weight": (i, h) for name in ("gate_proj", "up_proj")}
        shapes |= {f"{at}.mlp.down_proj.weight": (h, i)}
    if "draft_vocab_size" in config and config["draft_vocab_size"] < c["vocab_size"]:
        shapes["lm_head.weight"] = (config["draft_vocab_size"], h)
    generator = torch.Generator().manual_seed(seed)
    return {name: _filled(name, shape, generator) for name, shape in shapes.items()}


def _filled(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    noise = torch.randn(shape, generator=generator)
    if name.endswith("norm.weight"):
        return 1 + 0.1 * noise
    return 0.1 * noise if name.endswith("bias") else noise / math.sqrt(shape[-1])


def write_drafter(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Path:
    """A directory with ``config.json`` and ``model.safetensors``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(dict(config), indent=2) + "\n")
    save_file(dict(tensors), folder / "model.safetensors", metadata={"format": "pt"})
    return folder
