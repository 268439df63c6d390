"""The task of EAGLE-3 and of a head of multi-token prediction: guess on from one's own guesses.

Dimensions: b sequences, S positions, P = S - 1 pairs, V vocabulary, D of it that can be drafted.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from draftproof.training.drafters.recipe import ChainLoss
from draftproof.training.drafters.rows import Batch, Rows
from draftproof.training.loop import Figures
from draftproof.training.machine import exact

__all__ = ["ChainTask"]


class ChainTask:
    """One batch of texts a step, every pair of theirs the root of a chain."""

    def __init__(
        self,
        net: nn.Module,
        guess: Callable[[Batch, int], list[Tensor]],
        rows: Rows,
        loss: ChainLoss,
        *,
        head: Tensor,
        target_ids: Tensor,
        batch: int,
        fingerprint: str,
    ) -> None:
        """Put it together.

        Args:
            net: what is trained.
            guess: its logits [b, P, D] for each step, of a batch and a number of steps.
            rows: the texts.
            loss: how far and how much.
            head: [V, H] the target's, which scores what the guesses are held to.
            target_ids: [D] ids that can be drafted.
            batch: texts of a step.
            fingerprint: of all that decides the outcome.
        """
        self.net, self._guess, self._rows, self._loss = net, guess, rows, loss
        self._head, self._batch, self._fingerprint = head.detach(), batch, fingerprint
        count = torch.arange(len(target_ids), device=head.device)
        self._ids = target_ids.to(head.device)
        self._row = torch.full((len(head),), -1, device=head.device).index_copy_(0, self._ids, count)

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """The drafter's own weights."""
        return dict(self.net.named_parameters())

    @property
    def fingerprint(self) -> str:
        """As given."""
        return self._fingerprint

    def by_muon(self, name: str, parameter: Tensor) -> bool:
        """Every matrix but a head."""
        return parameter.dim() > 1 and "lm_head" not in name

    def loss(self, step: int, generator: torch.Generator) -> tuple[Tensor, Figures]:
        """Cross entropy against the target's distribution, later guesses weighing less."""
        del step
        device = self._head.device
        batch = self._rows.draw(self._batch, generator).to(device)
        guesses = self._guess(batch, self._loss.depth)
        with exact(device):
            teacher = (batch.normed @ self._head.T)[..., self._ids].log_softmax(-1)
        total, weights = torch.zeros((), device=device), 0.0
        alive, figures, tau = torch.ones_like(batch.tokens[:, 1:], dtype=torch.bool), {}, 1.0
        for number, logits in enumerate(guesses):
            wanted, counted = self._row[_behind(batch.tokens, 2 + number)], _counted(batch, number)
            given = _behind(teacher, 1 + number)
            can = (wanted >= 0) & counted  # what cannot be drafted teaches nothing
            nats = -(given.exp() * logits.float().log_softmax(-1)).sum(-1)
            weight = self._loss.decay**number
            total = total + weight * nats[can].mean()
            weights += weight
            alive = alive & (logits.detach().argmax(-1) == wanted)
            share = float((alive & counted).sum() / counted.sum())
            figures[f"r{number + 1}"], tau = share, tau + share
        loss = total / weights
        return loss, {"loss": loss.item(), **figures, "tau": tau}


def _behind(rows: Tensor, distance: int) -> Tensor:
    """[b, P, ...]: for pair i the row i + distance, the last one where the text has ended."""
    pairs = rows.shape[1] - 1
    at = (torch.arange(pairs, device=rows.device) + distance).clamp_(max=pairs)
    return rows[:, at]


def _counted(batch: Batch, step: int) -> Tensor:
    """[b, P]: whether the token at i + 2 + step is one of the answer."""
    places = torch.arange(batch.tokens.shape[1] - 1, device=batch.spans.device) + 2 + step
    return (places >= batch.spans[:, :1]) & (places < batch.spans[:, 1:])
