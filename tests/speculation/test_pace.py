"""speculation.pace: the size of a draft follows what was kept and what steps cost, and nothing else."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.errors import UsageError
from draftproof.speculation.costs import StepCosts
from draftproof.speculation.pace import ChainPace, RivalPace, TreePace

pytestmark = pytest.mark.engine

MOST = 8
CHEAP = StepCosts((0.0, *[0.1] * MOST), tuple(1 + 0.01 * n for n in range(MOST + 1)))
"""Drafting is nearly free: long drafts pay whenever anything is kept."""

DEAR = StepCosts((0.0, *[float(n) for n in range(1, MOST + 1)]), tuple(1 + 0.01 * n for n in range(MOST + 1)))
"""A drafted token costs a plain step: drafting can never pay."""


def played(pace: ChainPace, kept: Callable[[int], int], num_steps: int) -> list[int]:
    """The choices of many steps; ``kept`` says how many of so many drafted tokens are."""
    choices = []
    for _ in range(num_steps):
        choices.append(pace.choose(0))
        if choices[-1]:
            pace.learn(choices[-1], kept(choices[-1]), None)
    return choices


def test_a_cheap_and_faithful_drafter_drafts_all_it_may() -> None:
    """Everything kept: from some step on the longest draft, always."""
    assert set(played(ChainPace(CHEAP, MOST), lambda drafted: drafted, 60)[20:]) == {MOST}


def test_a_faithless_drafter_costs_a_few_percent() -> None:
    """Nothing kept: plain steps but for trials, one token each, that plain steps have paid for."""
    pace = ChainPace(CHEAP, MOST)
    choices = played(pace, lambda _: 0, 600)
    assert choices[0] > 0
    trials = [place for place, choice in enumerate(choices) if choice]
    assert len(trials) > 50
    assert all(choice == 1 for choice in choices[trials[-3] :] if choice)
    spent = sum(CHEAP.of(choice) for choice in choices)
    assert spent < 1.04 * len(choices) * CHEAP.of(0)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4, 0.6])
@pytest.mark.parametrize("draft_s", [0.3, 0.8, 1.6])
def test_no_drafter_makes_decoding_much_slower(rate: float, draft_s: float) -> None:
    """Over 3000 tokens the table's seconds are those of plain decoding and 4 % at most; seeded."""
    costs = StepCosts((0.0, *[draft_s] * MOST), (1.0, *[1.4 + 0.04 * n for n in range(1, MOST + 1)]))
    chance = random.Random(7)  # noqa: S311 - a pattern, not a secret
    pace, spent, emitted = ChainPace(costs, MOST), 0.0, 0
    while emitted < 3000:
        drafted = pace.choose(emitted)
        kept = next((i for i in range(drafted) if chance.random() > rate), drafted)
        spent, emitted = spent + costs.of(drafted), emitted + kept + 1
        if drafted:
            pace.learn(drafted, kept, None)
    assert spent < 1.04 * emitted


def test_a_drafter_that_costs_what_it_saves_is_no_loss() -> None:
    """Even with all kept, a step of n drafted tokens costs n plain ones and more: little is lost."""
    choices = played(ChainPace(DEAR, MOST), lambda drafted: drafted, 200)
    spent, emitted = sum(DEAR.of(choice) for choice in choices), sum(choice + 1 for choice in choices)
    assert spent < 1.01 * emitted


def test_a_drafter_that_recovers_is_noticed() -> None:
    """After a stretch in which nothing is kept, a good one brings the long drafts back."""
    pace = ChainPace(CHEAP, MOST)
    assert played(pace, lambda _: 0, 150)[-1] == 0
    assert MOST in played(pace, lambda drafted: drafted, 400)[-20:]


def test_the_length_is_that_of_most_tokens_for_the_time() -> None:
    """With a kept share of 0.6 a position, the choice settles within one of the best by arithmetic."""
    costs = StepCosts((0.0, *[0.2 * n for n in range(1, MOST + 1)]), tuple([1.0] * (MOST + 1)))
    chance = random.Random(5)  # noqa: S311 - a pattern, not a secret
    worth = [sum(0.6**i for i in range(n + 1)) / costs.of(n) for n in range(MOST + 1)]
    best = max(range(MOST + 1), key=worth.__getitem__)

    def kept(drafted: int) -> int:
        return next((i for i in range(drafted) if chance.random() > 0.6), drafted)

    choices = played(ChainPace(costs, MOST), kept, 1000)[50:]
    assert sum(abs(choice - best) <= 1 for choice in choices) > 0.9 * len(choices)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, MOST), max_size=60))
def test_the_same_past_and_costs_give_the_same_choices(kept: list[int]) -> None:
    """No clock, no chance, no draft is looked at."""
    runs = []
    for _ in range(2):
        steps = iter(kept)
        runs.append(played(ChainPace(CHEAP, MOST), lambda drafted: min(drafted, next(steps)), len(kept)))  # noqa: B023 - used at once
    assert runs[0] == runs[1]


def test_a_tree_is_trusted_as_far_as_its_forecasts_came_true() -> None:
    """A drafter that promises four tokens and keeps one is believed a quarter; it still pays here."""
    pace = TreePace(CHEAP, MOST)
    assert pace.trust == 1
    for _ in range(200):
        assert pace.choose(0) == MOST
        pace.learn(MOST, 1, 4.0)
    assert pace.trust == pytest.approx(0.25, abs=0.02)


def test_trees_that_do_not_pay_are_left_out() -> None:
    """Nothing kept for a dear draft: plain steps but for trials."""
    pace = TreePace(DEAR, MOST)
    choices = []
    for _ in range(100):
        choices.append(pace.choose(0))
        if choices[-1]:
            pace.learn(MOST, 0, 3.0)
    assert sum(choice > 0 for choice in choices) < 10


def test_measured_points_become_a_rising_convex_table() -> None:
    """Noise does not make a larger tree cheaper, nor a node in the middle dear."""
    costs = StepCosts.from_points({1: 2.0, 7: 2.0}, {0: 1.0, 1: 3.0, 3: 1.6, 7: 2.6})
    steps = [b - a for a, b in pairwise(costs.verify_s)]
    assert costs.most == 7
    assert costs.verify_s[0] == 1.0
    assert all(later >= earlier - 1e-12 >= -1e-12 for earlier, later in pairwise(steps))
    assert costs.draft_s == (0.0, *[2.0] * 7)


def test_costs_follow_the_length_of_the_text() -> None:
    """On the line through both lengths, beyond the second as well; noise makes nothing cheaper there."""
    far = StepCosts((0.0, 1.0), (2.0, 1.4), length=132)
    costs = StepCosts((0.0, 0.5), (1.0, 1.5), length=32, far=far)
    assert costs.at(10) is costs
    assert costs.at(82).verify_s == pytest.approx((1.5, 1.5))
    assert costs.at(232).verify_s == pytest.approx((3.0, 3.0))
    assert costs.at(232).draft_s == pytest.approx((0.0, 1.5))


def test_a_draft_that_pays_behind_a_short_text_may_not_behind_a_long_one() -> None:
    """Drafts that grow dearer with the text than plain steps are given up there."""
    far = StepCosts((0.0, *[9.0] * MOST), tuple([1.0] * (MOST + 1)), length=1000)
    costs = StepCosts((0.0, *[0.5] * MOST), tuple([1.0] * (MOST + 1)), length=0, far=far)
    for length, share in ((0, 1.0), (2000, 0.1)):
        pace, drafted = ChainPace(costs, MOST), 0
        for _ in range(100):
            if size := pace.choose(length):
                drafted += 1
                pace.learn(size, min(size, 3), None)
        assert drafted == 100 if share == 1 else drafted < 100 * share


@pytest.mark.parametrize("best", ["tree", "chain"])
def test_the_better_of_chain_and_tree_is_drafted(best: str) -> None:
    """Where trees keep more for the time they take trees are drafted, else chains; the other now and then."""
    chain = StepCosts((0.0, *[0.5] * MOST), tuple([1.5] * (MOST + 1)))
    costs = StepCosts((0.0, *[0.6] * 32), tuple([1.6] * 33), chain=chain)
    pace, kept = RivalPace(costs, 32, MOST), {"tree": 2, "chain": 2} | {best: 5}
    choices = []
    for _ in range(200):
        limit = pace.choose(0)
        kind = "tree" if pace.is_tree else "chain"
        choices.append(kind)
        assert 0 < limit <= (32 if pace.is_tree else MOST)
        pace.learn(limit, min(kept[kind], limit), 4.0 if pace.is_tree else None)
    assert choices.count(best) > 180
    assert set(choices[100:]) == {"tree", "chain"}


def test_costs_that_are_none_are_refused() -> None:
    """Another number of times, or a step for nothing."""
    for draft, verify in (((0.0, 1.0), (1.0,)), ((0.0,), (0.0,)), ((0.0, -1.0), (1.0, 1.0))):
        with pytest.raises(UsageError, match="step costs"):
            StepCosts(draft, verify)


@pytest.mark.parametrize("length", [32, 31])
def test_a_second_table_is_further_on_and_as_large(length: int) -> None:
    """No line goes through two tables behind as many tokens, nor through tables of other sizes."""
    near = StepCosts((0.0, 1.0), (1.0, 1.5), length=32)
    with pytest.raises(UsageError, match="step costs"):
        replace(near, far=replace(near, length=length))
    with pytest.raises(UsageError, match="step costs"):
        replace(near, far=StepCosts((0.0,), (1.0,), length=512))
