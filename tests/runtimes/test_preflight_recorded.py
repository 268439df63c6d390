"""What real engines were recorded to resolve, judged by ``draftproof preflight``: exactly these findings.

The recordings are made by ``python tests/runtimes/effective_cases.py``; live tests ask the engines again.
"""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from draftproof.cli.main import main
from runtimes.asked_engines import Capture, preflight, recorded
from runtimes.effective_cases import CASES, ENGINES, RECORDED, TRANSCRIPTS, WANTED, laid_out


@pytest.mark.parametrize("engine", RECORDED)
def test_recordings_are_complete(engine: str) -> None:
    """One record for every case the engine was asked about."""
    told = json.loads((TRANSCRIPTS / f"effective-{engine}.json").read_text(encoding="utf-8"))
    assert len(told["records"]) == len(ENGINES[engine][1])
    assert f"{told['engine']['name']}-{told['engine']['version']}" == engine


@pytest.mark.parametrize(("engine", "case"), [pair for pair in WANTED if pair[0] in RECORDED])
def test_faults_are_named_at_their_layer(engine: str, case: str, capsys: Capture, tmp_path: Path) -> None:
    """What real engines were recorded to resolve, judged: exactly these findings."""
    options = ["--engine", engine.partition("-")[0]]
    number = CASES[case][1]
    options += ["--k", str(number)] if number else []
    code, told = preflight(capsys, tmp_path, case, recorded(tmp_path, engine, case), *options)
    loud = {one["id"] for one in told["findings"] if one["severity"] != "note"}
    assert loud == WANTED[engine, case], told["findings"]
    assert code == (1 if loud else 0)
    assert told["effective"]["version"] == engine.rpartition("-")[2]


def test_a_text_for_people(capsys: Capture, tmp_path: Path) -> None:
    """The table tells each value with how it is known."""
    drafter, target = laid_out(tmp_path, "sliding")
    python = recorded(tmp_path, "vllm-0.20.1", "sliding")
    argv = ["preflight", drafter.given, "--target", target.given, "--engine", "vllm", "--python", str(python)]
    assert main(argv) == 1
    text = capsys.readouterr().out
    assert "aux_layers" in text
    assert "asked: " in text
    assert "derived: " in text
    assert "taps-read-literally EFFECTIVE" in text


def test_views_marks_the_first_wrong_layer(capsys: Capture, tmp_path: Path) -> None:
    """The old engine parses the file rightly and resolves it wrongly: EFFECTIVE is named, not PARSED."""
    drafter, target = laid_out(tmp_path, "sliding")
    python = recorded(tmp_path, "vllm-0.20.1", "sliding")
    argv = ["views", drafter.given, "--target", target.given, "--engine", "vllm", "--python", str(python)]
    assert main([*argv, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    engine = document["engine"]
    assert [column["layer"] for column in engine["columns"]] == ["BYTES", "PARSED", "EFFECTIVE"]
    wrong = {row["name"]: row["first_wrong"] for row in engine["quantities"] if row["first_wrong"]}
    attention = [f"layers/{index}/{name}" for index in (0, 1) for name in ("window", "causal")]
    assert wrong == dict.fromkeys(["aux_layers", *attention], "EFFECTIVE")
    lacks = {entry["check"]: entry["reason"] for entry in document["not_looked"]}
    assert "no --url was given" in lacks["observed"]
    assert "no --url was given" in lacks["the drafter in the worker"]
    assert main(argv) == 1
    assert "[1, 3, 5] <-- first wrong" in capsys.readouterr().out
