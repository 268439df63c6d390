"""Rotary positions for training: heads in the checkpoint's own order, angles of any positions.

The engine reorders rows at load so that partners stand side by side; here dimension i turns with i + r/2.
Dimensions: D head dim, r rotary dimensions.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from draftproof.models.parts.rope import inverse_frequencies
from draftproof.models.target.shape import RopeShape

__all__ = ["Turn", "turn_at"]

Turn = Callable[[Tensor], Tensor]
"""Rotates heads [..., D] whose leading dimensions fit the positions it was made for."""


def turn_at(rope: RopeShape, positions: Tensor) -> Turn:
    """The rotation of heads at ``positions`` [...]; their shape must broadcast with the heads' [..., 1]."""
    frequencies, magnitude = inverse_frequencies(rope)
    angles = positions.to(torch.float32)[..., None] * frequencies.to(positions.device)
    cos, sin = angles.cos() * magnitude, angles.sin() * magnitude
    r = rope.rotary_dim

    def turn(heads: Tensor) -> Tensor:
        a, b = heads[..., : r // 2], heads[..., r // 2 : r]
        turned = (a * cos - b * sin, b * cos + a * sin)
        return torch.cat((*turned, heads[..., r:]), -1) if heads.shape[-1] > r else torch.cat(turned, -1)

    return turn
