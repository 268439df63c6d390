"""Norm and MLP: the parts of a layer that look at one row at a time.

The residual stream is kept in 32-bit floats when the model runs in 16-bit ones: sums over many layers lose
nothing, and a norm needs 32-bit inputs anyway. Linear maps run in the model's precision.

Dimensions: N rows, H hidden, I intermediate.
"""

import math

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.models.parts.linear import Linear

__all__ = ["Mlp", "RmsNorm"]


class RmsNorm:
    """x / sqrt(mean(x^2) + eps) times a weight, over the last dimension.

    Computed as x / hypot(|x|, sqrt(n eps)) times sqrt(n) w: four small operators, where the library's own
    rms_norm is a composition of nine on a CPU.

    Source: Zhang, Sennrich 2019, arXiv:1910.07467; the zero-centred weight 1 + w is Qwen3-Next's.
    """

    __slots__ = ("_dtype", "_floor", "_weight")

    def __init__(self, weight: Tensor, eps: float, *, dtype: torch.dtype) -> None:
        """Prepare the weight.

        Args:
            weight: [..., H] in full precision, any 1 already added.
            eps: added to the mean square.
            dtype: of the results.
        """
        width = weight.shape[-1]
        self._weight = weight * math.sqrt(width)
        self._floor = torch.full((), math.sqrt(width * eps), dtype=weight.dtype, device=weight.device)
        self._dtype = dtype

    def __call__(self, x: Tensor) -> Tensor:
        """[..., H] in full precision to the same shape in the precision of the results."""
        length = torch.linalg.vector_norm(x, 2, -1, True)
        y = torch.div(x, torch.hypot(length, self._floor)).mul_(self._weight)
        return y if y.dtype == self._dtype else y.to(self._dtype)


class Mlp:
    """down(silu(gate(x)) * up(x)), gate and up in one product.

    Source: Shazeer 2020, arXiv:2002.05202 (SwiGLU).
    """

    __slots__ = ("_down", "_gate_up", "_split")

    def __init__(self, gate_up: Linear, down: Linear) -> None:
        """``gate_up``: rows gate | up."""
        self._gate_up, self._down = gate_up, down
        self._split = (gate_up.num_outputs // 2,) * 2

    def __call__(self, residual: Tensor, x: Tensor) -> Tensor:
        """The residual stream with the MLP of ``x`` added."""
        gate, up = self._gate_up(x).split_with_sizes(self._split, 1)
        inner = F.silu(gate).mul_(up)
        return self._down.added(residual, inner)
