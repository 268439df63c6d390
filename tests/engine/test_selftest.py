"""engine.proof.selftest: the proof holds here, and every sabotage makes it fail where it should."""

from pathlib import Path

import pytest

from draftproof.engine.proof import selftest
from draftproof.engine.proof.selftest import SABOTAGES, run_selftest
from draftproof.errors import UsageError

pytestmark = [pytest.mark.engine, pytest.mark.slow]

FAILS_IN = {
    "siblings-visible": ("logits", {"dense", "hybrid"}),
    "conv-over-columns": ("logits", {"hybrid"}),
    "state-at-wrong-node": ("memory", {"dense", "hybrid"}),
    "greedy-scored-as-drawn": ("rule", {"rule"}),
    "other-temperature": ("rule", {"rule"}),
    "typical-lossy": ("rule", {"rule"}),
}


def test_nothing_fails_here(tmp_path: Path) -> None:
    """All checks hold: 7 rules, and for each of two targets 12 of trees and 12 of texts."""
    checks = list(run_selftest(tmp_path))
    assert [check.name for check in checks if not check.holds] == []
    assert len(checks) == 7 + 2 * (12 + 12)


def test_every_sabotage_has_its_expectation() -> None:
    """The table below covers each sabotage there is."""
    assert set(FAILS_IN) == set(SABOTAGES)


@pytest.mark.parametrize("sabotage", SABOTAGES)
def test_sabotage_fails_where_it_should_and_nowhere_else(sabotage: str, tmp_path: Path) -> None:
    """Every check of the broken thing fails, on the targets that have it, and no other check does."""
    word, owners = FAILS_IN[sabotage]
    # A sabotaged rule shows among the rules; the models need not run again for it.
    checks = selftest._rules(sabotage) if word == "rule" else run_selftest(tmp_path, sabotage=sabotage)
    failed = [check.name for check in checks if not check.holds]
    assert {name.split()[0] for name in failed} == owners
    assert all(word in name for name in failed)
    if word != "rule":
        assert len(failed) == 6 * len(owners)


def test_an_unknown_sabotage_is_refused(tmp_path: Path) -> None:
    """A name that breaks nothing must not look like a proof."""
    with pytest.raises(UsageError):
        next(run_selftest(tmp_path, sabotage="nothing"))
