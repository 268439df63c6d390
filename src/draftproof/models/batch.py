"""One forward over several sequences: their nodes side by side in one matrix, their memories apart.

Linear maps, norms and rotations run over all rows at once; only what touches a memory goes sequence by
sequence. A single sequence is the batch of one and pays nothing for it.
"""

from dataclasses import dataclass, field

from torch import Tensor

from draftproof.cache.session import Session
from draftproof.models.nodes import Nodes

__all__ = ["Item", "Rows"]


@dataclass(slots=True)
class Item:
    """One sequence's part of the rows."""

    session: Session
    nodes: Nodes
    begin: int
    end: int
    advances: bool
    """Whether the layers move its state at once (prefill) instead of putting the nodes aside."""

    masks: dict[int, Tensor | None] = field(default_factory=dict)
    """By number of the key-value store: layers that share a window share a mask."""

    conv_rows: Tensor | None = None

    def mask(self, store: int, repeats: int) -> Tensor | None:
        """The attention mask over a store's visible rows and the nodes, repeated for so many heads."""
        if store not in self.masks:
            kv = self.session.kv[store]
            mask = self.nodes.attention_mask(kv.visible, kv.shape.window)
            self.masks[store] = mask if mask is None or repeats == 1 else mask.repeat(repeats, 1)
        return self.masks[store]

    def conv_index(self, taps: int) -> Tensor:
        """Rows read by the convolution of a tree, built once for all layers."""
        if self.conv_rows is None:
            self.conv_rows = self.nodes.conv_rows(taps)
        return self.conv_rows


@dataclass(slots=True)
class Rows:
    """All sequences of one forward."""

    items: tuple[Item, ...]
    turns: Tensor
    """[rows, 1, D / 2] complex: the rotation of every row."""
