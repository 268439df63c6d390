"""A tiny Qwen3 with tokenizer and chat template, and an untrained DFlash drafter: as files, without torch."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

__all__ = ["write_dflash", "write_target"]

VOCAB, HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM = 300, 64, 128, 4, 2, 32
SPECIAL = ("<|pad|>", "<|im_end|>", "<|im_start|>", "<think>", "</think>", "<|mask|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
)

Config = dict[str, Any]


def write_target(directory: Path, *, seed: int = 0) -> Path:
    """Four full-attention layers of random weights."""
    tensors = _layers(4, "model.layers", np.random.default_rng(seed))
    more = np.random.default_rng(seed + 1)
    tensors["model.embed_tokens.weight"] = more.standard_normal((VOCAB, HIDDEN)).astype(np.float32)
    tensors["lm_head.weight"] = (more.standard_normal((VOCAB, HIDDEN)) / 2).astype(np.float32)
    tensors["model.norm.weight"] = np.ones(HIDDEN, np.float32)
    _write(directory, _config(4) | {"architectures": ["Qwen3ForCausalLM"]}, tensors)
    _write_tokenizer(directory)
    return directory


def write_dflash(directory: Path, *, seed: int = 2) -> Path:
    """Two layers of random weights that nobody trained: its drafts are noise."""
    chance = np.random.default_rng(seed)
    tensors = _layers(2, "layers", chance)
    tensors["fc.weight"] = (chance.standard_normal((HIDDEN, 2 * HIDDEN)) / 11).astype(np.float32)
    tensors |= {f"{name}.weight": np.ones(HIDDEN, np.float32) for name in ("hidden_norm", "norm")}
    own = {
        "architectures": ["DFlashDraftModel"],
        "block_size": 6,
        "num_target_layers": 4,
        "dflash_config": {"mask_token_id": 261, "target_layer_ids": [0, 2]},
    }
    _write(directory, _config(2) | own, tensors)
    return directory


def _config(layers: int) -> Config:
    return {
        "model_type": "qwen3", "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": None,
        "eos_token_id": 257, "dtype": "float32", "head_dim": HEAD_DIM, "hidden_act": "silu",
        "hidden_size": HIDDEN, "initializer_range": 0.02, "intermediate_size": INNER,
        "layer_types": ["full_attention"] * layers, "max_position_embeddings": 4096,
        "max_window_layers": layers, "num_attention_heads": HEADS, "num_hidden_layers": layers,
        "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "rope_scaling": None,
        "sliding_window": None, "tie_word_embeddings": False, "use_cache": True, "use_sliding_window": False,
        "vocab_size": VOCAB,
    }  # fmt: skip


def _layers(count: int, prefix: str, chance: np.random.Generator) -> dict[str, Any]:
    shapes = {
        "self_attn.q_proj": (HEADS * HEAD_DIM, HIDDEN), "self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
        "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN), "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
        "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN), "mlp.down_proj": (HIDDEN, INNER),
    }  # fmt: skip
    norms = {"input_layernorm": HIDDEN, "post_attention_layernorm": HIDDEN}
    norms |= {"self_attn.q_norm": HEAD_DIM, "self_attn.k_norm": HEAD_DIM}
    tensors: dict[str, Any] = {}
    for layer in range(count):
        for name, shape in shapes.items():
            weight = chance.standard_normal(shape) * shape[1] ** -0.5
            tensors[f"{prefix}.{layer}.{name}.weight"] = weight.astype(np.float32)
        for name, width in norms.items():
            tensors[f"{prefix}.{layer}.{name}.weight"] = np.ones(width, np.float32)
    return tensors


def _write(directory: Path, config: Config, tensors: dict[str, Any]) -> None:
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(config, indent=2), "utf-8")
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def _write_tokenizer(directory: Path) -> None:
    """Every byte is a token; the characters that stand for bytes are those of GPT-2's byte alphabet."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in own]
    letters = {byte: chr(byte) for byte in own} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    vocab = {letters[byte]: byte for byte in range(256)}
    first = 256 + len(SPECIAL)
    vocab |= {f"tok{i}": i for i in range(first, VOCAB)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": 256 + i, "content": word, **flags} for i, word in enumerate(SPECIAL)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "byte_fallback": False, "fuse_unk": False}
    document = {
        "version": "1.0", "added_tokens": added, "pre_tokenizer": level, "decoder": level, "model": model
    }  # fmt: skip
    (directory / "tokenizer.json").write_text(json.dumps(document), "utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|pad|>",
    }
    settings |= {"chat_template": TEMPLATE}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
