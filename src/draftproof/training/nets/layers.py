"""The layers of a target over batches of whole sequences, reading weights by the checkpoint's own names.

Dimensions: B sequences, T tokens, H hidden, D head dim.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.models.parts.rope import inverse_frequencies
from draftproof.models.target.shape import DecoderShape, RopeShape
from draftproof.training.machine import exact
from draftproof.training.nets.delta import delta_rule

__all__ = ["Layers", "rope_table", "rotated"]

_UNIT_EPS = 1e-6
"""Added to the squared length of queries and keys, as in ``models.parts.gated_delta``."""


def rope_table(rope: RopeShape, length: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of positions 0..length-1, [T, 1, r] each, both halves alike."""
    frequencies, magnitude = inverse_frequencies(rope)
    angles = torch.arange(length, dtype=torch.float32)[:, None] * frequencies
    doubled = torch.cat((angles, angles), -1)[:, None]
    return doubled.cos() * magnitude, doubled.sin() * magnitude


def rotated(heads: Tensor, table: tuple[Tensor, Tensor]) -> Tensor:
    """[..., T, heads, D] with the leading r dimensions turned, i with i + r/2."""
    cos, sin = table
    r = cos.shape[-1]
    turning, rest = heads[..., :r], heads[..., r:]
    half = torch.cat((-turning[..., r // 2 :], turning[..., : r // 2]), -1)
    turned = turning * cos + half * sin
    return turned if r == heads.shape[-1] else torch.cat((turned, rest), -1)


class Layers:
    """Norm, attention, delta rule and MLP of one shape, over one set of named weights."""

    def __init__(self, shape: DecoderShape, weights: Mapping[str, Tensor]) -> None:
        """Keep both; nothing is copied, so a step of an optimiser is seen by the next call."""
        self._shape, self._weights = shape, weights
        self._tables: dict[int, tuple[Tensor, Tensor]] = {}

    def linear(self, x: Tensor, name: str) -> Tensor:
        """The map x W^T, plus b where there is one."""
        return F.linear(x, self._weights[f"{name}.weight"], self._weights.get(f"{name}.bias"))

    def norm(self, x: Tensor, name: str) -> Tensor:
        """The row over its root mean square, times w or 1 + w."""
        weight = self._weights[f"{name}.weight"]
        weight = weight + 1 if self._shape.norm_is_zero_centred else weight
        return F.rms_norm(x.to(weight.dtype), (x.shape[-1],), weight, self._shape.norm_eps)

    def mlp(self, x: Tensor, name: str) -> Tensor:
        """SwiGLU."""
        gated = F.silu(self.linear(x, f"{name}.gate_proj")) * self.linear(x, f"{name}.up_proj")
        return self.linear(gated, f"{name}.down_proj")

    def layer(self, x: Tensor, name: str, *, is_recurrent: bool, window: int | None) -> Tensor:
        """One decoder layer, its residual sums included."""
        y = self.norm(x, f"{name}.input_layernorm")
        if is_recurrent:
            x = x + self.delta(y, f"{name}.linear_attn")
        else:
            x = x + self.attention(y, f"{name}.self_attn", window)
        return x + self.mlp(self.norm(x, f"{name}.post_attention_layernorm"), f"{name}.mlp")

    def attention(self, x: Tensor, name: str, window: int | None) -> Tensor:
        """Causal attention with the switches of the shape."""
        a, (b, t, _) = self._shape.attention, x.shape
        q = self.linear(x, f"{name}.q_proj").view(b, t, a.num_heads, -1)
        q, gate = q[..., : a.head_dim], q[..., a.head_dim :]
        k = self.linear(x, f"{name}.k_proj").view(b, t, a.num_kv_heads, a.head_dim)
        v = self.linear(x, f"{name}.v_proj").view(b, t, a.num_kv_heads, a.head_dim)
        if a.has_qk_norm:
            q, k = self.norm(q, f"{name}.q_norm"), self.norm(k, f"{name}.k_norm")
        table = self._table(t, x.device)
        q, k, v = (part.transpose(1, 2) for part in (rotated(q, table), rotated(k, table), v))
        mask = None if window is None else _windowed(t, window, x.device)
        mixed = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=a.num_heads != a.num_kv_heads
        )
        mixed = mixed.transpose(1, 2)
        if a.has_gate:
            mixed = mixed * gate.sigmoid()
        return self.linear(mixed.reshape(b, t, -1), f"{name}.o_proj")

    def delta(self, x: Tensor, name: str) -> Tensor:
        """Gated DeltaNet from an empty state.

        Raises:
            ValueError: the shape has no recurrent layer.
        """
        d, (b, t, _) = self._shape.delta, x.shape
        if d is None:
            raise ValueError("a recurrent layer without its shape")
        taps = self._weights[f"{name}.conv1d.weight"]
        inputs = self.linear(x, f"{name}.in_proj_qkv").to(taps.dtype)  # what is remembered is not rounded
        y = F.silu(_convolved(inputs, taps))
        z = self.linear(x, f"{name}.in_proj_z").view(b, t, d.num_value_heads, d.value_dim)
        grouped = (b, t, d.num_key_heads, d.values_per_key)
        beta = self.linear(x, f"{name}.in_proj_b").to(taps.dtype).sigmoid().view(grouped)
        step = F.softplus(self.linear(x, f"{name}.in_proj_a") + self._weights[f"{name}.dt_bias"])
        g = (-self._weights[f"{name}.A_log"].exp() * step).view(grouped)
        keys = d.num_key_heads * d.key_dim
        q, k, v = y.split_with_sizes((keys, keys, d.width), -1)
        q, k = (_unit(part.view(b, t, d.num_key_heads, d.key_dim)) for part in (q, k))
        with exact(x.device):
            mixed = delta_rule(q, k, v.view(*grouped, d.value_dim), g, beta)
        mixed = mixed.reshape(z.shape) * d.key_dim**-0.5
        mixed = F.rms_norm(mixed, (d.value_dim,), self._weights[f"{name}.norm.weight"], self._shape.norm_eps)
        return self.linear((mixed * F.silu(z)).flatten(2), f"{name}.out_proj")

    def _table(self, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
        if length not in self._tables:
            cos, sin = rope_table(self._shape.rope, length)
            self._tables[length] = cos.to(device), sin.to(device)
        return self._tables[length]


def _unit(heads: Tensor) -> Tensor:
    return heads * (heads.square().sum(-1, keepdim=True) + _UNIT_EPS).rsqrt()


class _Convolution(torch.autograd.Function):
    """[B, T, C]: every channel over its own last K inputs; nothing stands before the first token.

    By hand, since the gradient of each shifted view would be a whole padded tensor of its own.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, taps: Tensor) -> Tensor:
        """Inputs [B, T, C] and taps [C, K], oldest first."""
        ctx.save_for_backward(u, taps)
        count, t = taps.shape[1], u.shape[1]
        y = u * taps[:, -1]
        for back in range(1, min(count, t)):
            y[:, back:].addcmul_(u[:, : t - back], taps[:, -1 - back])
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of both."""
        (u, taps), (grad,) = ctx.saved_tensors, grads
        count, t = taps.shape[1], u.shape[1]
        of_inputs, of_taps = grad * taps[:, -1], torch.zeros_like(taps)
        of_taps[:, -1] = (grad * u).sum((0, 1))
        for back in range(1, min(count, t)):
            of_inputs[:, : t - back].addcmul_(grad[:, back:], taps[:, -1 - back])
            of_taps[:, -1 - back] = (grad[:, back:] * u[:, : t - back]).sum((0, 1))
        return of_inputs, of_taps


def _convolved(u: Tensor, weight: Tensor) -> Tensor:
    result: Tensor = _Convolution.apply(u, weight[:, 0])  # type: ignore[no-untyped-call]
    return result


def _windowed(t: int, window: int, device: torch.device) -> Tensor:
    seen = torch.ones(t, t, dtype=torch.bool, device=device).tril_()
    return seen.triu_(1 - window)
