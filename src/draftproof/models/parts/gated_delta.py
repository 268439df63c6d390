"""The Gated DeltaNet layer: projections, short convolution over ancestors, delta rule, gated norm.

Dimensions: N rows, C convolution channels, K taps, Hk key heads, R value heads per key head, Dk, Dv.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.cache.recurrent import advance_states
from draftproof.models.batch import Item, Rows
from draftproof.models.parts.deltanet import CHUNK, Steps, advance_chunks, one_node, tree_nodes
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rows import RmsNorm
from draftproof.models.target.shape import DeltaShape

__all__ = ["GatedDelta"]

_UNIT_EPS = 1e-6
"""Added to the squared length of queries and keys. Source: transformers 5.24.0 ``l2norm``."""


class GatedDelta:
    """One recurrent layer; puts its nodes aside for the commit, or advances the state at once in a prefill.

    Source: transformers 5.24.0 qwen3_5; Yang, Kautz, Hatamizadeh 2024, arXiv:2412.06464.
    """

    __slots__ = (
        "_decay",
        "_dt_bias",
        "_exact",
        "_layer",
        "_norm",
        "_out",
        "_project",
        "_shape",
        "_split",
        "_taps",
        "_unit_floor",
    )

    def __init__(
        self,
        shape: DeltaShape,
        project: Linear,
        out: Linear,
        *,
        conv: Tensor,
        a_log: Tensor,
        dt_bias: Tensor,
        norm: Tensor,
        eps: float,
        layer: int,
    ) -> None:
        """Take the layer's weights.

        Args:
            shape: heads and widths.
            project: rows q | k | v | z | b | a.
            out: the output projection.
            conv: [C, 1, K] in full precision.
            a_log: [Hk * R] in full precision, as are ``dt_bias`` [Hk * R] and ``norm`` [Dv].
            dt_bias: added to the time step.
            norm: weight of the gated norm, applied as it is.
            eps: of the gated norm.
            layer: this layer's number among the recurrent ones.
        """
        self._shape, self._project, self._out, self._layer = shape, project, out, layer
        self._exact = conv.dtype
        self._taps = conv[:, 0].t().contiguous()  # [K, C], oldest first
        self._decay = -a_log.exp()
        self._dt_bias = dt_bias
        # The factor Dk^-0.5 on queries is taken out of the rule; a norm follows, and there it is this eps.
        self._norm = RmsNorm(norm, eps * shape.key_dim, dtype=conv.dtype)
        self._unit_floor = torch.full((), _UNIT_EPS**0.5, dtype=conv.dtype, device=conv.device)
        self._split = [shape.channels, shape.width, shape.num_value_heads, shape.num_value_heads]

    def __call__(self, residual: Tensor, x: Tensor, rows: Rows) -> Tensor:
        """The residual stream with the layer's output for ``x`` added."""
        s, n = self._shape, x.shape[0]
        inputs, z, rate, time = self._project(x).split_with_sizes(self._split, 1)
        if x.dtype != self._exact:
            z, rate, time = z.to(self._exact), rate.to(self._exact), time.to(self._exact)
        beta = rate.sigmoid().view(n, s.num_key_heads, s.values_per_key)
        g = F.softplus(time + self._dt_bias).mul_(self._decay).view(n, s.num_key_heads, s.values_per_key)
        if len(rows.items) == 1:
            mixed = self._mix(inputs, g, beta, rows.items[0])
        else:
            spans = [(slice(i.begin, i.end), i) for i in rows.items]
            mixed = torch.cat([self._mix(inputs[span], g[span], beta[span], item) for span, item in spans])
        mixed = self._norm(mixed.contiguous().view(n, s.num_value_heads, s.value_dim))
        mixed = mixed.view(n, s.width).mul_(F.silu(z))
        return self._out.added(residual, mixed if x.dtype == self._exact else mixed.to(x.dtype))

    def _mix(self, inputs: Tensor, g: Tensor, beta: Tensor, item: Item) -> Tensor:
        """One sequence: [N, Hk, R, Dv] from the convolution's inputs [N, C]."""
        s, n = self._shape, inputs.shape[0]
        store = item.session.recurrent
        if store is None:
            raise RuntimeError("a recurrent layer without a recurrent memory")
        window = torch.cat((store.tail(self._layer), inputs))  # [K - 1 + N, C]
        full = window if window.dtype == self._exact else window.to(self._exact)
        y = F.silu(self._convolve(full, n, item), inplace=True)
        split = 2 * s.num_key_heads * s.key_dim
        qk, v = y.split_with_sizes((split, s.width), 1)
        qk = qk.view(n, 2, s.num_key_heads, s.key_dim)
        length = torch.linalg.vector_norm(qk, 2, -1, True)
        qk = qk / torch.hypot(length, self._unit_floor)  # unit length
        v = v.view(n, s.num_key_heads, s.values_per_key, s.value_dim)
        steps = Steps(qk, v, g, beta)
        state = store.state(self._layer)
        if item.advances:
            store.advance(self._layer, window)
            return _advance(steps, state)
        if n == 1:
            outputs, deferred = one_node(steps, state)
        else:
            outputs, deferred = tree_nodes(steps, state, item.nodes.ancestry(state.dtype))
        store.defer(window, deferred)
        return outputs

    def _convolve(self, window: Tensor, n: int, item: Item) -> Tensor:
        """[N, C]: each node's taps over its own ancestors, the committed inputs behind the root."""
        taps = self._taps
        count = taps.shape[0]
        if n == 1:
            return (window * taps).sum(0, keepdim=True)
        if not item.nodes.is_chain:
            return window.index_select(0, item.conv_index(count)).view(n, count, -1).mul_(taps).sum(1)
        if n <= CHUNK:  # overlapping rows side by side: three operators, where a tap at a time takes twelve
            width = window.shape[1]
            return (window.as_strided((n, count, width), (width, width, 1)) * taps).sum(1)
        y = window[:n] * taps[0]
        for tap in range(1, count):
            y.addcmul_(window[tap : tap + n], taps[tap])
        return y


def _advance(steps: Steps, state: Tensor) -> Tensor:
    """A chain whose state moves to its end at once: whole chunks together, then the rest."""
    n = len(steps.values)
    whole = n - n % CHUNK
    outputs = [advance_chunks(steps.span(0, whole), state)] if whole else []
    if whole < n:
        rest, last = tree_nodes(steps.span(whole, n), state, None)
        advance_states(state[None], last.keys[None], last.updates[None], last.decays[None], n - whole - 1)
        outputs.append(rest)
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)
