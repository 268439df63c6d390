"""Two tiny seeded targets as real checkpoints, for proofs that must run anywhere: one dense, one hybrid.

Nobody trained them; what they write is noise, but it is always the same noise, and every layer kind of the
large models is in them.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch
from safetensors.torch import save_file
from torch import Tensor

from draftproof.config.parse import parse_config
from draftproof.config.raw import read_raw
from draftproof.errors import UsageError
from draftproof.models.target.parameters import Piece, bill_of
from draftproof.models.target.reading import read_shape

__all__ = ["TINY", "write_tiny_target"]

_COMMON: Mapping[str, object] = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": None,
    "dtype": "float32",
    "eos_token_id": 0,
    "hidden_act": "silu",
    "hidden_size": 48,
    "initializer_range": 0.02,
    "intermediate_size": 96,
    "max_position_embeddings": 1024,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "use_cache": True,
    "vocab_size": 128,
}

TINY: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "dense": {
            **_COMMON,
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "head_dim": 16,
            "layer_types": ["full_attention"] * 3,
            "num_hidden_layers": 3,
            "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        },
        "hybrid": {
            **_COMMON,
            "architectures": ["Qwen3_5ForCausalLM"],
            "model_type": "qwen3_5_text",
            "attn_output_gate": True,
            "full_attention_interval": 4,
            "head_dim": 16,
            "layer_types": ["linear_attention"] * 3 + ["full_attention"],
            "linear_conv_kernel_dim": 4,
            "linear_key_head_dim": 16,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_value_head_dim": 16,
            "mamba_ssm_dtype": "float32",
            "num_hidden_layers": 4,
            "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": 0.5},
        },
    }
)
"""The config of each."""


def write_tiny_target(
    directory: Path, kind: str, *, seed: int = 0, config: Mapping[str, object] | None = None
) -> None:
    """A checkpoint directory with ``config.json`` and ``model.safetensors``.

    Args:
        directory: made if it is not there.
        kind: ``dense`` or ``hybrid``.
        seed: of the weights.
        config: another config of this kind, for a larger target of the same making.

    Raises:
        UsageError: there is no such kind.
    """
    if kind not in TINY:
        raise UsageError(
            "kind",
            expected=" or ".join(TINY),
            found=repr(kind),
            where="tiny targets",
            means="there is no such model to write",
            next_step="name one of them",
        )
    directory.mkdir(parents=True, exist_ok=True)
    written = directory / "config.json"
    written.write_text(json.dumps(dict(config or TINY[kind]), indent=2) + "\n", encoding="ascii")
    shape = read_shape(parse_config(read_raw(written)), str(written))
    generator = torch.Generator().manual_seed(seed)
    pieces = bill_of(shape, "model.").pieces
    tensors = {
        name: _filled(piece, generator, norm_centre=0.0 if shape.norm_is_zero_centred else 1.0)
        for name, piece in sorted(pieces.items())
    }
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def _filled(piece: Piece, generator: torch.Generator, *, norm_centre: float) -> Tensor:
    """Noise of a size that keeps activations near 1, so that no layer is idle."""
    noise = torch.randn(piece.shape, generator=generator)
    name = piece.name.removesuffix(".weight")
    if name.endswith("linear_attn.norm"):
        return 1.0 + 0.1 * noise
    if name.endswith("norm"):
        return norm_centre + 0.1 * noise
    if name.endswith("A_log"):
        return 0.5 * noise
    if name.endswith(("dt_bias", "embed_tokens")):
        return noise
    return noise / math.sqrt(math.prod(piece.shape[1:]))
