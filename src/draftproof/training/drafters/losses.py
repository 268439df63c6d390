"""What a drafter is trained to make small, and what its passes say about acceptance.

Sources: decayed cross entropy: DFlash, arXiv:2602.06036; D-PACE: arXiv:2605.18810; step weights of the
training-time test: SafeAILab/EAGLE traineagle3.
Dimensions: B slots of a block, V vocabulary.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

__all__ = ["block_loss", "decay_weights", "pace_weights", "run_lengths"]


def decay_weights(counted: Tensor, gamma: float) -> Tensor:
    """[..., B]: exp(-(k - 1) / gamma) of slot k where it counts, else 0."""
    slots = torch.arange(counted.shape[-1], device=counted.device, dtype=torch.float32)
    return torch.exp((1 - slots) / gamma) * counted


def pace_weights(chances: Tensor, counted: Tensor, alpha: float) -> Tensor:
    """[..., B] D-PACE weights: the acceptance that a slot's own token bears on, itself and all behind it.

    Args:
        chances: [..., B], of the right token in each slot.
        counted: [..., B] bool.
        alpha: how far the chances are drawn towards 1, so that a bad early slot does not silence the others.
    """
    smooth = torch.where(counted, (1 - alpha) * chances.detach() + alpha, 0.0)
    smooth = torch.cat((torch.ones_like(smooth[..., :1]), smooth[..., 1:]), -1)  # the anchor is given
    prefix = smooth.cumprod(-1) * counted
    return prefix.flip(-1).cumsum(-1).flip(-1) * counted


def block_loss(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """The weighted mean of the cross entropy.

    Args:
        logits: [M, V] of the slots that count.
        labels: [M]
        weights: [M], not all 0.
    """
    return (F.cross_entropy(logits, labels, reduction="none") * weights).sum() / weights.sum()


def run_lengths(is_right: Tensor, counted: Tensor) -> Tensor:
    """[B]: of the blocks that reach slot k, the share that is right in slots 1 to k.

    Their sum over k >= 1, and 1, is the acceptance length to be expected where texts do not end.
    """
    anchor = torch.ones_like(is_right[..., :1])
    runs = torch.cat((anchor, is_right[..., 1:] & counted[..., 1:]), -1).cumprod(-1).flatten(0, -2)
    reached = counted.flatten(0, -2)
    return (runs * reached).sum(0) / reached.sum(0).clamp(min=1)
