"""Rotary position embedding as one complex product per head.

Checkpoints rotate dimension i of a head with dimension i + r/2 (r rotary dimensions). The rows of the query
and key projections are reordered at load so that partners stand side by side; scores do not notice, since
queries and keys are reordered alike. A head is then D/2 complex numbers, each multiplied by exp(i p f_j).
Dimensions that do not rotate are multiplied by 1.

Source: Su et al. 2021, arXiv:2104.09864; llama3 scaling: Llama 3.1's published rope rule; YaRN: Peng et al.
2023, arXiv:2309.00071, with the parameters as transformers 5.24.0 reads them.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from draftproof.models.target.shape import RopeShape

__all__ = ["RopeTable", "inverse_frequencies", "pair_order", "rotate"]

SMALLEST_TABLE, LARGEST_TABLE = 256, 16384
"""Positions kept; those beyond the largest table are worked out whenever they are asked for."""


def pair_order(head_dim: int, rotary_dim: int) -> list[int]:
    """The head's dimensions in the order that puts rotating partners side by side."""
    half = rotary_dim // 2
    paired = [i for j in range(half) for i in (j, j + half)]
    return paired + list(range(rotary_dim, head_dim))


def inverse_frequencies(rope: RopeShape) -> tuple[Tensor, float]:
    """The angle per position of each rotating pair, and the factor on cosine and sine.

    Returns:
        [r / 2] float32 radians per position, and a float that is 1.0 except for YaRN.
    """
    exponents = torch.arange(0, rope.rotary_dim, 2, dtype=torch.float32) / rope.rotary_dim
    # 32-bit floats on purpose: models are trained and served with frequencies of this precision.
    plain = 1.0 / (rope.theta**exponents)
    if rope.divisors:
        plain = plain / torch.tensor(rope.divisors, dtype=torch.float32)
    given = dict(rope.scaling)
    match rope.kind:
        case "linear":
            return plain / given["factor"], 1.0
        case "llama3":
            return _llama3(plain, given), 1.0
        case "yarn":
            return _yarn(plain, rope, given)
        case _:
            return plain, 1.0


def _llama3(plain: Tensor, given: dict[str, float | bool]) -> Tensor:
    """Slow pairs are slowed by the factor, fast ones kept, those between blended."""
    trained = given["original_max_position_embeddings"]
    low, high, factor = given["low_freq_factor"], given["high_freq_factor"], given["factor"]
    wavelength = 2 * math.pi / plain
    blend = (trained / wavelength - low) / (high - low)
    blended = (1 - blend) * plain / factor + blend * plain
    slow = torch.where(wavelength > trained / low, plain / factor, plain)
    between = (wavelength >= trained / high) & (wavelength <= trained / low)
    return torch.where(between, blended, slow)


def _yarn(plain: Tensor, rope: RopeShape, given: dict[str, float | bool]) -> tuple[Tensor, float]:
    """Pairs that turn often within the trained length are kept, those that turn rarely are slowed."""
    factor, trained = given["factor"], given["original_max_position_embeddings"]
    fast, slow = given.get("beta_fast", 32.0), given.get("beta_slow", 1.0)
    low, high = (_pair_of_turns(turns, rope, trained) for turns in (fast, slow))
    if given.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rope.rotary_dim - 1)
    width = high - low or 0.001  # the ramp must not divide by nothing
    pairs = torch.arange(rope.rotary_dim // 2, dtype=torch.float32)
    kept = 1 - ((pairs - low) / width).clamp(0, 1)
    return plain / factor * (1 - kept) + plain * kept, _yarn_magnitude(factor, given)


def _pair_of_turns(turns: float, rope: RopeShape, trained: float) -> float:
    """The pair that turns so often within the trained length."""
    return rope.rotary_dim * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))


def _yarn_magnitude(factor: float, given: dict[str, float | bool]) -> float:
    if "attention_factor" in given:
        return float(given["attention_factor"])
    if given.get("mscale") and given.get("mscale_all_dim"):
        return _grown(factor, given["mscale"]) / _grown(factor, given["mscale_all_dim"])
    return _grown(factor, 1.0)


def _grown(factor: float, scale: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0


class RopeTable:
    """exp(i p f_j) for the positions so far asked for; doubles when a later one comes."""

    __slots__ = ("_frequencies", "_magnitude", "_rotating", "_table", "head_dim")

    def __init__(self, rope: RopeShape, head_dim: int, *, dtype: torch.dtype, device: torch.device) -> None:
        """``dtype``: float64 for a model in 64-bit floats, float32 for all others."""
        self.head_dim = head_dim
        frequencies, self._magnitude = inverse_frequencies(rope)
        self._frequencies = frequencies.to(device, dtype)
        self._rotating = rope.rotary_dim // 2
        self._table = self._rows(torch.arange(SMALLEST_TABLE, device=device))

    def _rows(self, positions: Tensor) -> Tensor:
        angles = positions.to(self._frequencies.dtype)[:, None] * self._frequencies  # [P, r / 2]
        turned = torch.polar(torch.full_like(angles, self._magnitude), angles)
        rows = turned.new_ones(len(positions), 1, self.head_dim // 2)
        rows[:, 0, : self._rotating] = turned
        return rows

    def _reach(self, end: int) -> bool:
        """Whether the table holds the positions before ``end``, after growing if it may."""
        size = len(self._table)
        if size < end <= LARGEST_TABLE:
            while size < end:
                size *= 2
            self._table = self._rows(torch.arange(size, device=self._table.device))
        return end <= size

    def span(self, start: int, count: int) -> Tensor:
        """[count, 1, D / 2] complex, positions ``start`` on."""
        if self._reach(start + count):
            return self._table.narrow(0, start, count)
        return self._rows(torch.arange(start, start + count, device=self._table.device))

    def at(self, positions: Sequence[int]) -> Tensor:
        """[P, 1, D / 2] complex, one row for each position."""
        wanted = torch.tensor(positions, device=self._table.device)
        return self._table[wanted] if self._reach(max(positions) + 1) else self._rows(wanted)


def rotate(heads: Tensor, turns: Tensor) -> Tensor:
    """Turn every pair of every head.

    Args:
        heads: [N, H, D] in the precision of ``turns``, partners side by side.
        turns: [N, 1, D / 2] complex.

    Returns:
        [N, H, D]
    """
    n, h, d = heads.shape
    pairs = torch.view_as_complex(heads.reshape(n, h, d // 2, 2))
    return torch.view_as_real(pairs * turns).reshape(n, h, d)
