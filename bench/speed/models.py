"""The four models of the comparison as checkpoints that every engine reads: same files, same weights.

Three are seeded noise, written by transformers itself. SmolLM2-135M-Instruct comes out of a GGUF file: the
numbers its 4-bit blocks stand for, in bfloat16, become a Llama checkpoint for the engines that read no GGUF.
Heads of 64, and of 128 in recurrent layers, are what vLLM's kernels for a CPU take (32 it refuses).
"""

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from draftproof.models.gguf.file import GgufFile
from draftproof.models.gguf.shape import heads_are_paired, read_gguf_shape

__all__ = ["CONTEXT", "MODELS", "rows_in_halves", "write_model"]

CONTEXT = 32768
"""Positions of the seeded models: room for the longest context of the growth curve."""

_TINY: Mapping[str, Any] = {
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 4096,
    "max_position_embeddings": CONTEXT,
    "tie_word_embeddings": True,
}
_TINY_DELTA: Mapping[str, Any] = {
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 2,
}
_HUNDRED: Mapping[str, Any] = {
    "hidden_size": 768,
    "intermediate_size": 1792,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": 32000,
    "max_position_embeddings": CONTEXT,
    "tie_word_embeddings": True,
    "linear_num_key_heads": 3,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 3,
}

MODELS = ("hybrid-tiny", "dense-tiny", "hybrid-100m", "smollm2-135m")
"""In the order they are measured."""


def write_model(folder: Path, name: str, gguf: Callable[[], Path]) -> Path:
    """One of ``MODELS`` as a directory.

    Args:
        folder: where its directory is made, once; one that is there is taken as it is.
        name: which.
        gguf: finds the SmolLM2 file, for that model alone.
    """
    path = folder / name
    if (path / "config.json").exists():
        return path
    peer: Any = import_module("transformers")
    torch.manual_seed(0)
    if name == "dense-tiny":
        peer.Qwen3ForCausalLM(peer.Qwen3Config(**_TINY)).save_pretrained(path)
    elif name == "smollm2-135m":
        _write_llama(path, GgufFile(gguf()), peer)
    else:
        config = {**_TINY, **_TINY_DELTA} if name == "hybrid-tiny" else _HUNDRED
        peer.Qwen3_5ForCausalLM(peer.Qwen3_5TextConfig(**config)).save_pretrained(path)
    return path


def _write_llama(path: Path, file: GgufFile, peer: Any) -> None:
    """Tensors of a GGUF file under transformers' names and in its order of rows, in bfloat16."""
    shape = read_gguf_shape(file)
    heads = shape.attention
    config = peer.LlamaConfig(
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=len(shape.layers),
        num_attention_heads=heads.num_heads,
        num_key_value_heads=heads.num_kv_heads,
        head_dim=heads.head_dim,
        vocab_size=shape.vocab_size,
        max_position_embeddings=shape.max_length,
        rms_norm_eps=shape.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope.theta},
        tie_word_embeddings=shape.is_tied,
        dtype="bfloat16",
    )
    config.architectures = ["LlamaForCausalLM"]
    tensors = {}
    for name in file.shapes():
        tensor = file.read(name)
        if heads_are_paired(file) and name.endswith(("q_proj.weight", "k_proj.weight")):
            tensor = rows_in_halves(tensor, heads.head_dim)
        tensors[name] = tensor.to(torch.bfloat16).contiguous()
    path.mkdir(parents=True)
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    (path / "config.json").write_text(json.dumps(config.to_diff_dict(), indent=1, default=str) + "\n")


def rows_in_halves(tensor: Tensor, head_dim: int) -> Tensor:
    """Rows of heads whose rotating partners lie side by side, to partners half a head apart."""
    paired = tensor.view(-1, head_dim // 2, 2, *tensor.shape[1:])
    return paired.transpose(1, 2).reshape(tensor.shape)
