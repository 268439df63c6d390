"""What a slot of a training block may see: the laws that make many blocks in one pass equal to one at a time.

Context rows strictly before the anchor, the block's own slots, nothing of any other block.
Source: DFlash, arXiv:2602.06036; dflash 0.1.0 model.py for windows and causality of sliding layers.
Dimensions: b sequences, N anchors of each, B slots of a block, S context rows, C of them near an anchor.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from draftproof.models.dflash.shape import DflashLayer

__all__ = ["Sight", "block_seen", "context_seen", "near_rows", "sight_of"]


class Sight(NamedTuple):
    """What the blocks of one pass see in layers of one kind."""

    rows: Tensor
    """[b, N, C] the context rows worth looking at, below 0 where there is none."""

    mask: Tensor
    """[b N, 1, B, C + B] added to the scores: 0, or -inf for what is unseen."""


def sight_of(anchors: Tensor, num_rows: int, num_slots: int, layer: DflashLayer) -> Sight:
    """The sight of blocks behind ``anchors`` [b, N] in a sequence of S rows."""
    rows = near_rows(anchors, num_rows, layer)
    context = context_seen(anchors, rows, num_slots, layer)  # [b, N, B, C]
    own = block_seen(num_slots, layer, anchors.device).expand(*anchors.shape, -1, -1)
    seen = torch.cat((context, own), -1).flatten(0, 1)[:, None]
    mask = torch.zeros(seen.shape, device=seen.device)
    return Sight(rows, mask.masked_fill_(~seen, float("-inf")))


def near_rows(anchors: Tensor, num_rows: int, layer: DflashLayer) -> Tensor:
    """[b, N, C]: all rows, or those a window before the anchor can reach."""
    if layer.window is None or layer.window > num_rows:
        return torch.arange(num_rows, device=anchors.device).expand(*anchors.shape, -1)
    return anchors[..., None] + torch.arange(1 - layer.window, 0, device=anchors.device)


def context_seen(anchors: Tensor, rows: Tensor, num_slots: int, layer: DflashLayer) -> Tensor:
    """[b, N, B, C] bool: which of the context rows each slot sees.

    Args:
        anchors: [b, N] positions.
        rows: [b, N, C] positions; those below 0 are seen by nobody.
        num_slots: B.
        layer: its window counts from the slot, itself included.
    """
    rows, first = rows[..., None, :], anchors[..., None, None]
    slots = first + torch.arange(num_slots, device=anchors.device)[:, None]
    seen = (rows >= 0) & (rows < first)
    return (
        seen.expand(-1, -1, num_slots, -1) if layer.window is None else seen & (slots - rows < layer.window)
    )


def block_seen(num_slots: int, layer: DflashLayer, device: torch.device) -> Tensor:
    """[B, B] bool: the slots of its own block that every slot sees."""
    slots = torch.arange(num_slots, device=device)
    ahead = slots - slots[:, None]  # how far a column lies ahead of its row
    seen = ahead <= 0 if layer.is_causal else torch.ones_like(ahead, dtype=torch.bool)
    return seen if layer.window is None else seen & (ahead.abs() < layer.window)
