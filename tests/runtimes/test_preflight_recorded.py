"""What real engines were recorded to resolve, judged by ``draftproof preflight``: exactly these findings.

The recordings are made by ``python tests/runtimes/effective_cases.py``; live tests ask the engines again.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from draftproof.cli.main import main
from runtimes.effective_cases import CASES, ENGINES, RECORDED, TRANSCRIPTS, WANTED, laid_out

Capture = pytest.CaptureFixture[str]
ANSWERING = """#!{python}
import hashlib, json, sys
nonce = json.loads(sys.stdin.read())["nonce"]
body = open({path!r}, "rb").read()
sys.stdout.write("\\ndraftproof-frame %s %d %s\\n" % (nonce, len(body), hashlib.sha256(body).hexdigest()))
sys.stdout.flush()
sys.stdout.buffer.write(body + b"\\n")
"""


def program(folder: Path, text: str) -> Path:
    """An executable script in the place of an engine's Python."""
    path = folder / f"python-{len(list(folder.iterdir()))}"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def recorded(folder: Path, engine: str, case: str) -> Path:
    """A program that answers as the engine was recorded to answer about one case."""
    told = json.loads((TRANSCRIPTS / f"effective-{engine}.json").read_text(encoding="utf-8"))
    one = {**told, "records": [told["records"][ENGINES[engine][1].index(case)]]}
    answer = folder / "answer.json"
    answer.write_text(json.dumps(one), encoding="ascii")
    return program(folder, ANSWERING.format(python=sys.executable, path=str(answer)))


def preflight(
    capsys: Capture, folder: Path, case: str, python: str | Path, *options: str
) -> tuple[int, dict[str, Any]]:
    """Exit status and the JSON object."""
    drafter, target = laid_out(folder, case)
    engine = () if "--engine" in options else ("--engine", "vllm")
    argv = ["preflight", drafter.given, "--target", target.given, *engine, "--python", str(python), *options]
    code = main([*argv, "--json"])
    output = capsys.readouterr()
    assert output.err == ""
    document: dict[str, Any] = json.loads(output.out)
    return code, document


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
