"""speculation.stats: the words for acceptance mean one thing each."""

import random

import pytest

from draftproof.errors import UsageError
from draftproof.speculation.stats import Step, summary

pytestmark = pytest.mark.engine

FIRST = [Step(3, 3, 3, 4), Step(3, 3, 0, 1), Step(3, 3, 1, 2)]
SECOND = [Step(2, 2, 0, 1)]


def test_tau_micro_pools_steps_and_macro_averages_requests() -> None:
    """8 tokens in 4 steps are 2.0; the mean of 7/3 and 1 is 5/3."""
    found = summary([FIRST, SECOND])
    assert found.tau == 2.0
    assert found.tau_macro == pytest.approx(5 / 3)
    assert (found.num_steps, found.num_emitted, found.num_drafted, found.num_accepted) == (4, 8, 11, 4)
    assert found.rate == pytest.approx(4 / 11)


def test_positions_are_counted_over_all_steps_or_over_those_that_got_there() -> None:
    """Position 1 was kept once in four steps, and once of the two that reached it with a draft."""
    found = summary([FIRST, SECOND])
    assert found.per_position == (0.5, 0.25, 0.25)
    assert found.per_position_conditional == (0.5, 0.5, 1.0)


def test_unconditional_positions_sum_to_tau_less_one() -> None:
    """While no step is cut short, tau - 1 is the sum of the positions."""
    chance = random.Random(3)  # noqa: S311 - cases, not secrets
    steps = []
    for _ in range(200):
        drafted = chance.randrange(6)
        kept = chance.randint(0, drafted)
        steps.append(Step(drafted, drafted, kept, kept + 1))
    found = summary([steps])
    assert sum(found.per_position) == pytest.approx(found.tau - 1)


def test_a_step_without_draft_counts_in_tau_and_not_in_rate() -> None:
    """Plain decoding has tau 1 and no rate."""
    found = summary([[Step(0, 0, 0, 1)] * 5])
    assert (found.tau, found.rate, found.per_position) == (1.0, None, ())


def test_depth_nobody_reached_has_no_conditional_share() -> None:
    """Unknown is None, never 0."""
    assert summary([[Step(2, 2, 0, 1)]]).per_position_conditional == (0.0, None)


def test_tree_positions_are_depths() -> None:
    """Eight nodes of depth 2 have two positions."""
    found = summary([[Step(8, 2, 2, 3), Step(8, 2, 1, 2)]])
    assert found.per_position == (1.0, 0.5)
    assert found.rate == 3 / 16


def test_a_step_cut_by_a_stop_emits_what_it_emitted() -> None:
    """Tau is tokens over steps also where the bonus was not used."""
    assert summary([[Step(4, 4, 2, 2)]]).tau == 2.0


def test_interval_covers_the_mean_and_names_what_was_resampled() -> None:
    """One request resamples its steps, several resample requests; the same seed gives the same interval."""
    alone = summary([FIRST * 20])
    assert alone.tau_interval.resampled == "steps"
    assert alone.tau_interval.low < alone.tau < alone.tau_interval.high
    several = summary([FIRST, SECOND] * 10)
    assert several.tau_interval.resampled == "requests"
    assert several.tau_interval.low < several.tau < several.tau_interval.high
    assert summary([FIRST, SECOND] * 10) == several


def test_interval_is_about_two_standard_errors_wide() -> None:
    """For 400 steps of 1 or 2 tokens the interval spans 4 standard errors, within 15 %."""
    steps = [Step(1, 1, i % 2, 1 + i % 2) for i in range(400)]
    interval = summary([steps]).tau_interval
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.15)


def test_no_step_has_no_statistics() -> None:
    """There is no mean of nothing."""
    with pytest.raises(UsageError):
        summary([[], []])
