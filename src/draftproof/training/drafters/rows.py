"""What the target made of each text: tapped hidden states and the rows its head reads, from one pass of each.

Dimensions: b sequences, T tokens of one, S of the longest of a batch, n taps, H_t target hidden.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from draftproof.models.decoder import Decoder
from draftproof.names import HiddenIndex
from draftproof.training.drafters.responses import Example
from draftproof.training.machine import exact

__all__ = ["Batch", "Rows"]


class Batch(NamedTuple):
    """Some texts side by side, filled up behind their ends."""

    tokens: Tensor
    """[b, S], on the CPU, as the spans: what is drawn is drawn there."""

    spans: Tensor
    """[b, 2]: tokens of the prompt, and of prompt and answer."""

    taps: Tensor
    """[b, S, n H_t], in the order of the taps."""

    normed: Tensor
    """[b, S, H_t], after the target's final norm."""

    def to(self, device: torch.device) -> "Batch":
        """The same there."""
        return Batch(*(part.to(device) for part in self))


class Rows:
    """Texts with the target's rows, each read when it is first asked for and then kept."""

    def __init__(self, target: Decoder, examples: Sequence[Example], taps: Sequence[HiddenIndex]) -> None:
        """Nothing is read yet.

        Args:
            target: frozen.
            examples: one at least.
            taps: hidden states, as ``models`` number them.
        """
        self._target, self._examples, self._taps = target, examples, tuple(taps)
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}

    def __len__(self) -> int:
        """How many texts."""
        return len(self._examples)

    def draw(self, count: int, generator: torch.Generator) -> Batch:
        """Some texts, none twice."""
        return self.batch(torch.randperm(len(self), generator=generator)[:count].tolist())

    def batch(self, indices: Sequence[int]) -> Batch:
        """The texts of these numbers."""
        examples = [self._examples[index] for index in indices]
        read = [self._read(index) for index in indices]
        tokens = pad_sequence([torch.tensor(e.tokens) for e in examples], batch_first=True)
        spans = torch.tensor([(e.num_prompt, len(e.tokens)) for e in examples])
        taps, normed = (pad_sequence([each[i] for each in read], batch_first=True) for i in (0, 1))
        return Batch(tokens, spans, taps, normed)

    def _read(self, index: int) -> tuple[Tensor, Tensor]:
        if index not in self._kept:
            tokens = self._examples[index].tokens
            session = self._target.new_session(room=len(tokens))
            with exact(self._target.embedding.device):
                read = self._target.prefill(session, tokens, capture=self._taps, with_normed=True)
            if read.normed is None:
                raise RuntimeError("a prefill without the rows it was asked for")
            taps = [read.hidden[tap] for tap in self._taps]
            # Out of inference mode: gradients flow through what is made of them.
            both = (torch.cat(taps, -1) if taps else read.normed[:, :0], read.normed)
            self._kept[index] = (both[0].clone(), both[1].float().clone())
        return self._kept[index]
