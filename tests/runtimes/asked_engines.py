"""Engines asked before a start: programs in the place of their Python, and ``draftproof preflight``."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from runtimes.effective_cases import ENGINES, TRANSCRIPTS, laid_out

__all__ = ["Capture", "preflight", "program", "recorded"]

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
