"""Norm and MLP: the parts of a layer that look at one row at a time.

The residual stream is kept in 32-bit floats when the model runs in 16-bit ones: sums over many layers lose
nothing, and a norm needs 32-bit inputs anyway. Linear maps run in the model's precision.

Dimensions: N rows, H hidden, I intermediate.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.models.linear import Linear

__all__ = ["Mlp", "RmsNorm"]


class RmsNorm:
    """x / sqrt(mean(x^2) + eps) times a weight, over the last dimension.

    Source: Zhang, Sennrich 2019, arXiv:1910.07467; the zero-centred weight 1 + w is Qwen3-Next's.
    """

    __slots__ = ("_dtype", "_eps", "_scale", "_weight")

    def __init__(self, weight: Tensor, eps: float, *, dtype: torch.dtype) -> None:
        """``weight``: [H] in full precision, any 1 already added. ``dtype``: of the results."""
        self._weight = weight
        self._eps = torch.full((), eps, dtype=weight.dtype, device=weight.device)
        self._scale = 1 / weight.shape[-1]
        self._dtype = dtype

    def __call__(self, x: Tensor) -> Tensor:
        """[N, H] in full precision to [N, H] in the model's."""
        # Four small operators; the library's own rms_norm is a composition of eight on a CPU.
        length = torch.linalg.vector_norm(x, 2, -1, keepdim=True)
        scale = torch.addcmul(self._eps, length, length, value=self._scale).rsqrt_()
        y = (x * scale).mul_(self._weight)
        return y if y.dtype == self._dtype else y.to(self._dtype)


class Mlp:
    """down(silu(gate(x)) * up(x)), gate and up in one product.

    Source: Shazeer 2020, arXiv:2002.05202 (SwiGLU).
    """

    __slots__ = ("_down", "_gate_up", "_width")

    def __init__(self, gate_up: Linear, down: Linear, width: int) -> None:
        """``width``: I."""
        self._gate_up, self._down, self._width = gate_up, down, width

    def __call__(self, residual: Tensor, x: Tensor) -> Tensor:
        """The residual stream with the MLP of ``x`` added."""
        both = self._gate_up(x)
        inner = F.silu(both.narrow(1, 0, self._width)).mul_(both.narrow(1, self._width, self._width))
        return self._down.added(residual, inner)
