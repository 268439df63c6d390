"""Tiny models for engines, by the standard library: configs in every dialect, weights where they are loaded.

Targets are started with dummy weights, so a config is all they need; DFlash drafters need real tensors.
"""

import array
import copy
import json
import random
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "DFLASH",
    "DRAFT",
    "EAGLE3",
    "HIDDEN",
    "HYBRID",
    "SPECULATORS",
    "TARGET",
    "changed",
    "dflash_tensors",
    "write",
]

HIDDEN, INTERMEDIATE, HEADS, KV_HEADS, HEAD_DIM, VOCAB, DEPTH = 64, 128, 2, 1, 32, 512, 8
Config = dict[str, Any]

_SHAPE: Config = {
    "attention_bias": False,
    "head_dim": HEAD_DIM,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "max_position_embeddings": 512,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "vocab_size": VOCAB,
}
TARGET: Config = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "torch_dtype": "float32",
    "num_hidden_layers": DEPTH,
    **_SHAPE,
}
DRAFT: Config = {**TARGET, "num_hidden_layers": 2}
HYBRID: Config = {
    **{key: value for key, value in _SHAPE.items() if key != "rope_theta"},
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": DEPTH,
    "layer_types": [*["linear_attention"] * 3, "full_attention"] * 2,
    "full_attention_interval": 4,
    "attn_output_gate": True,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_value_head_dim": 128,
    "mamba_ssm_dtype": "float32",
    "mtp_num_hidden_layers": 1,
    "mtp_use_dedicated_embeddings": False,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
}
"""vLLM's recurrent layers on the CPU: bfloat16 and heads of 128 only."""

DFLASH: Config = {
    **TARGET,
    "architectures": ["DFlashDraftModel"],
    "num_hidden_layers": 2,
    "num_target_layers": DEPTH,
    "block_size": 8,
    "layer_types": ["full_attention", "full_attention"],
    "dflash_config": {"mask_token_id": 3, "target_layer_ids": [1, 3, 5]},
}
EAGLE3: Config = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "torch_dtype": "float32",
    "num_hidden_layers": 1,
    "draft_vocab_size": VOCAB,
    "eagle_aux_hidden_state_layer_ids": [2, 4, 5],
    **_SHAPE,
}
_LAYERS: Config = {"model_type": "qwen3", "num_hidden_layers": 2, **_SHAPE}
SPECULATORS: Config = {
    "architectures": ["DFlashDraftModel"],
    "speculators_model_type": "dflash",
    "speculators_version": "0.9.0",
    "speculators_config": {
        "algorithm": "dflash",
        "default_proposal_method": "greedy",
        "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 7}],
        "verifier": {"name_or_path": "org/target", "architectures": ["Qwen3ForCausalLM"]},
    },
    "transformer_layer_config": _LAYERS,
    "draft_vocab_size": VOCAB,
    "block_size": 8,
    "aux_hidden_state_layer_ids": [2, 4, 6],
    "mask_token_id": 3,
}


def changed(config: Config, **values: Any) -> Config:
    """A copy with values set: ``dflash_config__mask_token_id=5`` reaches inside; None removes."""
    copied = copy.deepcopy(config)
    for name, value in values.items():
        *path, last = name.split("__")
        home = copied
        for key in path:
            home = home[key]
        if value is None:
            home.pop(last, None)
        else:
            home[last] = value
    return copied


def dflash_tensors(config: Config) -> dict[str, list[int]]:
    """Names and shapes of a native DFlash drafter's tensors."""
    taps = len(config["dflash_config"]["target_layer_ids"])
    found = {"fc.weight": [HIDDEN, taps * HIDDEN], "hidden_norm.weight": [HIDDEN], "norm.weight": [HIDDEN]}
    for index in range(config["num_hidden_layers"]):
        here = f"layers.{index}"
        found |= {
            f"{here}.{name}.weight": [HIDDEN] for name in ("input_layernorm", "post_attention_layernorm")
        }
        attention, width = f"{here}.self_attn", HEADS * HEAD_DIM
        found |= {f"{attention}.{name}.weight": [HEAD_DIM] for name in ("q_norm", "k_norm")}
        found |= {
            f"{attention}.q_proj.weight": [width, HIDDEN],
            f"{attention}.o_proj.weight": [HIDDEN, width],
        }
        found |= {f"{attention}.{name}_proj.weight": [KV_HEADS * HEAD_DIM, HIDDEN] for name in "kv"}
        found |= {f"{here}.mlp.{name}_proj.weight": [INTERMEDIATE, HIDDEN] for name in ("gate", "up")}
        found[f"{here}.mlp.down_proj.weight"] = [HIDDEN, INTERMEDIATE]
    return found


def write(folder: Path, config: Config, tensors: Mapping[str, list[int]] | None = None) -> Path:
    """A model directory; norms are ones, all else seeded noise in 32-bit floats."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    if tensors is not None:
        (folder / "model.safetensors").write_bytes(_safetensors(tensors))
    return folder


def _safetensors(tensors: Mapping[str, list[int]]) -> bytes:
    draw, header, data = random.Random(0), {}, b""  # noqa: S311 - weights need no secrecy
    for name, shape in tensors.items():
        count = 1
        for size in shape:
            count *= size
        ones = len(shape) == 1
        values = array.array("f", (1.0 if ones else draw.gauss(0, 0.05) for _ in range(count))).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode("ascii")
    return struct.pack("<Q", len(text)) + text + data
