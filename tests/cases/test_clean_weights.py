"""No false alarm with weights: every complete config beside the header set its architecture asks for."""

import json
from pathlib import Path

import pytest

from cases.builder import build
from draftproof.cli.main import main

TESTS = Path(__file__).parents[1]
GRADES: dict[str, str] = json.loads((TESTS / "config_grades.json").read_text("utf-8"))["grades"]
NO_TABLE = ("domino", "dspark")
COMPLETE = sorted(n for n, g in GRADES.items() if g in "VN" and not any(part in n for part in NO_TABLE))
REAL_MAP = {"d2t": "skip:256:300"}
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_checkpoint_is_clean(name: str, shards: int, tmp_path: Path, capsys: Capture) -> None:
    """Config, every tensor of its table, one shard or three with their index: no error, no warning."""
    # Zero-centred norms lie near 0 in published checkpoints; the norms of other families near 1.
    fill = REAL_MAP | ({"*norm*.weight": -0.03} if "target" in name else {})
    case = {"base": name, "tiny": True, "weights": {"shards": shards, "fill": fill}}
    code = main(["check", *build(case, tmp_path), "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [f for f in findings if f["severity"] != "note"] == []
    assert code == 0


@pytest.mark.parametrize("name", COMPLETE)
def test_a_published_cache_is_clean(name: str, tmp_path: Path, capsys: Capture) -> None:
    """The same inside a hub cache, every blob named by its content: nothing to say about the cache."""
    case = {"base": name, "hub": {"revision": "a" * 40}}
    code = main(["check", *build(case, tmp_path), "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [f["id"] for f in findings if f["id"].startswith("hub-")] == []
    assert code == 0


def test_there_are_checkpoints_to_hold_it_on() -> None:
    """An empty list does not pass."""
    assert len(COMPLETE) >= 25
