"""Softmax attention over a session's keys and values: grouped heads, windows, optional head norms and gate.

Dimensions: N rows, Hq query heads, Hk key/value heads, D head dim, S visible rows with the nodes' own.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.models.batch import Item, Rows
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rope import rotate
from draftproof.models.parts.rows import RmsNorm
from draftproof.models.target.shape import AttentionShape

__all__ = ["Attention"]

GROUPED_NODES = 16
"""Up to so many nodes the heads of a group share a product: 1.2 to 3.8 times faster than apart (measured on a
Zen 4 at contexts of 1k and 8k); with 64 nodes the two are even, and the mask need not be repeated."""


class Attention:
    """One attention layer; writes its keys and values behind the session's committed rows.

    Source: Vaswani et al. 2017, arXiv:1706.03762; grouped heads: Ainslie et al. 2023, arXiv:2305.13245; head
    norms: Qwen3; output gate per head: Qwen3-Next.
    """

    __slots__ = ("_exact", "_head_norm", "_layer", "_out", "_qkv", "_shape", "_split", "_store")

    def __init__(
        self,
        shape: AttentionShape,
        qkv: Linear,
        out: Linear,
        head_norm: RmsNorm | None,
        *,
        store: int,
        layer: int,
        exact: torch.dtype,
    ) -> None:
        """Take the layer's weights.

        Args:
            shape: heads and switches.
            qkv: rows q | k | v | gate.
            out: the output projection.
            head_norm: over [Hq + Hk, D], queries and keys, or None.
            store: number of the key-value store in the session.
            layer: this layer's number within the store.
            exact: precision of norms and rotation.
        """
        self._shape, self._qkv, self._out, self._head_norm = shape, qkv, out, head_norm
        self._store, self._layer, self._exact = store, layer, exact
        both, values = (shape.num_heads + shape.num_kv_heads), shape.num_kv_heads
        gates = shape.num_heads if shape.has_gate else 0
        self._split = [heads * shape.head_dim for heads in (both, values, gates)]

    def __call__(self, residual: Tensor, x: Tensor, rows: Rows) -> Tensor:
        """The residual stream with the attention of ``x`` added."""
        s, n = self._shape, x.shape[0]
        qk, v, gate = self._qkv(x).split_with_sizes(self._split, 1)
        heads = qk.view(n, s.num_heads + s.num_kv_heads, s.head_dim)
        if heads.dtype != self._exact:
            heads = heads.to(self._exact)
        if self._head_norm is not None:
            heads = self._head_norm(heads)
        heads = rotate(heads, rows.turns)
        if heads.dtype != x.dtype:
            heads = heads.to(x.dtype)
        v = v.view(n, s.num_kv_heads, s.head_dim)
        if len(rows.items) == 1:
            mixed = self._attend(heads, v, rows.items[0])
        else:
            mixed = torch.cat(
                [self._attend(heads[i.begin : i.end], v[i.begin : i.end], i) for i in rows.items]
            )
        if s.has_gate:
            mixed = mixed * gate.sigmoid()
        return self._out.added(residual, mixed)

    def _attend(self, heads: Tensor, v: Tensor, item: Item) -> Tensor:
        """One sequence: [N, Hq * D] from queries and keys [N, Hq + Hk, D] and values [N, Hk, D]."""
        s, n = self._shape, len(v)
        q, k = heads.split_with_sizes((s.num_heads, s.num_kv_heads), 1)
        keys, values = item.session.kv[self._store].write(self._layer, k, v)  # [1, Hk, S, D]
        if n > GROUPED_NODES:
            q, mask = q.transpose(0, 1)[None], item.mask(self._store, 1)
            mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
            return mixed[0].transpose(0, 1).reshape(n, -1)
        # The query heads of one key head are the rows of one product: its keys are read once for all of them.
        shared = s.num_heads // s.num_kv_heads
        q = q.view(n, s.num_kv_heads, shared, s.head_dim).permute(1, 2, 0, 3)
        q = q.reshape(1, s.num_kv_heads, shared * n, s.head_dim)
        mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=item.mask(self._store, shared))
        return mixed.view(s.num_kv_heads, shared, n, s.head_dim).permute(2, 0, 1, 3).reshape(n, -1)
