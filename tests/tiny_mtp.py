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
from draftproof.models.mtp.layout import DEEPSEEK, QWEN, HeadNames
from draftproof.models.mtp.load import bill_of_mtp
from draftproof.models.target.parameters import Bill
from draftproof.models.target.plain import run_plain
from draftproof.models.target.reading import read_shape
from draftproof.models.target.shape import DecoderShape

__all__ = ["MTP_CONFIGS", "HandMtp", "bill_of_tiny", "shape_of", "write_tiny_mtp"]

_FULL: Mapping[str, object] = {
    **TINY["hybrid"],
    "layer_types": ["full_attention"] * 3,
    "num_hidden_layers": 3,
    "full_attention_interval": 1,
}
_LLAMA: Mapping[str, object] = {
    **{key: said for key, said in TINY["dense"].items() if key != "layer_types"},
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "attention_bias": True,
}
MTP_CONFIGS: Mapping[str, Mapping[str, object]] = {
    "hybrid": {**TINY["hybrid"], "mtp_num_hidden_layers": 1},
    "dense": {**_FULL, "mtp_num_hidden_layers": 1},
    "three layers": {**_FULL, "mtp_num_hidden_layers": 3},
    "deepseek": {**_LLAMA, "num_nextn_predict_layers": 1},
    "deepseek, two layers": {**_LLAMA, "num_nextn_predict_layers": 2},
}
"""Qwen's layout, and DeepSeek's with its own vocabularies."""


def write_tiny_mtp(
    directory: Path, kind: str, *, seed: int = 0, changes: Mapping[str, object] | None = None
) -> None:
    """A tiny target whose checkpoint carries a seeded head."""
    config = {**MTP_CONFIGS[kind], **(changes or {})}
    write_tiny_target(directory, "dense" if kind.startswith("deepseek") else "hybrid", config=config)
    generator = torch.Generator().manual_seed(1000 + seed)
    tensors = load_file(directory / "model.safetensors")
    for name, piece in sorted(bill_of_tiny(directory, kind).pieces.items()):
        noise = torch.randn(piece.shape, generator=generator)
        if "norm" in name:
            tensors[name] = float(kind.startswith("deepseek")) + 0.1 * noise
        else:
            tensors[name] = noise if "embed" in name else noise / math.sqrt(piece.shape[-1])
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def bill_of_tiny(directory: Path, kind: str) -> Bill:
    """The head's tensors; of DeepSeek's last layer its own vocabulary among them."""
    shape, config = shape_of(directory), MTP_CONFIGS[kind]
    if "mtp_num_hidden_layers" in config:
        count = int(str(config["mtp_num_hidden_layers"]))
        return bill_of_mtp(shape, HeadNames(QWEN, tuple(f"mtp.layers.{i}." for i in range(count))))
    count = int(str(config["num_nextn_predict_layers"]))
    names = HeadNames(DEEPSEEK, tuple(f"model.layers.{3 + i}." for i in range(count)))
    last = names.prefixes[-1]
    return bill_of_mtp(shape, names, own=[f"{last}embed_tokens.weight", f"{last}shared_head.head.weight"])


def shape_of(directory: Path) -> DecoderShape:
    """The shape its config describes."""
    config = directory / "config.json"
    return read_shape(parse_config(read_raw(config)), str(config))


class HandMtp:
    """The head's formulas over a whole chain, every run from the first token on."""

    def __init__(self, directory: Path, kind: str) -> None:
        """Read the checkpoint by its own names, DeepSeek's turned into Qwen's for each layer."""
        self.shape = shape_of(directory)
        self.is_qwen = not kind.startswith("deepseek")
        tensors = load_file(directory / "model.safetensors")
        behind = tuple(f"model.layers.{3 + i}." for i in range(2)) if not self.is_qwen else ("mtp.",)
        self.trunk = {name: t for name, t in tensors.items() if not name.startswith(behind)}
        self.layers = self.qwen(tensors) if self.is_qwen else self.deepseek(tensors)

    @staticmethod
    def qwen(tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """Shared tensors in every layer's own list."""
        w = {name.removeprefix("mtp."): t.double() for name, t in tensors.items()}
        count = len({name.split(".")[1] for name in w if name.startswith("layers.")})
        shared = {name: t for name, t in w.items() if not name.startswith("layers.")}
        shared |= {"embed": w["model.embed_tokens.weight"], "head": w["lm_head.weight"]}
        return [
            shared | {n.removeprefix(f"layers.{i}."): t for n, t in w.items() if n.startswith(f"layers.{i}.")}
            for i in range(count)
        ]

    @staticmethod
    def deepseek(tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """Each layer's own tensors; the target's vocabulary where it has none."""
        renamed = {
            "eh_proj.weight": "fc.weight",
            "enorm.weight": "pre_fc_norm_embedding.weight",
            "hnorm.weight": "pre_fc_norm_hidden.weight",
            "shared_head.norm.weight": "norm.weight",
            "embed_tokens.weight": "embed",
            "shared_head.head.weight": "head",
        }
        found = []
        for at in (3, 4):
            prefix = f"model.layers.{at}."
            own = {n.removeprefix(prefix): t.double() for n, t in tensors.items() if n.startswith(prefix)}
            if own:
                w = {renamed.get(name, name): t for name, t in own.items()}
                shared = {"embed": tensors["model.embed_tokens.weight"], "head": tensors["lm_head.weight"]}
                found.append({name: t.double() for name, t in shared.items()} | w)
        return found

    def draft(self, tokens: Sequence[int], count: int) -> list[int]:
        """The chain of largest logits after ``tokens``, whose last one the target has not read.

        Each layer runs over all rows, its tokens one further on; after the last layer what each put out for
        its guess is taken for a row of the target, and they begin anew over the longer text.
        """
        hidden, known = run_plain(self.shape, self.trunk, tokens[:-1]).normed, list(tokens)
        while len(known) - len(tokens) < count:
            rows, put_out = hidden, []
            for layer, w in enumerate(self.layers):
                rows = self.outputs(rows, known[layer + 1 :], layer)
                put_out.append(rows[-1:])
                known.append(int((rows[-1] @ w["head"].T).argmax()))
            hidden = torch.cat((hidden, *put_out))
        return known[len(tokens) :][:count]

    def outputs(self, hidden: Tensor, following: Sequence[int], layer: int = 0) -> Tensor:
        """[T, H] after the head's norm, of pairs (row i, the token after it)."""
        w = self.layers[layer]
        embedded = w["embed"][torch.tensor(following)]
        if not self.is_qwen:
            embedded[0] = 0
        e = self.norm(embedded, w["pre_fc_norm_embedding.weight"])
        x = torch.cat((e, self.norm(hidden, w["pre_fc_norm_hidden.weight"])), -1) @ w["fc.weight"].T
        x = x + self.attention(self.norm(x, w["input_layernorm.weight"]), w)
        y = self.norm(x, w["post_attention_layernorm.weight"])
        gate, up = (y @ w[f"mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (F.silu(gate) * up) @ w["mlp.down_proj.weight"].T
        return self.norm(x, w["norm.weight"])

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """Qwen's is zero-centred: the weight is 1 + w."""
        scale = (x.square().mean(-1, keepdim=True) + self.shape.norm_eps).rsqrt()
        return x * scale * (1 + weight if self.is_qwen else weight)

    def attention(self, x: Tensor, w: Mapping[str, Tensor]) -> Tensor:
        """Qwen's is gated, with norms on the heads and a rotation of their first dimensions."""
        a = self.shape.attention
        q, k, v = (
            x @ w[f"self_attn.{name}_proj.weight"].T + w.get(f"self_attn.{name}_proj.bias", 0)
            for name in "qkv"
        )
        k, v = (part.view(len(x), a.num_kv_heads, a.head_dim) for part in (k, v))
        gate = torch.ones(1)
        if self.is_qwen:
            q, gate = q.view(len(x), a.num_heads, 2, a.head_dim).unbind(2)
            q, k = self.norm(q, w["self_attn.q_norm.weight"]), self.norm(k, w["self_attn.k_norm.weight"])
            gate = gate.sigmoid()
        q, k = self.turned(q.reshape(len(x), a.num_heads, a.head_dim)), self.turned(k)
        k, v = (part.repeat_interleave(a.num_heads // a.num_kv_heads, 1) for part in (k, v))
        scores = torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(a.head_dim)
        later = torch.ones(len(x), len(x)).triu(1).bool()
        mixed = torch.einsum("hij,jhd->ihd", scores.masked_fill(later, -math.inf).softmax(-1), v)
        put_out = (mixed * gate).flatten(1) @ w["self_attn.o_proj.weight"].T
        return put_out + w.get("self_attn.o_proj.bias", 0)

    def turned(self, heads: Tensor) -> Tensor:
        """Rotate-half inside the rotary dimensions, at positions 0, 1, ..."""
        r = self.shape.rope.rotary_dim
        frequencies = 1.0 / self.shape.rope.theta ** (torch.arange(0, r, 2, dtype=torch.float32) / r)
        angles = torch.arange(len(heads), dtype=torch.float64)[:, None] * frequencies.double()
        cos, sin = (torch.cat((f(angles),) * 2, -1)[:, None] for f in (torch.cos, torch.sin))
        turning, rest = heads[..., :r], heads[..., r:]
        half = torch.cat((-turning[..., r // 2 :], turning[..., : r // 2]), -1)
        return torch.cat((turning * cos + half * sin, rest), -1)
