"""Identities that must hold, and shapes that name a fault: each rule can fail, healthy drafters are quiet."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof.findings.finding import Severity
from draftproof.runtimes.observed.judge import judge
from draftproof.runtimes.observed.reading import read
from draftproof.speculation.acceptance import (
    Acceptance,
    Estimator,
    Figure,
    Weighting,
    Window,
    of_counts,
    of_summary,
)
from draftproof.speculation.stats import Step, summary

ESTIMATOR = Estimator("test", Weighting.STEPS, Window.OWN_STEPS)
PAGE = Path(__file__).parent / "transcripts" / "vllm-0.8.5-v1.prom"


def counted(histogram: list[int]) -> Acceptance:
    """The record of full drafts, so many of which kept 0, 1, 2, ... tokens."""
    drafts, width = sum(histogram), len(histogram) - 1
    return of_counts(
        "here",
        ESTIMATOR,
        drafts=drafts,
        drafted=drafts * width,
        accepted=sum(kept * n for kept, n in enumerate(histogram)),
        num_draft_tokens=Figure(width, "given"),
        accepted_per_position=[sum(histogram[i + 1 :]) for i in range(width)],
    )


def ids(record: Acceptance) -> set[str]:
    """What is said of it."""
    return {finding.id for finding in judge(record)}


@pytest.mark.property
@given(st.lists(st.integers(0, 50), min_size=2, max_size=17).filter(any))
def test_true_counts_break_no_identity(histogram: list[int]) -> None:
    """Whatever happened, figures that are counted rightly never contradict each other."""
    assert "observed-identity-broken" not in ids(counted(histogram))


@pytest.mark.property
@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), min_size=1, max_size=4))
def test_our_own_steps_break_none(requests: list[list[int]]) -> None:
    """The record of the engine's own steps obeys the same identities."""
    steps = [[Step(5, 5, kept, kept + 1) for kept in request] for request in requests]
    record = of_summary("engine", summary(steps), num_draft_tokens=5)
    assert "observed-identity-broken" not in ids(record)


@pytest.mark.parametrize(
    ("field", "figure"),
    [
        ("tau", Figure(2.31, "reported")),
        ("tau", Figure(0.9, "reported")),
        ("rate", Figure(0.44, "reported")),
        ("rate", Figure(-0.1, "reported")),
        ("num_accepted", Figure(131, "counted")),
        ("num_accepted", Figure(301, "counted")),
        ("num_drafts", Figure(99, "counted")),
        ("num_drafted", Figure(301, "counted")),
        ("num_draft_tokens", Figure(2, "counted")),
        ("per_position", Figure((0.7, 0.4, 0.21), "counted")),
        ("per_position", Figure((0.4, 0.7, 0.2), "counted")),
        ("per_position", Figure((1.1, 0.1, 0.1), "counted")),
        ("per_position", Figure((0.8, 0.6, -0.1), "counted")),
    ],
)
def test_each_identity_can_break(field: str, figure: Any) -> None:
    """One figure changed is enough: nothing in the record is there only for show."""
    record = read(str(PAGE)).acceptance
    assert record is not None
    assert "observed-identity-broken" not in ids(record)
    assert "observed-identity-broken" in ids(replace(record, **{field: figure}))


def test_rounding_is_no_contradiction() -> None:
    """Figures printed with few digits agree within half of the last one, and no further."""
    record = read(str(PAGE)).acceptance
    assert record is not None
    assert "observed-identity-broken" not in ids(replace(record, tau=Figure(2.304, "printed", 0.005)))
    assert "observed-identity-broken" in ids(replace(record, tau=Figure(2.306, "printed", 0.005)))


def test_nothing_accepted_needs_evidence() -> None:
    """Zero of 50 drafted is an error; zero of 48 is silence."""
    assert "observed-nothing-accepted" not in ids(counted([16, 0, 0, 0]))
    assert "observed-nothing-accepted" in ids(counted([17, 0, 0, 0]))


def test_the_case_of_one_percent() -> None:
    """1.1 % of 15 is a length of 1.165: collapsed, whatever the positions say."""
    assert ids(counted([850, 140, 5, 5, *[0] * 12])) >= {"observed-acceptance-collapsed"}


def test_a_cliff_is_graded_by_its_chance() -> None:
    """Many drafts that stop at one position are a warning, few a note, a smooth end nothing."""
    grades = {}
    for name, histogram in {
        "many": [40, 30, 30, 0, 0],
        "few": [3, 1, 4, 0, 0],
        "smooth": [40, 30, 20, 9, 1],
    }.items():
        told = [f for f in judge(counted(histogram)) if f.id == "observed-acceptance-cliff"]
        grades[name] = told[0].severity if told else None
    assert grades == {"many": Severity.WARNING, "few": Severity.NOTE, "smooth": None}


def test_healthy_drafters_are_quiet() -> None:
    """Geometric drafters of 0.5 to 0.95 with 500 drafts of 7: none is accused.

    A warning needs a chance below 0.001, so over 100 drafters bad luck has less than 10 %; the seed is fixed.
    """
    chance = random.Random(20261201)  # noqa: S311 - a simulation, not a secret
    for _ in range(100):
        rate = chance.uniform(0.5, 0.95)
        histogram = [0] * 8
        for _ in range(500):
            kept = 0
            while kept < 7 and chance.random() < rate:
                kept += 1
            histogram[kept] += 1
        assert not [f for f in judge(counted(histogram)) if f.severity is not Severity.NOTE]
