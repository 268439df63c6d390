"""Many texts read in lockstep: one token of each at a time, all at the same position.

The engine serves one request as fast as it can; a trainer wants a thousand answers. One row of every text
goes through each product, so small matrices are worth their call.
Formulas as in ``models``; the tests hold the two against each other.
Dimensions: B texts, H hidden, V vocabulary, D head dim, K convolution taps, Dk, Dv of the delta rule's heads.
"""

import functools
from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.models.target.shape import DecoderShape
from draftproof.training.drafters.turning import Turn, turn_at

__all__ = ["Lockstep"]

_PREFIX = "model."


class Lockstep:
    """The memory of B texts of one target."""

    def __init__(self, shape: DecoderShape, weights: Mapping[str, Tensor], count: int) -> None:
        """Before the first token.

        Args:
            shape: of the target.
            weights: by the checkpoint's names, in 32-bit floats.
            count: B.
        """
        self._shape, self._weights, self._position = shape, weights, 0
        self._states: dict[str, Tensor] = {}
        self._device = weights[f"{_PREFIX}embed_tokens.weight"].device
        d, zeros = shape.delta, functools.partial(torch.zeros, count, device=self._device)
        for index, layer in enumerate(shape.layers):
            name = f"{_PREFIX}layers.{index}"
            if layer.is_recurrent and d is not None:
                self._states[f"{name}.conv"] = zeros(d.conv_taps - 1, d.channels)
                self._states[f"{name}.delta"] = zeros(d.num_value_heads, d.key_dim, d.value_dim)

    def keep(self, rows: Tensor) -> None:
        """Forget all texts but these [B']."""
        rows = rows.to(self._device)
        self._states = {name: state[rows] for name, state in self._states.items()}

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        """[B, V] logits after one more token of every text, [B]."""
        weights, shape = self._weights, self._shape
        embedding = weights[f"{_PREFIX}embed_tokens.weight"]
        turn = turn_at(shape.rope, torch.tensor([[self._position]], device=self._device))
        x = F.embedding(tokens.to(self._device), embedding)
        for index, layer in enumerate(shape.layers):
            name = f"{_PREFIX}layers.{index}"
            y = self._norm(x, f"{name}.input_layernorm")
            x = x + (
                self._delta(y, name) if layer.is_recurrent else self._attention(y, name, layer.window, turn)
            )
            y = self._norm(x, f"{name}.post_attention_layernorm")
            gated = F.silu(self._linear(y, f"{name}.mlp.gate_proj")) * self._linear(y, f"{name}.mlp.up_proj")
            x = x + self._linear(gated, f"{name}.mlp.down_proj")
        self._position += 1
        return self._norm(x, f"{_PREFIX}norm") @ (embedding if shape.is_tied else weights["lm_head.weight"]).T

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self._weights[f"{name}.weight"], self._weights.get(f"{name}.bias"))

    def _norm(self, x: Tensor, name: str) -> Tensor:
        centre = 1.0 if self._shape.norm_is_zero_centred else 0.0
        return F.rms_norm(x, x.shape[-1:], self._weights[f"{name}.weight"] + centre, self._shape.norm_eps)

    def _attention(self, y: Tensor, name: str, window: int | None, turn: Turn) -> Tensor:
        a, here = self._shape.attention, f"{name}.self_attn"
        q = self._linear(y, f"{here}.q_proj").view(len(y), a.num_heads, -1)
        q, gate = q[..., : a.head_dim], q[..., a.head_dim :]
        k, v = (self._linear(y, f"{here}.{part}_proj").view(-1, a.num_kv_heads, a.head_dim) for part in "kv")
        if a.has_qk_norm:
            q, k = self._norm(q, f"{here}.q_norm"), self._norm(k, f"{here}.k_norm")
        keys, values = self._remembered(name, "keys", turn(k)), self._remembered(name, "values", v)
        if window is not None:
            keys, values = keys[:, :, -window:], values[:, :, -window:]
        # The query heads of one key head are the rows of one product.
        q = turn(q).view(len(y), a.num_kv_heads, -1, a.head_dim)
        mixed = F.scaled_dot_product_attention(q, keys, values).flatten(1)
        if a.has_gate:
            mixed = mixed * gate.flatten(1).sigmoid()
        return self._linear(mixed, f"{here}.o_proj")

    def _remembered(self, name: str, kind: str, row: Tensor) -> Tensor:
        """[B, Hk, positions, D] with the new row [B, Hk, D] at its end; room is doubled as it runs out."""
        key, at = f"{name}.{kind}", self._position
        store = self._states.get(key)
        if store is None or store.shape[2] == at:
            longer = row.new_empty(*row.shape[:2], max(64, 2 * at), row.shape[2])
            if store is not None:
                longer[:, :, :at] = store
            self._states[key] = store = longer
        store[:, :, at] = row
        return store[:, :, : at + 1]

    def _delta(self, y: Tensor, name: str) -> Tensor:
        d, here = self._shape.delta, f"{name}.linear_attn"
        if d is None:
            raise RuntimeError("a recurrent layer without its shape")
        inputs = torch.cat((self._states[f"{name}.conv"], self._linear(y, f"{here}.in_proj_qkv")[:, None]), 1)
        self._states[f"{name}.conv"] = inputs[:, 1:]
        u = F.silu((inputs * self._weights[f"{here}.conv1d.weight"][:, 0].T).sum(1))
        keys = d.num_key_heads * d.key_dim
        q, k = (
            _unit(part.reshape(-1, d.num_key_heads, d.key_dim)).repeat_interleave(d.values_per_key, 1)
            for part in (u[:, :keys], u[:, keys : 2 * keys])
        )
        v = u[:, 2 * keys :].reshape(-1, d.num_value_heads, d.value_dim)
        beta = self._linear(y, f"{here}.in_proj_b").sigmoid()[..., None]
        rate = F.softplus(self._linear(y, f"{here}.in_proj_a") + self._weights[f"{here}.dt_bias"])
        decay = (-self._weights[f"{here}.A_log"].exp() * rate).exp()[..., None, None]
        state = self._states[f"{name}.delta"].mul_(decay)
        change = beta * (v - (k[:, :, None] @ state)[:, :, 0])
        state.addcmul_(k[..., None], change[:, :, None])
        mixed = (q[:, :, None] @ state)[:, :, 0] * d.key_dim**-0.5
        z = self._linear(y, f"{here}.in_proj_z").view_as(mixed)
        mixed = F.rms_norm(mixed, (d.value_dim,), self._weights[f"{here}.norm.weight"], self._shape.norm_eps)
        return self._linear((mixed * F.silu(z)).flatten(1), f"{here}.out_proj")


def _unit(heads: Tensor) -> Tensor:
    return heads * (heads.square().sum(-1, keepdim=True) + 1e-6).rsqrt()
