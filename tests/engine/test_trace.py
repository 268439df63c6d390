"""engine.trace: a trace is whole under its name, or not there."""

import json
from pathlib import Path

import pytest

from draftproof.engine.trace import Trace
from draftproof.errors import CouldNotLook

pytestmark = pytest.mark.engine


def test_lines_are_json_and_begin_with_the_schema(tmp_path: Path) -> None:
    """Every line is an object that names its kind; the first names the schema."""
    path = tmp_path / "t.jsonl"
    with Trace(path, {"target": "x"}) as trace:
        trace.write("step", {"tokens": [1, 2]})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [
        {"kind": "head", "schema": "draftproof.trace/1", "target": "x"},
        {"kind": "step", "tokens": [1, 2]},
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_broken_run_leaves_no_trace_under_the_name(tmp_path: Path) -> None:
    """What was written stays aside, named partial; the last whole trace stays as it was."""
    path = tmp_path / "t.jsonl"
    path.write_text("before")
    with pytest.raises(RuntimeError), Trace(path, {}):
        raise RuntimeError
    assert path.read_text() == "before"
    assert (tmp_path / "t.jsonl.partial").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A missing directory is an error before any token is made."""
    with pytest.raises(CouldNotLook), Trace(tmp_path / "no" / "t.jsonl", {}):
        raise AssertionError("unreachable")
