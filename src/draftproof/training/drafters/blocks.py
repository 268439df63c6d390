"""Where the blocks of one training pass stand, and which token each of their slots must name.

Slot k of a block behind the anchor at p has the label at p + k: its own position, no shift.
Source: DFlash, arXiv:2602.06036, appendix A; SpecForge dflash_family_model.
Dimensions: b sequences, S positions, N anchors of each, B slots of a block.
"""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Blocks", "draw_blocks"]


class Blocks(NamedTuple):
    """The blocks of a pass."""

    anchors: Tensor
    """[b, N] positions."""

    labels: Tensor
    """[b, N, B] token ids; those not counted are of no meaning."""

    counted: Tensor
    """[b, N, B] bool: slots with a label; never the anchor's own."""

    def to(self, device: torch.device) -> "Blocks":
        """The same there."""
        return Blocks(*(part.to(device) for part in self))


def draw_blocks(
    tokens: Tensor, spans: Tensor, *, num_anchors: int, num_slots: int, generator: torch.Generator
) -> Blocks:
    """Random anchors, no position twice: the last prompt token, or any response token with one behind it.

    Args:
        tokens: [b, S]
        spans: [b, 2]: tokens of the prompt, and of prompt and response, of each sequence.
        num_anchors: N; a sequence with fewer positions has blocks that count nothing.
        num_slots: B.
        generator: decides; the same state gives the same blocks.
    """
    b, length = tokens.shape
    at = torch.arange(length)
    may = (at >= spans[:, :1] - 1) & (at < spans[:, 1:] - 1)
    order = torch.rand(b, length, generator=generator).masked_fill_(~may, 2.0)
    drawn = order.topk(min(num_anchors, length), dim=1, largest=False)
    anchors, is_drawn = drawn.indices, drawn.values < 1.0
    places = anchors[..., None] + torch.arange(num_slots)
    counted = (places < spans[:, 1, None, None]) & is_drawn[..., None]
    counted[..., 0] = False
    labels = tokens.gather(1, places.clamp(max=length - 1).flatten(1)).view(places.shape)
    return Blocks(anchors, labels, counted)
