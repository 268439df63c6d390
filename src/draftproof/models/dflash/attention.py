"""Attention of a drafted block over the target's context and itself, and the memory of that context.

Queries come from the block alone; keys and values from context rows and block alike, through the same
projections. Source: DFlash, arXiv:2602.06036; dflash 0.1.0 model.py.
Dimensions: C new context rows, B slots of the block, S context rows remembered, Hq/Hk heads, D head dim.
"""

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

__all__ = ["BlockMasks", "ContextMemory", "DflashAttention", "DflashWeights", "Pass"]

_MOST_KEPT = 1 << 24
"""Numbers in all masks kept at once: a full window has few shapes, no window a new one in each step."""


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


class BlockMasks:
    """What the slots of a block may not see, kept from pass to pass: a full window has one shape."""

    __slots__ = ("_device", "_dtype", "_kept", "_num_kept", "_shared")

    def __init__(self, shape: DflashShape, *, dtype: torch.dtype, device: torch.device) -> None:
        """None is made yet."""
        self._shared = shape.num_heads // shape.num_kv_heads
        self._dtype, self._device = dtype, device
        self._kept: dict[tuple[DflashLayer, int, int], Tensor] = {}
        self._num_kept = 0

    def of(self, layer: DflashLayer, num_slots: int, num_columns: int) -> Tensor | None:
        """[shared B, columns] added to the scores of one key head: 0 or -inf; None where all is seen."""
        if not layer.is_causal and (layer.window is None or num_columns <= layer.window):
            return None
        key = (layer, num_slots, num_columns)
        if key not in self._kept:
            mask = self._made(layer, num_slots, num_columns)
            self._num_kept += mask.numel()
            if self._num_kept > _MOST_KEPT:
                self._kept.clear()
                self._num_kept = mask.numel()
            self._kept[key] = mask
        return self._kept[key]

    def _made(self, layer: DflashLayer, num_slots: int, num_columns: int) -> Tensor:
        window = layer.window
        slots = torch.arange(num_slots, device=self._device)[:, None]
        # Columns end with the block; the anchor stands at 0.
        columns = torch.arange(num_slots - num_columns, num_slots, device=self._device)
        unseen = torch.zeros(num_slots, num_columns, dtype=torch.bool, device=self._device)
        if layer.is_causal:
            unseen |= columns > slots
        if window is not None:
            unseen |= (slots - columns).abs() >= window
        mask = torch.zeros(unseen.shape, dtype=self._dtype, device=self._device)
        return mask.masked_fill_(unseen, float("-inf")).repeat(self._shared, 1)


class Pass(NamedTuple):
    """One pass of the drafter."""

    memory: ContextMemory
    context: Tensor
    """[C, H]: new context rows, fused and normed, in the model's precision."""

    turns: Tensor
    """[C + B, 1, D / 2] complex: the rotation of every row."""

    masks: BlockMasks


class DflashWeights(NamedTuple):
    """One layer's projections and head norms."""

    qkv: Linear
    """Rows q | k | v."""

    out: Linear
    head_norm: RmsNorm
    """Over [Hq + Hk, D], queries and keys."""


class DflashAttention:
    """The attention of one layer."""

    __slots__ = ("_exact", "_heads", "_in_store", "_layer", "_split", "_store", "_weights")

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
        both, values = shape.num_heads + shape.num_kv_heads, shape.num_kv_heads
        self._split = (both * shape.head_dim, values * shape.head_dim)
        self._weights = weights
        self._exact = exact

    def __call__(self, residual: Tensor, y: Tensor, now: Pass) -> Tensor:
        """The residual stream [B, H] with the attention of the normed block ``y`` added.

        Queries of the context's few rows are computed too and left: one product is cheaper than two.
        """
        w, (num_q, num_kv, dim) = self._weights, self._heads
        num_slots, num_rows = len(y), len(y) + len(now.context)
        both, v = w.qkv(torch.cat((now.context, y))).split_with_sizes(self._split, 1)
        heads = both.view(num_rows, num_q + num_kv, dim)
        if heads.dtype != self._exact:
            heads = heads.to(self._exact)
        heads = rotate(w.head_norm(heads), now.turns)
        if heads.dtype != y.dtype:
            heads = heads.to(y.dtype)
        q, k = heads.split_with_sizes((num_q, num_kv), 1)
        store = now.memory.stores[self._store]
        keys, values = store.write(self._in_store, k, v.view(num_rows, num_kv, dim))  # [1, Hk, S + C + B, D]
        # The query heads of one key head are the rows of one product, as in the decoder's attention.
        shared = num_q // num_kv
        q = q.narrow(0, num_rows - num_slots, num_slots).view(num_slots, num_kv, shared, dim)
        q = q.permute(1, 2, 0, 3).reshape(1, num_kv, -1, dim)
        mask = now.masks.of(self._layer, num_slots, keys.shape[2])
        mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        mixed = mixed.view(num_kv, shared, num_slots, dim).permute(2, 0, 1, 3).reshape(num_slots, -1)
        return w.out.added(residual, mixed)
