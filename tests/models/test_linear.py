"""models.parts.linear: whatever the layout, a linear map is x W^T + b."""

import pytest
import torch
from torch import Tensor

from draftproof.models.parts.linear import Linear

pytestmark = pytest.mark.engine

BOUND = {torch.float64: 1e-14, torch.float32: 2e-6, torch.bfloat16: 1e-2, torch.float16: 2e-3}
"""Relative to the largest output: a few units in the last place of each."""


def noise(*shape: int, seed: int, dtype: torch.dtype) -> Tensor:
    """Seeded noise."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 16, 300])
def test_any_layout_is_the_product(dtype: torch.dtype, *, has_bias: bool, count: int) -> None:
    """The same numbers for no row, one, a few and many, with and without a bias and a residual."""
    weight, rows = noise(24, 40, seed=1, dtype=dtype), noise(count, 40, seed=2, dtype=dtype)
    bias = noise(24, seed=3, dtype=dtype) if has_bias else None
    exact = rows.double() @ weight.double().T + (0 if bias is None else bias.double())
    residual = noise(count, 24, seed=4, dtype=torch.float64 if dtype == torch.float64 else torch.float32)
    linear = Linear(weight, bias)
    found, added = linear(rows), linear.added(residual, rows)
    assert found.shape == added.shape == (count, 24)
    assert found.dtype == dtype
    assert added.dtype == residual.dtype
    assert linear.bytes_read in {24 * 40 * dtype.itemsize, 24 * 40 * 4}, "as stored, or widened to 32 bits"
    if count:
        scale = BOUND[dtype] * float(exact.abs().max())
        assert float((found.double() - exact).abs().max()) < scale
        assert float((added.double() - residual.double() - exact).abs().max()) < scale
