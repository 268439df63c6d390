"""speed.models: rows of a GGUF file's heads in a checkpoint's order."""

import pytest
import torch
from speed.models import rows_in_halves

pytestmark = pytest.mark.engine


def test_partners_half_a_head_apart_come_back_from_pairs() -> None:
    """Two heads of four rows: a converter puts row 0 beside row 2, and this takes them apart again."""
    rows = torch.arange(8 * 3).view(8, 3)
    paired = rows[[0, 2, 1, 3, 4, 6, 5, 7]]
    assert torch.equal(rows_in_halves(paired, 4), rows)
