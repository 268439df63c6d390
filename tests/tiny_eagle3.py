"""Tiny EAGLE-3 drafters in both layouts, and the drafter's formulas by hand in 64-bit floats.

Source of the formulas: SafeAILab/EAGLE cnets.py and vLLM 0.33 llama_eagle3, restated for one chain without a
cache.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from safetensors.torch import load_file, save_file
from torch import Tensor

__all__ = ["HIDDEN", "TAPS", "VARIANTS", "HandEagle3", "write_tiny_eagle3"]

HIDDEN, VOCAB, INTERMEDIATE, HEADS, KV_HEADS, HEAD_DIM, EPS, THETA = 48, 128, 80, 4, 2, 16, 1e-6, 10000.0
TAPS = (1, 2, 3)
"""Hidden states of the tiny targets."""

VARIANTS: Mapping[str, Mapping[str, object]] = {
    "official": {"layout": "midlayer", "draft_vocab_size": 96},
    "official-full": {"layout": "midlayer", "draft_vocab_size": VOCAB, "own_embedding": True},
    "speculators": {"layout": "layers", "draft_vocab_size": 96, "norm_before_residual": True},
    "speculators-3.1": {
        "layout": "layers",
        "draft_vocab_size": 64,
        "norm_before_residual": False,
        "norm_output": True,
        "fc_norm": True,
    },
    "speculators-deep": {
        "layout": "layers",
        "draft_vocab_size": VOCAB,
        "norm_before_residual": True,
        "norm_before_fc": True,
        "num_hidden_layers": 2,
        "shares_head": True,
    },
}
"""What each tiny drafter says beside the common numbers."""

_FLAGS = ("norm_before_residual", "norm_before_fc", "norm_output", "fc_norm")


def write_tiny_eagle3(
    directory: Path, variant: str, *, seed: int = 0, changes: Mapping[str, object] | None = None
) -> None:
    """A drafter's directory with ``config.json`` and ``model.safetensors``."""
    said = {**VARIANTS[variant], **(changes or {})}
    directory.mkdir(parents=True, exist_ok=True)
    config = _official(said) if said["layout"] == "midlayer" else _speculators(said)
    (directory / "config.json").write_text(json.dumps(config, indent=2))
    save_file(_tensors(said, seed), directory / "model.safetensors", metadata={"format": "pt"})


def _layer_config(said: Mapping[str, object]) -> dict[str, object]:
    return {
        "model_type": "llama",
        "attention_bias": False,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": 1024,
        "num_attention_heads": HEADS,
        "num_hidden_layers": said.get("num_hidden_layers", 1),
        "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": EPS,
        "rope_theta": THETA,
        "vocab_size": said.get("vocab_size", VOCAB),
    }


def _official(said: Mapping[str, object]) -> dict[str, object]:
    return _layer_config(said) | {
        "architectures": ["LlamaForCausalLMEagle3"],
        "draft_vocab_size": said["draft_vocab_size"],
        "eagle_config": {
            "use_aux_hidden_state": True,
            "eagle_aux_hidden_state_layer_ids": [tap - 1 for tap in TAPS],
        },
        "tie_word_embeddings": False,
    }


def _speculators(said: Mapping[str, object]) -> dict[str, object]:
    return {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "draft_vocab_size": said["draft_vocab_size"],
        "eagle_aux_hidden_state_layer_ids": list(TAPS),
        "transformer_layer_config": _layer_config(said),
        **{flag: said[flag] for flag in _FLAGS if flag in said},
    }


class _Noise:
    """Seeded weights of a size that keeps activations near 1."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(2000 + seed)

    def matrix(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator) / math.sqrt(shape[-1])

    def norm(self, size: int) -> Tensor:
        return 1 + 0.1 * torch.randn(size, generator=self.generator)


def _tensors(said: Mapping[str, object], seed: int) -> dict[str, Tensor]:
    noise, rows = _Noise(seed), int(str(said["draft_vocab_size"]))
    vocab = int(str(said.get("vocab_size", VOCAB)))
    found = {"fc.weight": noise.matrix(HIDDEN, 3 * HIDDEN), "norm.weight": noise.norm(HIDDEN)}
    for index in range(int(str(said.get("num_hidden_layers", 1)))):
        here = "midlayer" if said["layout"] == "midlayer" else f"layers.{index}"
        found |= _layer(noise, here, HIDDEN if index else 2 * HIDDEN)
        if not index:
            found[f"{here}.hidden_norm.weight"] = noise.norm(HIDDEN)
    if said.get("norm_before_fc"):
        found["input_norm.weight"] = noise.norm(3 * HIDDEN)
    if said.get("fc_norm"):
        found |= {f"fc_norm.{tap}.weight": noise.norm(HIDDEN) for tap in range(3)}
    if said.get("own_embedding"):
        found["embed_tokens.weight"] = torch.randn(vocab, HIDDEN, generator=noise.generator)
    if not said.get("shares_head"):
        found["lm_head.weight"] = 3 * noise.matrix(rows, HIDDEN)
    if rows < vocab:
        ids = torch.randperm(vocab, generator=noise.generator)[:rows].sort().values
        found["d2t"] = ids - torch.arange(rows)
        found["t2d"] = torch.zeros(vocab, dtype=torch.bool).index_fill_(0, ids, value=True)
    return found


def _layer(noise: _Noise, here: str, inputs: int) -> dict[str, Tensor]:
    found = {
        f"{here}.{name}.weight": noise.norm(HIDDEN)
        for name in ("input_layernorm", "post_attention_layernorm")
    }
    for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
        found[f"{here}.self_attn.{name}_proj.weight"] = noise.matrix(heads * HEAD_DIM, inputs)
    found[f"{here}.self_attn.o_proj.weight"] = noise.matrix(HIDDEN, HEADS * HEAD_DIM)
    for name in ("gate", "up"):
        found[f"{here}.mlp.{name}_proj.weight"] = noise.matrix(INTERMEDIATE, HIDDEN)
    found[f"{here}.mlp.down_proj.weight"] = noise.matrix(HIDDEN, INTERMEDIATE)
    return found


class HandEagle3:
    """The formulas over a whole chain, every run from the first token on."""

    def __init__(self, directory: Path, variant: str, target: Path) -> None:
        """Read both checkpoints by their own names."""
        self.said = VARIANTS[variant]
        tensors = load_file(directory / "model.safetensors")
        self.w = {name.replace("midlayer.", "layers.0."): t for name, t in tensors.items()}
        self.w = {name: t.double() if t.is_floating_point() else t for name, t in self.w.items()}
        trunk = load_file(target / "model.safetensors")
        self.embedding = self.w.get("embed_tokens.weight", trunk["model.embed_tokens.weight"].double())
        self.head = self.w.get("lm_head.weight", trunk["lm_head.weight"].double())

    def fused(self, states: Sequence[Tensor]) -> Tensor:
        """[T, H] from the tapped states."""
        x = torch.cat(list(states), -1)
        if "input_norm.weight" in self.w:
            x = self.norm(x, "input_norm")
        if "fc_norm.0.weight" in self.w:
            x = torch.cat([self.norm(part, f"fc_norm.{i}") for i, part in enumerate(x.chunk(3, -1))], -1)
        return x @ self.w["fc.weight"].T

    def after(self, features: Tensor, following: Sequence[int], path: Sequence[int]) -> Tensor:
        """[V] log-probabilities after a path of guesses behind the true pairs."""
        tokens = list(following)
        for token in path:
            _, handed_on = self.outputs(features, tokens)
            features, tokens = torch.cat((features, handed_on[-1:])), [*tokens, token]
        logits, _ = self.outputs(features, tokens)
        return logits[-1].log_softmax(-1)

    def outputs(self, features: Tensor, following: Sequence[int]) -> tuple[Tensor, Tensor]:
        """[T, V] logits and [T, H] features handed on, of pairs (feature i, the token after it)."""
        e = self.norm(self.embedding[torch.tensor(following)], "layers.0.input_layernorm")
        g = self.norm(features, "layers.0.hidden_norm")
        x = g if self.said.get("norm_before_residual") else features
        inputs = torch.cat((e, g), -1)
        for index in range(int(str(self.said.get("num_hidden_layers", 1)))):
            here = f"layers.{index}"
            x = x + self.attention(self.norm(x, f"{here}.input_layernorm") if index else inputs, here)
            y = self.norm(x, f"{here}.post_attention_layernorm")
            gate, up = (y @ self.w[f"{here}.mlp.{name}_proj.weight"].T for name in ("gate", "up"))
            x = x + (F.silu(gate) * up) @ self.w[f"{here}.mlp.down_proj.weight"].T
        y = self.norm(x, "norm")
        logits = y @ self.head.T
        if "d2t" in self.w:
            wide = logits.new_full((len(logits), VOCAB), -math.inf)
            wide[:, torch.arange(len(self.w["d2t"])) + self.w["d2t"]] = logits
            logits = wide
        return logits, y if self.said.get("norm_output") else x

    def norm(self, x: Tensor, name: str) -> Tensor:
        """The plain weight."""
        return x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * self.w[f"{name}.weight"]

    def attention(self, x: Tensor, here: str) -> Tensor:
        """Causal grouped attention, rotate-half at positions 0, 1, ..."""
        q, k, v = (
            (x @ self.w[f"{here}.self_attn.{name}_proj.weight"].T).view(len(x), -1, HEAD_DIM)
            for name in ("q", "k", "v")
        )
        q, k = turned(q), turned(k)
        k, v = (part.repeat_interleave(HEADS // KV_HEADS, 1) for part in (k, v))
        scores = torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(HEAD_DIM)
        later = torch.ones(len(x), len(x)).triu(1).bool()
        mixed = torch.einsum("hij,jhd->ihd", scores.masked_fill(later, -math.inf).softmax(-1), v)
        return mixed.flatten(1) @ self.w[f"{here}.self_attn.o_proj.weight"].T


def turned(heads: Tensor) -> Tensor:
    """Dimension i with dimension i + D/2, by position times frequency."""
    exponents = torch.arange(0, HEAD_DIM, 2, dtype=torch.float32) / HEAD_DIM
    angles = torch.arange(len(heads), dtype=torch.float64)[:, None] * (1.0 / THETA**exponents).double()
    cos, sin = (torch.cat((f(angles),) * 2, -1)[:, None] for f in (torch.cos, torch.sin))
    half = torch.cat((-heads[..., HEAD_DIM // 2 :], heads[..., : HEAD_DIM // 2]), -1)
    return heads * cos + half * sin
