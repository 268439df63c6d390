"""States of the Gated DeltaNet layers of one sequence, advanced along the accepted path after the fact.

A forward leaves the state alone. It puts aside, per layer, what each node would add: its key k, its update u
and the logarithm G of the decay since the committed state. Committing the path to node n is then

    S <- exp(G_n) S + sum over nodes m of the path of exp(G_n - G_m) k_m u_m^T

for all layers at once: no second forward, and no state per node.

Dimensions: L layers, Hk key heads, R value heads per key head, Dk, Dv, C channels, K taps, N nodes, P path.

Source: the chunked form of the gated delta rule (Yang, Kautz, Hatamizadeh 2024, arXiv:2412.06464).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from draftproof.cache.shapes import RecurrentShape

__all__ = ["Deferred", "RecurrentSnapshot", "RecurrentStore", "advance_states"]


class Deferred(NamedTuple):
    """What the nodes of one layer would do to its state, were they accepted."""

    keys: Tensor
    """[Hk, N, Dk]"""

    updates: Tensor
    """[Hk, R, N, Dv]"""

    decays: Tensor
    """[Hk, R, N], natural logarithm of the decay from the committed state to the node, itself included."""


@dataclass(frozen=True, slots=True)
class RecurrentSnapshot:
    """States and convolution tails at one moment."""

    states: Tensor
    tails: Tensor
    length: int


def advance_states(states: Tensor, keys: Tensor, updates: Tensor, decays: Tensor, end: int) -> None:
    """Move states along a chain of nodes, in place.

    Args:
        states: [L, Hk, Dk, R * Dv]
        keys: [L, Hk, N, Dk]
        updates: [L, Hk, R, N, Dv]
        decays: [L, Hk, R, N], as in ``Deferred``.
        end: the last node of the chain; nodes behind it are left out.
    """
    num_layers, heads, dk, width = states.shape
    r, dv = updates.shape[2], updates.shape[4]
    if end == 0:  # one node: nothing decays between it and itself
        flat = updates[:, :, :, 0].reshape(num_layers * heads, 1, width)
        states.view(num_layers, heads, dk, r, dv).mul_(decays[..., 0].exp().view(num_layers, heads, 1, r, 1))
        chain = keys[:, :, 0].reshape(num_layers * heads, dk, 1)
        states.view(num_layers * heads, dk, width).baddbmm_(chain, flat)
        return
    count = end + 1
    last = decays[..., end : end + 1]
    weighted = updates[:, :, :, :count] * (last - decays[..., :count]).exp_().unsqueeze(-1)
    flat = weighted.transpose(2, 3).reshape(num_layers * heads, count, width)
    states.view(num_layers, heads, dk, r, dv).mul_(last.exp().view(num_layers, heads, 1, r, 1))
    chain = keys[:, :, :count].reshape(num_layers * heads, count, dk)
    states.view(num_layers * heads, dk, width).baddbmm_(chain.transpose(1, 2), flat)


class RecurrentStore:
    """States and convolution tails of all recurrent layers."""

    __slots__ = ("_deferred", "_per_layer", "_windows", "length", "pending", "shape", "states", "tails")

    def __init__(
        self, shape: RecurrentShape, *, dtype: torch.dtype, state_dtype: torch.dtype, device: torch.device
    ) -> None:
        """Zero states: nothing has been read."""
        self.shape = shape
        self.length = 0
        self.pending = 0
        heads, width = shape.num_key_heads, shape.values_per_key * shape.value_dim
        # [L, Hk, Dk, R * Dv]: the value heads of one key head side by side, one product for all of them.
        self.states = torch.zeros(
            shape.num_layers, heads, shape.key_dim, width, dtype=state_dtype, device=device
        )
        # [L, K - 1, C]: the newest inputs of the convolution, oldest first.
        self.tails = torch.zeros(
            shape.num_layers, shape.conv_taps - 1, shape.conv_channels, dtype=dtype, device=device
        )
        self._per_layer = (self.states.unbind(0), self.tails.unbind(0))
        self._deferred: list[Deferred] = []
        self._windows: list[Tensor] = []

    @property
    def size_bytes(self) -> int:
        """Memory held between forwards."""
        return sum(t.numel() * t.element_size() for t in (self.states, self.tails))

    @property
    def pending_bytes(self) -> int:
        """Memory put aside by the running forward, all nodes and layers together."""
        aside = [t for d in self._deferred for t in (d.keys, d.updates, d.decays)] + self._windows
        return sum(t.numel() * t.element_size() for t in aside)

    @property
    def num_deferred(self) -> int:
        """Layers that have put their nodes aside."""
        return len(self._deferred)

    def begin(self, num_nodes: int) -> None:
        """Expect the layers of one forward."""
        self.pending = num_nodes

    def state(self, layer: int) -> Tensor:
        """[Hk, Dk, R * Dv], the committed state itself."""
        return self._per_layer[0][layer]

    def tail(self, layer: int) -> Tensor:
        """[K - 1, C], the committed inputs of the convolution themselves."""
        return self._per_layer[1][layer]

    def defer(self, window: Tensor, deferred: Deferred) -> None:
        """Put one layer's nodes aside; layers call in their own order.

        Args:
            window: [K - 1 + N, C], the committed tail and the nodes' inputs behind it.
            deferred: what they would add.
        """
        self._windows.append(window)
        self._deferred.append(deferred)

    def advance(self, layer: int, window: Tensor) -> None:
        """Keep the end of ``window`` at once; the caller has advanced the state itself."""
        self.tail(layer).copy_(window[window.shape[0] - self.shape.conv_taps + 1 :])

    def finish(self) -> None:
        """All layers have advanced at once: the nodes are committed."""
        self.length += self.pending
        self.rollback()

    def commit(self, path: Sequence[int]) -> None:
        """Advance states and tails along ``path``, root first."""
        self._commit_states(path)
        self._commit_tails(path)
        self.length += len(path)
        self.rollback()

    def _commit_states(self, path: Sequence[int]) -> None:
        keys = torch.stack([d.keys for d in self._deferred])
        updates = torch.stack([d.updates for d in self._deferred])
        decays = torch.stack([d.decays for d in self._deferred])
        end = len(path) - 1
        if any(node != place for place, node in enumerate(path)):
            chosen = torch.tensor(path, device=keys.device)
            keys, updates, decays = (
                keys.index_select(2, chosen),
                updates.index_select(3, chosen),
                decays.index_select(3, chosen),
            )
        advance_states(self.states, keys, updates, decays, end)

    def _commit_tails(self, path: Sequence[int]) -> None:
        taps = self.shape.conv_taps - 1
        rows = [*range(taps), *(taps + node for node in path)][-taps:] if taps else []
        if not rows:
            return
        if rows[-1] - rows[0] == taps - 1:  # a chain: the rows stand together
            ends = [window[rows[0] : rows[0] + taps] for window in self._windows]
        else:
            chosen = torch.tensor(rows, device=self.tails.device)
            ends = [window.index_select(0, chosen) for window in self._windows]
        torch.stack(ends, out=self.tails)

    def rollback(self) -> None:
        """Forget what was put aside."""
        self.pending = 0
        self._deferred.clear()
        self._windows.clear()

    def snapshot(self) -> RecurrentSnapshot:
        """A copy of states and tails."""
        return RecurrentSnapshot(self.states.clone(), self.tails.clone(), self.length)

    def restore(self, snapshot: RecurrentSnapshot) -> None:
        """Become what the snapshot was taken of."""
        self.states.copy_(snapshot.states)
        self.tails.copy_(snapshot.tails)
        self.length = snapshot.length
        self.rollback()
