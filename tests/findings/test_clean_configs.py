"""No false alarm: every rule run on every complete real config, alone and beside its target."""

import json
from functools import cache
from pathlib import Path

import pytest

from draftproof.findings.check import RULES, check
from draftproof.findings.evidence import Evidence, Lacking, NotApplicable, read_evidence
from draftproof.findings.finding import Severity

CONFIGS = Path(__file__).parents[1] / "configs"
GRADES: dict[str, str] = json.loads((CONFIGS.parent / "config_grades.json").read_text("utf-8"))["grades"]
COMPLETE = sorted(name for name, grade in GRADES.items() if grade in "VN")
PAIRS = [
    ("zlab-qwen3.6-27b-dflash.json", "qwen3.6-27b-target.json"),
    ("specforge-qwen3.6-27b-dflash.json", "qwen3.6-27b-target.json"),
    ("specforge-qwen3.6-27b-dspark.json", "qwen3.6-27b-target.json"),
    ("zlab-qwen3.8-27b-dflash2.json", "qwen3.6-27b-target.json"),
    ("zlab-qwen3.6-27b-dflash.json", "qwen3.5-27b-target.json"),
    ("zlab-qwen3.5-35b-a3b-dflash-original.json", "qwen3.5-35b-a3b-target-text-partial.json"),
    ("zlab-qwen3.6-35b-a3b-dflash.json", "qwen3.5-35b-a3b-target-text-partial.json"),
    ("specforge-qwen3.5-35b-a3b-dflash.json", "qwen3.5-35b-a3b-target-text-partial.json"),
    ("specforge-qwen3.5-35b-a3b-eagle3.json", "qwen3.5-35b-a3b-target-text-partial.json"),
    ("qwen3.5-0.8b-target.json", "qwen3.6-27b-target.json"),
]
MOST_NOTES = 2


@cache
def _evidence(subject: str, target: str | None = None, intent: str | None = None) -> Evidence:
    return read_evidence(
        str(CONFIGS / subject),
        target=str(CONFIGS / target) if target else None,
        intent=str(CONFIGS / intent) if intent else None,
        tokenizer=None,
        engine=None,
    )


@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_config_alone_is_clean(name: str) -> None:
    """A published config has no error and no warning, and hardly a note."""
    findings = check(_evidence(name)).findings
    assert [f"{f.severity} {f.id} {f.where}" for f in findings if f.severity is not Severity.NOTE] == []
    assert len(findings) <= MOST_NOTES


@pytest.mark.parametrize(("drafter", "target"), PAIRS)
def test_a_published_pair_is_clean(drafter: str, target: str) -> None:
    """A drafter beside the target it was trained for has no error and no warning."""
    findings = check(_evidence(drafter, target)).findings
    assert [f"{f.severity} {f.id} {f.where}" for f in findings if f.severity is not Severity.NOTE] == []


@pytest.mark.parametrize("name", COMPLETE)
def test_a_config_that_is_its_own_intent_does_not_drift(name: str) -> None:
    """A file held against itself agrees, value by value and byte by byte."""
    told = {f.id for f in check(_evidence(name, intent=name)).findings}
    assert not {kind for kind in told if kind.startswith("intent-")}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_is_run_on_every_complete_config(rule: object) -> None:
    """Each rule looks at each config, says why it cannot, or does not apply; none of them fails."""
    assert rule in RULES
    looked = 0
    for name in COMPLETE:
        evidence = _evidence(name)
        try:
            looked += 1 + len(list(next(r for r in RULES if r is rule).ask(evidence)))
        except (Lacking, NotApplicable):
            looked += 1
    assert looked >= len(COMPLETE)


def test_there_are_configs_to_hold_it_on() -> None:
    """An empty list does not pass."""
    assert len(COMPLETE) >= 30
