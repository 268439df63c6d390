"""pair_page: goals are judged by whole intervals, and the page is what its counts say."""

import json
from pathlib import Path

import pytest
from pair_page import interval, judged, page, tau

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_tau_is_pooled_and_its_interval_drawn_over_prompts() -> None:
    """Long answers count more; equal prompts leave nothing to chance; two arms give their difference."""
    assert tau([(90, 10), (10, 10)]) == 5
    assert interval([(6, 2)] * 9) == (3, 3)
    assert interval([(6, 2)] * 9, [(4, 2)] * 9) == (-1, -1)
    low, high = interval([(90, 10), (10, 10)] * 20)
    assert 1 < low < 5 < high < 9


@pytest.mark.parametrize(
    ("low", "high", "said"), [(3, 4, "3: met"), (2, 2.9, "3: missed"), (2.9, 3.1, "3: open")]
)
def test_a_goal_is_judged_by_the_whole_interval(low: float, high: float, said: str) -> None:
    """On one side, on the other, on both."""
    assert judged(3, low, high) == said


def test_the_page_is_what_its_counts_say() -> None:
    """``python bench/pair_acceptance.py page`` was run after the last measurement."""
    kept = json.loads((REFERENCE / "pair.json").read_text(encoding="utf-8"))
    assert (REFERENCE / "pair.md").read_text(encoding="utf-8") == page(kept)
