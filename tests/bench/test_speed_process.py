"""speed.process and speed.worker: an engine's process answers in lines and refuses in words."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from speed.process import Process

ENGINE = "echo_engine"
FIRST = {"dtype": "float32", "threads": 1}


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Starts the echo engine with a first question; ended after the test."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    running: list[Process] = []

    def started(**changes: object) -> Process:
        running.append(Process(Path(sys.executable), ENGINE, {**FIRST, **changes}, tmp_path / "log"))
        running[-1].settle()
        return running[-1]

    yield started
    for process in running:
        process.__exit__(None, None, None)


def test_answers_are_apart_from_what_an_engine_prints(start: Any, tmp_path: Path) -> None:
    """The engine printed a line while loading; it is in the log, and every answer is still read."""
    process = start()
    assert (process.refused, process.about) == (None, "echo on 1 threads")
    answer = process.ask({"do": "generate", "prompt": [3, 4], "tokens": 3})
    assert answer["tokens"] == [4, 4, 4]
    assert "noise that belongs to no answer" in (tmp_path / "log").read_text()


def test_forwards_are_timed_by_both_clocks(start: Any) -> None:
    """As many times as were asked for, all of them spent."""
    answer = start().ask({"do": "forward", "prompt": [1, 2], "rows": 8, "repeats": 3})
    assert len(answer["wall_s"]) == len(answer["cpu_s"]) == 3
    assert all(seconds > 0 for seconds in answer["cpu_s"])


def test_a_refusal_is_a_reason_on_one_line(start: Any) -> None:
    """An engine that cannot load says why; it is no crash of the bench."""
    assert start(dtype="float8").refused == "Refused: no such data type"


def test_a_process_that_ends_is_told_with_its_last_words(start: Any) -> None:
    """Exit status and last line take the answer's place, however often it is asked; ending it is no error."""
    process, question = start(), {"do": "generate", "prompt": [1], "tokens": 1}
    for _ in range(2):
        answer = process.ask(question)
        assert answer == {"refused": "the process ended with status 7: a peer's last words"}
