"""Attention of a drafted block over the target's context and itself, and the memory of that context.

Queries come from the block alone; keys and values from context rows and block alike, through the same
projections. Source: DFlash, arXiv:2602.06036; dflash 0.1.0 model.py.
Dimensions: C new context rows, B slots of the block, S context rows remembered, Hq/Hk heads, D head dim.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.cache.kv import KvStore
from draftproof.cache.shapes import KvShape
from draftproof.models.dflash.shape import DflashLayer, DflashShape
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rope import rotate
from draftproof.models.parts.rows import RmsNorm

__all__ = ["ContextMemory", "DflashAttention", "DflashWeights", "Pass"]


class ContextMemory:
    """Keys and values of the target's context, of one sequence; a block's own are never kept.

    Attributes:
        stores: one for each window, in order of first use.
        length: context rows taken in, those that left every window included.
    """

    __slots__ = ("length", "stores")

    def __init__(self, shape: DflashShape, *, dtype: torch.dtype, device: torch.device) -> None:
        """An empty context."""
        windows = [layer.window for layer in shape.layers]
        self.stores = tuple(
            KvStore(
                KvShape(windows.count(window), shape.num_kv_heads, shape.head_dim, window),
                dtype=dtype,
                device=device,
            )
            for window in dict.fromkeys(windows)
        )
        self.length = 0

    def begin(self, num_rows: int) -> None:
        """Make room for the rows of one pass."""
        for store in self.stores:
            store.begin(num_rows)

    def keep(self, num_context: int) -> None:
        """Keep the first rows of the pass, its context, and forget the block behind them."""
        for store in self.stores:
            store.commit(range(num_context))
        self.length += num_context


@dataclass(slots=True)
class Pass:
    """One pass of the drafter."""

    memory: ContextMemory
    context: Tensor
    """[C, H]: new context rows, fused and normed, in the model's precision."""

    num_slots: int
    turns: Tensor
    """[C + B, 1, D / 2] complex: the rotation of every row."""

    masks: dict[DflashLayer, Tensor | None] = field(default_factory=dict)

    def mask(self, layer: DflashLayer, num_columns: int) -> Tensor | None:
        """[B, columns] added to the scores: 0 or -inf; None where every slot sees every column."""
        if layer not in self.masks:
            self.masks[layer] = self._mask(layer, num_columns)
        return self.masks[layer]

    def _mask(self, layer: DflashLayer, num_columns: int) -> Tensor | None:
        window = layer.window
        if not layer.is_causal and (window is None or num_columns <= window):
            return None
        slots = torch.arange(self.num_slots, device=self.context.device)[:, None]
        first = self.num_slots - num_columns  # columns end with the block; the anchor stands at 0
        columns = torch.arange(first, self.num_slots, device=self.context.device)
        unseen = torch.zeros(self.num_slots, num_columns, dtype=torch.bool, device=self.context.device)
        if layer.is_causal:
            unseen |= columns > slots
        if window is not None:
            unseen |= (slots - columns).abs() >= window
        mask = torch.zeros(unseen.shape, dtype=self.context.dtype, device=unseen.device)
        return mask.masked_fill_(unseen, float("-inf"))


class DflashWeights(NamedTuple):
    """One layer's projections and head norms."""

    q: Linear
    kv: Linear
    """Rows k | v."""

    out: Linear
    q_norm: RmsNorm
    k_norm: RmsNorm


class DflashAttention:
    """The attention of one layer."""

    __slots__ = ("_exact", "_heads", "_in_store", "_layer", "_store", "_weights")

    def __init__(self, shape: DflashShape, index: int, weights: DflashWeights, *, exact: torch.dtype) -> None:
        """Take the layer's weights.

        Args:
            shape: the drafter.
            index: of the layer.
            weights: of this layer.
            exact: precision of norms and rotation.
        """
        windows = [layer.window for layer in shape.layers]
        self._layer = shape.layers[index]
        self._store = list(dict.fromkeys(windows)).index(self._layer.window)
        self._in_store = windows[:index].count(self._layer.window)
        self._heads = (shape.num_heads, shape.num_kv_heads, shape.head_dim)
        self._weights = weights
        self._exact = exact

    def __call__(self, residual: Tensor, y: Tensor, now: Pass) -> Tensor:
        """The residual stream [B, H] with the attention of the normed block ``y`` added."""
        w, (num_q, num_kv, dim) = self._weights, self._heads
        num_slots, num_rows = len(y), len(y) + len(now.context)
        k, v = w.kv(torch.cat((now.context, y))).view(num_rows, 2, num_kv, dim).unbind(1)
        q = self._turned(w.q(y).view(num_slots, num_q, dim), w.q_norm, now.turns[-num_slots:])
        k = self._turned(k, w.k_norm, now.turns)
        keys, values = now.memory.stores[self._store].write(self._in_store, k, v)  # [1, Hk, S + C + B, D]
        # The query heads of one key head are the rows of one product, as in the decoder's attention.
        shared = num_q // num_kv
        q = q.view(num_slots, num_kv, shared, dim).permute(1, 2, 0, 3).reshape(1, num_kv, -1, dim)
        mask = now.mask(self._layer, keys.shape[2])
        mask = mask.repeat(shared, 1) if mask is not None else None
        mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        mixed = mixed.view(num_kv, shared, num_slots, dim).permute(2, 0, 1, 3).reshape(num_slots, -1)
        return w.out.added(residual, mixed)

    def _turned(self, heads: Tensor, norm: RmsNorm, turns: Tensor) -> Tensor:
        """Heads normed and rotated in full precision, back in the model's."""
        return rotate(norm(heads.to(self._exact)), turns).to(heads.dtype)
