"""What moves the weights: AdamW for all, or Muon for matrices with AdamW for the rest; warm-up and cosine.

Muon makes every update of a matrix orthogonal; small targets learn from about half as many tokens with it.

Source: AdamW: Loshchilov, Hutter 2019, arXiv:1711.05101; Muon: Jordan et al. 2024,
kellerjordan.github.io/posts/muon, with the update's scale of Liu et al. 2025, arXiv:2502.16982.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Optimiser", "Schedule"]

_ITERATION = (3.4445, -4.7750, 2.0315)
_NUM_ITERATIONS = 5


@dataclass(frozen=True, slots=True)
class Schedule:
    """How far each step goes."""

    steps: int
    learning_rate: float
    warmup: float = 0.04
    """Share of the steps in which the rate rises from 0."""

    floor: float = 0.0
    """What the cosine falls to, as a share of the highest rate."""

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        rising = max(1, round(self.steps * self.warmup))
        if step < rising:
            return self.learning_rate * (step + 1) / rising
        done = (step - rising) / max(1, self.steps - rising)
        return self.learning_rate * (self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * done)))


class Optimiser:
    """State and step over named parameters; the state is plain named tensors, as a checkpoint wants it.

    Attributes:
        state: per parameter ``NAME#mean`` and, where AdamW moves it, ``NAME#square``.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        *,
        betas: tuple[float, float] = (0.9, 0.95),
        weight_decay: float = 0.1,
        clip: float = 1.0,
        by_muon: Callable[[str, Tensor], bool] | None = None,
        muon_rate: float = 1.0,
    ) -> None:
        """Start from nothing.

        Args:
            parameters: leaves that require gradients.
            betas: of AdamW; the first is Muon's momentum as well.
            weight_decay: taken from matrices only, as a share of the rate.
            clip: largest norm of all gradients together.
            by_muon: which parameters Muon moves; None for none.
            muon_rate: their rate, as a multiple of AdamW's.
        """
        self._parameters, self._betas, self._decay, self._clip = parameters, betas, weight_decay, clip
        self._muon_rate = muon_rate
        self._muon = {n for n, p in parameters.items() if by_muon is not None and by_muon(n, p)}
        self.state: dict[str, Tensor] = {}
        for name, parameter in parameters.items():
            self.state[f"{name}#mean"] = torch.zeros_like(parameter, requires_grad=False)
            if name not in self._muon:
                self.state[f"{name}#square"] = torch.zeros_like(parameter, requires_grad=False)

    @torch.no_grad()
    def step(self, step: int, rate: float) -> float:
        """Move every parameter that has a gradient, and forget the gradients.

        Args:
            step: counted from 0.
            rate: learning rate of this step.

        Returns:
            The norm of all gradients before it was clipped.
        """
        moved = {name: p for name, p in self._parameters.items() if p.grad is not None}
        grads = {name: p.grad for name, p in moved.items() if p.grad is not None}
        norm = float(torch.linalg.vector_norm(torch.stack([g.norm() for g in grads.values()])))
        scale = min(1.0, self._clip / (norm + 1e-6))
        groups: dict[tuple[int, ...], list[str]] = {}
        for name, parameter in moved.items():
            grad = grads[name].mul_(scale)
            own = rate * self._muon_rate if name in self._muon else rate
            if parameter.dim() > 1:
                parameter.mul_(1 - own * self._decay)
            if name in self._muon:
                groups.setdefault(tuple(parameter.shape), []).append(name)
            else:
                self._adamw(name, parameter, grad, step, rate)
        for names in groups.values():  # matrices of one shape in one product
            self._orthogonal(names, [grads[name] for name in names], rate * self._muon_rate)
        for parameter in moved.values():
            parameter.grad = None
        return norm

    def _adamw(self, name: str, parameter: Tensor, grad: Tensor, step: int, rate: float) -> None:
        first, second = self._betas
        mean = self.state[f"{name}#mean"].lerp_(grad, 1 - first)
        square = self.state[f"{name}#square"].mul_(second).addcmul_(grad, grad, value=1 - second)
        root = (square / (1 - second ** (step + 1))).sqrt_().add_(1e-8)
        parameter.addcdiv_(mean, root, value=-rate / (1 - first ** (step + 1)))

    def _orthogonal(self, names: list[str], grads: list[Tensor], rate: float) -> None:
        momentum = self._betas[1]
        updates = []
        for name, grad in zip(names, grads, strict=True):
            mean = self.state[f"{name}#mean"].mul_(momentum).add_(grad)
            updates.append(grad.add(mean, alpha=momentum))
        for name, update in zip(names, _orthogonalised(torch.stack(updates)), strict=True):
            parameter = self._parameters[name]
            # The size AdamW's updates have: one rate and one decay serve both.
            parameter.add_(update, alpha=-rate * 0.2 * math.sqrt(max(parameter.shape)))


def _orthogonalised(updates: Tensor) -> Tensor:
    """[M, r, c]: the singular values of each moved near 1, by Newton-Schulz."""
    is_tall = updates.shape[1] > updates.shape[2]
    x = updates.transpose(1, 2) if is_tall else updates
    x = x.div(x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = _ITERATION
    for _ in range(_NUM_ITERATIONS):
        square = x @ x.transpose(1, 2)
        x = a * x + (b * square + c * square @ square) @ x
    found: Tensor = x.transpose(1, 2) if is_tall else x
    return found
