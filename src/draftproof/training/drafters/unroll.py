"""The training-time test: every pair is the root of a chain of guesses, all chains run side by side.

Step 0 reads the true pairs of a sequence. In step s every pair i guesses its s-th token further: its row
stands at position i + s and sees the true pairs up to i and the earlier guesses of its own chain, as in
decoding.
Source: EAGLE-3, arXiv:2503.01840; SafeAILab/EAGLE traineagle3.
Dimensions: b sequences, P pairs, Hq/Hk heads, D head dim.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.models.target.shape import RopeShape
from draftproof.training.drafters.turning import Turn, turn_at

__all__ = ["Chains"]


class Chains:
    """Keys and values of the steps so far, of one layer."""

    def __init__(self, rope: RopeShape) -> None:
        """Before step 0."""
        self._rope = rope
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []

    @property
    def step(self) -> int:
        """Which step comes next."""
        return len(self._keys)

    def turn(self, num_pairs: int, device: torch.device) -> Turn:
        """The rotation of [b, H, P, D] heads in the step that comes next."""
        return turn_at(self._rope, torch.arange(num_pairs, device=device) + self.step)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the next step's rows make of all they see.

        Args:
            q: [b, Hq, P, D], turned.
            k: [b, Hk, P, D], turned.
            v: [b, Hk, P, D]

        Returns:
            [b, P, Hq D]
        """
        shared = q.shape[1] // k.shape[1]
        k, v = (part.repeat_interleave(shared, 1) for part in (k, v))
        self._keys.append(k)
        self._values.append(v)
        if len(self._keys) == 1:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mixed = self._branch(q * q.shape[-1] ** -0.5)
        return mixed.transpose(1, 2).flatten(2)

    def _branch(self, q: Tensor) -> Tensor:
        """[b, Hq, P, D]: the true pairs up to the chain's root, then the chain itself."""
        pairs = q.shape[2]
        later = torch.ones(pairs, pairs, dtype=torch.bool, device=q.device).triu(1)
        true = (q @ self._keys[0].transpose(2, 3)).masked_fill(later, float("-inf"))
        own = torch.stack([(q * k).sum(-1) for k in self._keys[1:]], -1)
        weights = torch.cat((true, own), -1).softmax(-1)
        mixed = weights[..., :pairs] @ self._values[0]
        for number, v in enumerate(self._values[1:]):
            mixed = mixed + weights[..., pairs + number, None] * v
        return mixed
