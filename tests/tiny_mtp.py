"""Tiny targets with a multi-token-prediction head, and the head's formulas by hand in 64-bit floats.

Source of the formulas: vLLM 0.33 qwen3_5_mtp and qwen3_next_mtp, restated for one chain without a cache.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from safetensors.torch import load_file, save_file
from torch import Tensor

from draftproof.config.parse import parse_config
from draftproof.config.raw import read_raw
from draftproof.engine.proof.tiny import TINY, write_tiny_target
from draftproof.models.mtp.load import bill_of_mtp
from draftproof.models.target.plain import run_plain
from draftproof.models.target.reading import read_shape
from draftproof.models.target.shape import DecoderShape

__all__ = ["MTP_CONFIGS", "HandMtp", "write_tiny_mtp"]

MTP_CONFIGS: Mapping[str, Mapping[str, object]] = {
    "hybrid": {**TINY["hybrid"], "mtp_num_hidden_layers": 1},
    "dense": {
        **TINY["hybrid"],
        "mtp_num_hidden_layers": 1,
        "layer_types": ["full_attention"] * 3,
        "num_hidden_layers": 3,
        "full_attention_interval": 1,
    },
}


def write_tiny_mtp(directory: Path, kind: str, *, seed: int = 0) -> None:
    """A tiny target of the Qwen3.5 family whose checkpoint carries a seeded head."""
    write_tiny_target(directory, "hybrid", config=MTP_CONFIGS[kind])
    generator = torch.Generator().manual_seed(1000 + seed)
    tensors = load_file(directory / "model.safetensors")
    for name, piece in sorted(bill_of_mtp(shape_of(directory)).pieces.items()):
        noise = torch.randn(piece.shape, generator=generator)
        tensors[name] = 0.1 * noise if "norm" in name else noise / math.sqrt(piece.shape[-1])
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def shape_of(directory: Path) -> DecoderShape:
    """The shape its config describes."""
    config = directory / "config.json"
    return read_shape(parse_config(read_raw(config)), str(config))


class HandMtp:
    """The head's formulas over a whole chain, every run from the first token on."""

    def __init__(self, directory: Path) -> None:
        """Read the checkpoint by its own names."""
        self.shape = shape_of(directory)
        tensors = load_file(directory / "model.safetensors")
        self.trunk = {name: t for name, t in tensors.items() if not name.startswith("mtp.")}
        self.w = {name.removeprefix("mtp."): t.double() for name, t in tensors.items()}

    def draft(self, tokens: Sequence[int], count: int) -> list[int]:
        """The chain of largest logits after ``tokens``, whose last one the target has not read."""
        hidden = run_plain(self.shape, self.trunk, tokens[:-1]).normed
        following = list(tokens[1:])
        drafted: list[int] = []
        while len(drafted) < count:
            y = self.outputs(hidden, following)
            token = int((y[-1] @ self.w["lm_head.weight"].T).argmax())
            drafted.append(token)
            hidden, following = torch.cat((hidden, y[-1:])), [*following, token]
        return drafted

    def outputs(self, hidden: Tensor, following: Sequence[int]) -> Tensor:
        """[T, H] after the head's norm, of pairs (row i, the token after it)."""
        embedded = self.w["model.embed_tokens.weight"][torch.tensor(following)]
        e, g = self.norm(embedded, "pre_fc_norm_embedding"), self.norm(hidden, "pre_fc_norm_hidden")
        x = torch.cat((e, g), -1) @ self.w["fc.weight"].T
        x = x + self.attention(self.norm(x, "layers.0.input_layernorm"))
        y = self.norm(x, "layers.0.post_attention_layernorm")
        gate, up = (y @ self.w[f"layers.0.mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (F.silu(gate) * up) @ self.w["layers.0.mlp.down_proj.weight"].T
        return self.norm(x, "norm")

    def norm(self, x: Tensor, name: str) -> Tensor:
        """Zero-centred: the weight is 1 + w."""
        scale = (x.square().mean(-1, keepdim=True) + self.shape.norm_eps).rsqrt()
        return x * scale * (1 + self.w[f"{name}.weight"])

    def attention(self, x: Tensor) -> Tensor:
        """Gated attention with norms on the heads and a rotation of their first dimensions."""
        a, here = self.shape.attention, "layers.0.self_attn"
        both = (x @ self.w[f"{here}.q_proj.weight"].T).view(len(x), a.num_heads, 2, a.head_dim)
        q, gate = self.turned(self.norm(both[:, :, 0], f"{here}.q_norm")), both[:, :, 1]
        k, v = (
            (x @ self.w[f"{here}.{name}_proj.weight"].T).view(len(x), a.num_kv_heads, a.head_dim)
            for name in ("k", "v")
        )
        k = self.turned(self.norm(k, f"{here}.k_norm"))
        k, v = (part.repeat_interleave(a.num_heads // a.num_kv_heads, 1) for part in (k, v))
        scores = torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(a.head_dim)
        later = torch.ones(len(x), len(x)).triu(1).bool()
        mixed = torch.einsum("hij,jhd->ihd", scores.masked_fill(later, -math.inf).softmax(-1), v)
        return (mixed * gate.sigmoid()).flatten(1) @ self.w[f"{here}.o_proj.weight"].T

    def turned(self, heads: Tensor) -> Tensor:
        """Rotate-half inside the rotary dimensions, at positions 0, 1, ..."""
        r = self.shape.rope.rotary_dim
        frequencies = 1.0 / self.shape.rope.theta ** (torch.arange(0, r, 2, dtype=torch.float32) / r)
        angles = torch.arange(len(heads), dtype=torch.float64)[:, None] * frequencies.double()
        cos, sin = (torch.cat((f(angles),) * 2, -1)[:, None] for f in (torch.cos, torch.sin))
        turning, rest = heads[..., :r], heads[..., r:]
        half = torch.cat((-turning[..., r // 2 :], turning[..., : r // 2]), -1)
        return torch.cat((turning * cos + half * sin, rest), -1)
