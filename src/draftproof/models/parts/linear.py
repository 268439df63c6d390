"""Linear maps in the memory layout that is fastest for a few rows on the machine at hand.

Four layouts, chosen once when a model is built:

- packed: the processor library's own blocked layout, for bfloat16 weights on a CPU that multiplies them.
  Measured (Zen 4, one thread, torch 2.13): one row 192 against 288 us at 3072 x 576, 16 rows 197 against 320.
- widened: bfloat16 weights on a CPU that cannot multiply them, kept as 32-bit numbers, which hold each one
  exactly and take twice the memory. Measured (AVX2, one thread): one row 222 against 402 us at that size,
  16 rows 1.1 against 6.2 ms.
- transposed: [inputs, outputs], for 32-bit weights on a CPU: 8 rows 453 against 967 us at the same size.
- plain: [outputs, inputs] as stored, everywhere else.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

__all__ = ["Linear"]

_PACK_ROWS = 16
"""Row count the packed layout is chosen for; it serves 1 to 256 rows (measured)."""


class Linear:
    """``y = x W^T + b`` over rows.

    Attributes:
        bias: [O] or None.
        bytes_read: of the weight, once for each call.
        num_outputs: O.
    """

    __slots__ = ("_apply", "_transposed", "bias", "bytes_read", "num_outputs")

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        """Choose the layout for ``weight`` [O, I] as stored, and convert."""
        self.bias, self.num_outputs = bias, len(weight)
        self.bytes_read = weight.numel() * weight.element_size()
        self._transposed: Tensor | None = None
        is_on_cpu = weight.device.type == "cpu"
        if is_on_cpu and weight.dtype == torch.bfloat16:
            self._apply = self._packed(weight) if _has_packing() else self._widened(weight)
        elif is_on_cpu and weight.dtype in {torch.float32, torch.float64}:
            self._transposed = weight.t().contiguous()
            self._apply = self._transpose(self._transposed)
        else:
            self._apply = self._plain(weight)

    def __call__(self, rows: Tensor) -> Tensor:
        """[N, I] to [N, O]."""
        return self._apply(rows)

    def added(self, residual: Tensor, rows: Tensor) -> Tensor:
        """``residual + self(rows)``, in the residual's precision."""
        if self._transposed is not None and self.bias is None:
            return torch.addmm(residual, rows, self._transposed)
        return residual + self._apply(rows)

    def _plain(self, weight: Tensor) -> Callable[[Tensor], Tensor]:
        bias = self.bias
        return lambda rows: F.linear(rows, weight, bias)

    def _packed(self, weight: Tensor) -> Callable[[Tensor], Tensor]:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, _PACK_ROWS)  # noqa: SLF001 - the operator has no public name
        bias, run = self.bias, torch.ops.mkldnn._linear_pointwise.default  # noqa: SLF001 - the same
        nothing: list[float] = []
        return lambda rows: run(rows, packed, bias, "none", nothing, "")

    def _widened(self, weight: Tensor) -> Callable[[Tensor], Tensor]:
        wide, dtype = weight.float().t().contiguous(), weight.dtype
        bias = None if self.bias is None else self.bias.float()
        self.bytes_read = wide.numel() * wide.element_size()
        if bias is None:
            return lambda rows: torch.mm(rows.float(), wide).to(dtype)
        return lambda rows: torch.addmm(bias, rows.float(), wide).to(dtype)

    def _transpose(self, transposed: Tensor) -> Callable[[Tensor], Tensor]:
        bias = self.bias
        if bias is None:
            return lambda rows: torch.mm(rows, transposed)
        return lambda rows: torch.addmm(bias, rows, transposed)


def _has_packing() -> bool:
    """Whether this build and this processor multiply bfloat16 in the library's blocked layout."""
    is_built = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call] # torch leaves it untyped
    return is_built and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001 - it has no public name
