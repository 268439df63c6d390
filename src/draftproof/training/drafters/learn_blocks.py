"""The task of a DFlash drafter: name what the target says behind random anchors of its own answers.

Dimensions: M slots that count.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from draftproof.training.drafters.blocks import draw_blocks
from draftproof.training.drafters.dflash import DflashNet
from draftproof.training.drafters.losses import block_loss, decay_weights, pace_weights, run_lengths
from draftproof.training.drafters.recipe import BlockLoss
from draftproof.training.drafters.rows import Rows
from draftproof.training.loop import Figures

__all__ = ["BlockTask"]


class BlockTask:
    """One batch of texts a step, some anchors in each."""

    def __init__(self, net: DflashNet, rows: Rows, loss: BlockLoss, *, batch: int, fingerprint: str) -> None:
        """``batch``: texts of a step; ``fingerprint``: of all that decides the outcome."""
        self.net, self._rows, self._loss, self._batch = net, rows, loss, batch
        self._fingerprint = fingerprint

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """The drafter's own weights."""
        return dict(self.net.named_parameters())

    @property
    def fingerprint(self) -> str:
        """As given."""
        return self._fingerprint

    def by_muon(self, name: str, parameter: Tensor) -> bool:
        """Every matrix."""
        del name
        return parameter.dim() > 1

    def loss(self, step: int, generator: torch.Generator) -> tuple[Tensor, Figures]:
        """The weighted cross entropy, and how far blocks would have been accepted."""
        del step
        batch = self._rows.draw(self._batch, generator)
        slots = self.net.shape.block_size
        blocks = draw_blocks(
            batch.tokens, batch.spans, num_anchors=self._loss.anchors, num_slots=slots, generator=generator
        )
        device = self.net.embedding.device
        batch, blocks = batch.to(device), blocks.to(device)
        hidden = self.net(batch.taps, batch.tokens, blocks.anchors)
        logits, labels = self.net.logits(hidden[blocks.counted]).float(), blocks.labels[blocks.counted]
        loss = block_loss(logits, labels, self._weights(logits, labels, blocks.counted))
        is_right = torch.zeros_like(blocks.counted)
        is_right[blocks.counted] = logits.detach().argmax(-1) == labels
        runs = run_lengths(is_right, blocks.counted)
        return loss, {
            "loss": loss.item(),
            "accuracy": float(is_right.sum() / blocks.counted.sum()),
            "first": float(runs[1]),
            "tau": 1 + float(runs.sum()),
        }

    def _weights(self, logits: Tensor, labels: Tensor, counted: Tensor) -> Tensor:
        """A number for each slot that counts: [M]."""
        if self._loss.kind == "decay":
            return decay_weights(counted, self._loss.gamma)[counted]
        chances = torch.zeros(counted.shape, device=logits.device)
        chances[counted] = logits.detach().softmax(-1).gather(1, labels[:, None])[:, 0]
        return pace_weights(chances, counted, self._loss.alpha)[counted]
