"""Softmax attention over a session's keys and values: grouped heads, windows, optional head norms and gate.

Dimensions: N rows, Hq query heads, Hk key/value heads, D head dim, S visible rows with the nodes' own.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.models.batch import Item, Rows
from draftproof.models.linear import Linear
from draftproof.models.rope import rotate
from draftproof.models.shape import AttentionShape

__all__ = ["Attention"]


class Attention:
    """One attention layer; writes its keys and values behind the session's committed rows.

    Source: Vaswani et al. 2017, arXiv:1706.03762; grouped heads: Ainslie et al. 2023, arXiv:2305.13245; head
    norms: Qwen3; output gate per head: Qwen3-Next.
    """

    __slots__ = (
        "_eps",
        "_exact",
        "_gate_at",
        "_head_norm",
        "_layer",
        "_out",
        "_qkv",
        "_scale",
        "_shape",
        "_store",
    )

    def __init__(
        self,
        shape: AttentionShape,
        qkv: Linear,
        out: Linear,
        head_norm: Tensor | None,
        eps: float,
        *,
        store: int,
        layer: int,
        exact: torch.dtype,
    ) -> None:
        """Args: see the attributes of the same names in ``models.parameters``.

        Args:
            shape: heads and switches.
            qkv: rows q | k | v | gate.
            out: the output projection.
            head_norm: [Hq + Hk, D] weights of the norms on queries and keys, or None.
            eps: of those norms.
            store: number of the key-value store in the session.
            layer: this layer's number within the store.
            exact: precision of norms and rotation.
        """
        self._shape, self._qkv, self._out, self._head_norm = shape, qkv, out, head_norm
        self._store, self._layer, self._exact = store, layer, exact
        self._eps = (
            torch.full((), eps, dtype=exact, device=head_norm.device) if head_norm is not None else None
        )
        self._scale = 1 / shape.head_dim
        self._gate_at = (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim

    def __call__(self, residual: Tensor, x: Tensor, rows: Rows) -> Tensor:
        """The residual stream with the attention of ``x`` added."""
        s, n = self._shape, x.shape[0]
        both, width = s.num_heads + s.num_kv_heads, s.num_heads * s.head_dim
        projected = self._qkv(x)
        qk = projected.narrow(1, 0, both * s.head_dim).view(n, both, s.head_dim).to(self._exact)
        if self._head_norm is not None and self._eps is not None:
            length = torch.linalg.vector_norm(qk, 2, -1, keepdim=True)
            scale = torch.addcmul(self._eps, length, length, value=self._scale).rsqrt_()
            qk = (qk * scale).mul_(self._head_norm)
        qk = rotate(qk, rows.turns).to(x.dtype)
        v = projected.narrow(1, both * s.head_dim, s.num_kv_heads * s.head_dim).view(
            n, s.num_kv_heads, s.head_dim
        )
        if len(rows.items) == 1:
            mixed = self._attend(qk, v, rows.items[0])
        else:
            mixed = torch.cat([self._attend(qk[i.begin : i.end], v[i.begin : i.end], i) for i in rows.items])
        if s.has_gate:
            mixed = mixed * torch.sigmoid(projected.narrow(1, self._gate_at, width))
        return self._out.added(residual, mixed)

    def _attend(self, qk: Tensor, v: Tensor, item: Item) -> Tensor:
        """One sequence: [N, Hq * D] from queries and keys [N, Hq + Hk, D] and values [N, Hk, D]."""
        s, n = self._shape, qk.shape[0]
        q, k = qk[:, : s.num_heads], qk[:, s.num_heads :]
        keys, values = item.session.kv[self._store].write(self._layer, k, v)  # [Hk, S, D]
        if n == 1:
            # The query heads of one key head are the rows of one small product.
            grouped = q.reshape(1, s.num_kv_heads, -1, s.head_dim)
            return F.scaled_dot_product_attention(grouped, keys[None], values[None]).reshape(1, -1)
        mixed = F.scaled_dot_product_attention(
            q.transpose(0, 1)[None],
            keys[None],
            values[None],
            attn_mask=item.mask(self._store),
            enable_gqa=True,
        )
        return mixed[0].transpose(0, 1).reshape(n, -1)
