"""The slow plain twin of the decoder: one chain, 64-bit floats, no cache, no fused weight, no reordered row.

It reads the same shape and the checkpoint's own tensors and does what the formulas say, position by position
where a formula has a recurrence. The fast decoder is held against it, not the other way round.

Dimensions: T tokens, H hidden, D head dim.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.models.parts.rope import inverse_frequencies
from draftproof.models.target.shape import DecoderShape, DeltaShape

__all__ = ["PlainResult", "run_plain"]


@dataclass(frozen=True, slots=True)
class PlainResult:
    """Everything the twin computed, in float64."""

    hidden: tuple[Tensor, ...]
    """[T, H] each: embeddings, then the residual stream after every layer."""

    normed: Tensor
    """[T, H]"""

    logits: Tensor
    """[T, V]"""


def run_plain(
    shape: DecoderShape, tensors: Mapping[str, Tensor], tokens: Sequence[int], *, prefix: str = "model."
) -> PlainResult:
    """The hidden states and logits of a chain of tokens.

    Args:
        shape: the decoder.
        tensors: the checkpoint by its own names; 16-bit values are widened, not rounded.
        tokens: T ids.
        prefix: what layer tensors begin with.
    """
    plain = _Plain(shape, tensors, prefix)
    x = plain.get("embed_tokens.weight")[torch.tensor(list(tokens))]
    hidden = [x]
    for index, layer in enumerate(shape.layers):
        here = f"layers.{index}"
        y = plain.norm(x, f"{here}.input_layernorm.weight")
        if layer.is_recurrent:
            x = x + plain.delta(y, f"{here}.linear_attn")
        else:
            x = x + plain.attention(y, f"{here}.self_attn", layer.window)
        y = plain.norm(x, f"{here}.post_attention_layernorm.weight")
        gate, up = (plain.linear(y, f"{here}.mlp.{name}_proj") for name in ("gate", "up"))
        x = x + plain.linear(F.silu(gate) * up, f"{here}.mlp.down_proj")
        hidden.append(x)
    normed = plain.norm(x, "norm.weight")
    head = plain.get("embed_tokens.weight") if shape.is_tied else tensors["lm_head.weight"].double()
    return PlainResult(tuple(hidden), normed, normed @ head.T)


class _Plain:
    """The parts of a layer, each as its formula."""

    def __init__(self, shape: DecoderShape, tensors: Mapping[str, Tensor], prefix: str) -> None:
        self._shape, self._tensors, self._prefix = shape, tensors, prefix

    def get(self, name: str) -> Tensor:
        """One tensor in float64."""
        return self._tensors[self._prefix + name].double()

    def linear(self, x: Tensor, name: str) -> Tensor:
        """The map x W^T, plus b where the checkpoint has one."""
        y = x @ self.get(f"{name}.weight").T
        return y + self.get(f"{name}.bias") if f"{self._prefix}{name}.bias" in self._tensors else y

    def norm(self, x: Tensor, name: str) -> Tensor:
        """The row x / sqrt(mean(x^2) + eps), times w or 1 + w."""
        weight = self.get(name) + (1 if self._shape.norm_is_zero_centred else 0)
        return x / (x.square().mean(-1, keepdim=True) + self._shape.norm_eps).sqrt() * weight

    def attention(self, x: Tensor, name: str, window: int | None) -> Tensor:
        """Softmax attention, one query and one head at a time."""
        a, count = self._shape.attention, len(x)
        projected = self.linear(x, f"{name}.q_proj").view(count, a.num_heads, -1)
        q = projected[..., : a.head_dim]
        k = self.linear(x, f"{name}.k_proj").view(count, a.num_kv_heads, a.head_dim)
        v = self.linear(x, f"{name}.v_proj").view(count, a.num_kv_heads, a.head_dim)
        if a.has_qk_norm:
            q, k = self.norm(q, f"{name}.q_norm.weight"), self.norm(k, f"{name}.k_norm.weight")
        q, k = self.rotated(q), self.rotated(k)
        mixed = torch.zeros(count, a.num_heads, a.head_dim, dtype=torch.float64)
        for t in range(count):
            first = 0 if window is None else max(0, t - window + 1)
            for head in range(a.num_heads):
                shared = head * a.num_kv_heads // a.num_heads
                scores = k[first : t + 1, shared] @ q[t, head] * a.head_dim**-0.5
                mixed[t, head] = scores.softmax(0) @ v[first : t + 1, shared]
        if a.has_gate:
            mixed = mixed * projected[..., a.head_dim :].sigmoid()
        return self.linear(mixed.flatten(1), f"{name}.o_proj")

    def rotated(self, heads: Tensor) -> Tensor:
        """Dimension i turned with dimension i + r/2, by position times frequency."""
        r = self._shape.rope.rotary_dim
        frequencies, magnitude = inverse_frequencies(self._shape.rope)
        angles = torch.arange(len(heads), dtype=torch.float64)[:, None, None] * frequencies.double()
        a, b = heads[..., : r // 2], heads[..., r // 2 : r]
        cos, sin = angles.cos() * magnitude, angles.sin() * magnitude
        return torch.cat((a * cos - b * sin, b * cos + a * sin, heads[..., r:]), -1)

    def delta(self, x: Tensor, name: str) -> Tensor:
        """The gated delta rule, one token and one value head at a time."""
        d = self._shape.delta
        if d is None:
            raise RuntimeError("a recurrent layer without its shape")
        y = F.silu(self.convolved(self.linear(x, f"{name}.in_proj_qkv"), self.get(f"{name}.conv1d.weight")))
        z = self.linear(x, f"{name}.in_proj_z").view(len(x), d.num_value_heads, d.value_dim)
        beta = self.linear(x, f"{name}.in_proj_b").sigmoid()
        step = F.softplus(self.linear(x, f"{name}.in_proj_a") + self.get(f"{name}.dt_bias"))
        decay = (-self.get(f"{name}.A_log").exp() * step).exp()
        heads = [_one_head(y, decay[:, h], beta[:, h], d, h) for h in range(d.num_value_heads)]
        o = torch.stack(heads, 1)  # [T, heads, Dv]
        o = o / (o.square().mean(-1, keepdim=True) + self._shape.norm_eps).sqrt()
        o = o * self.get(f"{name}.norm.weight") * F.silu(z)
        return self.linear(o.flatten(1), f"{name}.out_proj")

    @staticmethod
    def convolved(u: Tensor, weight: Tensor) -> Tensor:
        """out_t = sum over m of w[K - 1 - m] u_{t - m}, channel by channel; nothing stands before token 0."""
        taps = weight.shape[-1]
        out = torch.zeros_like(u)
        for t in range(len(u)):
            for m in range(min(taps, t + 1)):
                out[t] += weight[:, 0, taps - 1 - m] * u[t - m]
        return out


def _one_head(y: Tensor, decay: Tensor, beta: Tensor, d: DeltaShape, head: int) -> Tensor:
    """[T, Dv]: the outputs of one value head."""
    keys = d.num_key_heads * d.key_dim
    shared = head // d.values_per_key * d.key_dim
    q, k = y[:, shared : shared + d.key_dim], y[:, keys + shared : keys + shared + d.key_dim]
    v = y[:, 2 * keys + head * d.value_dim : 2 * keys + (head + 1) * d.value_dim]
    q, k = (part / (part.square().sum(-1, keepdim=True) + 1e-6).sqrt() for part in (q, k))
    state = torch.zeros(d.key_dim, d.value_dim, dtype=torch.float64)
    outputs = []
    for t in range(len(y)):
        state = decay[t] * state
        state = state + torch.outer(k[t], beta[t] * (v[t] - state.T @ k[t]))
        outputs.append(state.T @ q[t] * d.key_dim**-0.5)
    return torch.stack(outputs)
