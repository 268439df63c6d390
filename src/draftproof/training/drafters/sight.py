"""What a slot of a training block may see: the laws that make many blocks in one pass equal to one at a time.

Context rows strictly before the anchor, the block's own slots, nothing of any other block.
Source: DFlash, arXiv:2602.06036; dflash 0.1.0 model.py for windows and causality of sliding layers.
Dimensions: b sequences, N anchors of each, B slots of a block, S context rows.
"""

import torch
from torch import Tensor

from draftproof.models.dflash.shape import DflashLayer

__all__ = ["block_seen", "context_seen"]


def context_seen(anchors: Tensor, num_rows: int, num_slots: int, layer: DflashLayer) -> Tensor:
    """[b, N, B or 1, S] bool: the context rows of every slot; one row for all slots where none differs.

    Args:
        anchors: [b, N] positions.
        num_rows: S.
        num_slots: B.
        layer: its window counts from the slot, itself included.
    """
    rows = torch.arange(num_rows, device=anchors.device)
    seen = rows < anchors[..., None, None]
    if layer.window is None:
        return seen
    slots = anchors[..., None, None] + torch.arange(num_slots, device=anchors.device)[:, None]
    return seen & (slots - rows < layer.window)


def block_seen(num_slots: int, layer: DflashLayer, device: torch.device) -> Tensor:
    """[B, B] bool: the slots of its own block that every slot sees."""
    slots = torch.arange(num_slots, device=device)
    ahead = slots - slots[:, None]  # how far a column lies ahead of its row
    seen = torch.ones_like(ahead, dtype=torch.bool) if not layer.is_causal else ahead <= 0
    return seen if layer.window is None else seen & (ahead.abs() < layer.window)
