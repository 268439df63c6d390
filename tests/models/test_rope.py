"""models.parts.rope: pairs turned as complex numbers are dimensions rotated by halves."""

import pytest
import torch

from draftproof.models.parts.rope import LARGEST_TABLE, RopeTable, inverse_frequencies, pair_order, rotate
from draftproof.models.target.shape import RopeShape

pytestmark = pytest.mark.engine

PLAIN = RopeShape(10000.0, "default", 8, ())
CPU = torch.device("cpu")


def table(rope: RopeShape = PLAIN, head_dim: int = 12) -> RopeTable:
    """A table in 64-bit floats."""
    return RopeTable(rope, head_dim, dtype=torch.float64, device=CPU)


@pytest.mark.parametrize("position", [0, 1, 255, 256, 5000, LARGEST_TABLE - 1, LARGEST_TABLE, 200_000])
def test_a_turn_is_the_rotation_of_two_halves(position: int) -> None:
    """Dimension i turns with i + 4 of 8, four more stay, at positions inside and beyond the table."""
    head = torch.randn(12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    order = pair_order(12, 8)
    found = rotate(head[order].view(1, 1, 12), table().span(position, 1)).view(12)
    frequencies, _ = inverse_frequencies(PLAIN)
    angle = position * frequencies.double()
    a, b = head[:4], head[4:8]
    halves = (a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin(), head[8:])
    assert torch.allclose(found, torch.cat(halves)[order], rtol=0, atol=1e-12)


def test_single_positions_are_rows_of_the_span() -> None:
    """Positions asked for one by one, in any order and twice, are those of a span."""
    turns = table()
    span = turns.span(250, 20)
    assert torch.equal(turns.at([250, 269, 251, 251]), span[[0, 19, 1, 1]])
    far = turns.span(LARGEST_TABLE - 2, 4)
    assert torch.equal(turns.at([LARGEST_TABLE + 1, LARGEST_TABLE - 2]), far[[3, 0]])


@pytest.mark.parametrize(("head_dim", "rotary_dim"), [(8, 8), (12, 8), (64, 16)])
def test_the_order_holds_every_dimension_once(head_dim: int, rotary_dim: int) -> None:
    """Partners stand side by side, and what does not rotate keeps its place."""
    order = pair_order(head_dim, rotary_dim)
    assert sorted(order) == list(range(head_dim))
    assert [b - a for a, b in zip(order[:rotary_dim:2], order[1:rotary_dim:2], strict=True)] == [
        rotary_dim // 2
    ] * (rotary_dim // 2)
    assert order[rotary_dim:] == list(range(rotary_dim, head_dim))


def test_divisors_slow_each_pair() -> None:
    """A file's own divisors divide the plain frequencies pair by pair."""
    plain, _ = inverse_frequencies(PLAIN)
    divided, _ = inverse_frequencies(RopeShape(10000.0, "default", 8, (), divisors=(1.0, 2.0, 4.0, 8.0)))
    assert torch.equal(divided, plain / torch.tensor([1.0, 2.0, 4.0, 8.0]))
