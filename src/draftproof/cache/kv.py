"""Keys and values of the attention layers of one sequence: written as a tail, kept by the accepted path.

Rows are positions. The committed rows come first; the nodes of the running forward lie behind them in node
order, whatever their depth, and ``commit`` gathers those of the accepted path to the front of that tail.
Room doubles when it runs out, so a token costs a constant number of copied rows on average; layers with a
window drop what no query can see any more, and their room stays bounded.

Dimensions: L layers, H heads of keys and values, D head dim, N nodes, R rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from draftproof.cache.shapes import KvShape

__all__ = ["KvSnapshot", "KvStore"]

SMALLEST_ROOM = 64
"""Rows allocated at first: enough for a short prompt, small beside any model."""


@dataclass(frozen=True, slots=True)
class KvSnapshot:
    """The committed rows of a store at one moment."""

    rows: Tensor
    """[2, L, H, R, D]"""

    start: int


class KvStore:
    """Keys and values of all layers that share one window."""

    __slots__ = ("_data", "_keys", "_values", "count", "pending", "shape", "start")

    def __init__(self, shape: KvShape, *, dtype: torch.dtype, device: torch.device, room: int = 0) -> None:
        """Allocate ``room`` rows at once; more follow as they are needed."""
        self.shape = shape
        self.start = 0
        self.count = 0
        self.pending = 0
        rows = max(room, SMALLEST_ROOM)
        if shape.window is not None:
            rows = min(rows, max(2 * shape.window, SMALLEST_ROOM))
        self._adopt(
            torch.zeros(
                2, shape.num_layers, shape.num_heads, rows, shape.head_dim, dtype=dtype, device=device
            )
        )

    def _adopt(self, data: Tensor) -> None:
        self._data = data
        self._keys = data[0].unsqueeze(1).unbind(0)
        self._values = data[1].unsqueeze(1).unbind(0)

    @property
    def length(self) -> int:
        """Positions committed, those that left the window included."""
        return self.start + self.count

    @property
    def visible(self) -> int:
        """Committed rows that a query at the next position can see."""
        return self.count if self.shape.window is None else min(self.count, self.shape.window - 1)

    @property
    def size_bytes(self) -> int:
        """Memory held, room included."""
        return self._data.numel() * self._data.element_size()

    def begin(self, num_nodes: int) -> None:
        """Make room for the tail of one forward."""
        self.pending = num_nodes
        if self.count + num_nodes > self._data.shape[3]:
            keep = self.visible
            room = self._data.shape[3]
            # A windowed store is compacted when full; it grows only if the window itself does not fit twice.
            while room < keep + num_nodes or (self.shape.window is None and room < 2 * self.count):
                room *= 2
            self._move(keep, room)

    def _move(self, keep: int, room: int) -> None:
        """The last ``keep`` rows to the front of a block of ``room`` rows."""
        old = self._data[:, :, :, self.count - keep : self.count]
        if room == self._data.shape[3]:
            self._data[:, :, :, :keep] = old.clone()
        else:
            grown = self._data.new_zeros((*self._data.shape[:3], room, self.shape.head_dim))
            grown[:, :, :, :keep] = old
            self._adopt(grown)
        self.start += self.count - keep
        self.count = keep

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Put the nodes' keys and values behind the committed rows.

        Args:
            layer: of this store, counted from 0.
            keys: [N, H, D]
            values: [N, H, D]

        Returns:
            Two views [1, H, visible + N, D]: what the nodes may attend to, before any mask.
        """
        k, v, n, at = self._keys[layer], self._values[layer], self.pending, self.count
        if n == 1:  # the common step, in as few operators as it takes
            k.select(2, at).copy_(keys)
            v.select(2, at).copy_(values)
        else:
            k.narrow(2, at, n).copy_(keys.transpose(0, 1))
            v.narrow(2, at, n).copy_(values.transpose(0, 1))
        seen = self.visible
        return k.narrow(2, at - seen, seen + n), v.narrow(2, at - seen, seen + n)

    def commit(self, path: Sequence[int]) -> None:
        """Keep the rows of the nodes on ``path``, in that order, and drop the rest of the tail."""
        if any(node != place for place, node in enumerate(path)):
            chosen = torch.tensor(path, device=self._data.device).add_(self.count)
            kept = self._data.index_select(3, chosen)  # gathered first: source and goal may overlap
            self._data[:, :, :, self.count : self.count + len(path)] = kept
        self.count += len(path)
        self.pending = 0

    def rollback(self) -> None:
        """Forget the tail."""
        self.pending = 0

    def cut(self, length: int) -> None:
        """Keep the first ``length`` rows; only for a store without a window, which drops none."""
        self.count = length - self.start

    def snapshot(self) -> KvSnapshot:
        """A copy of what is committed and still visible."""
        seen = self.visible
        rows = self._data[:, :, :, self.count - seen : self.count].clone()
        return KvSnapshot(rows, self.length - seen)

    def restore(self, snapshot: KvSnapshot) -> None:
        """Become what the snapshot was taken of."""
        rows = snapshot.rows.shape[3]
        if rows > self._data.shape[3]:
            self._adopt(self._data.new_zeros((*self._data.shape[:3], 2 * rows, self.shape.head_dim)))
        self._data[:, :, :, :rows] = snapshot.rows
        self.start, self.count, self.pending = snapshot.start, rows, 0
