"""runtimes.hf: a probe's answer becomes a reading, or the reason why it is none."""

import copy
from typing import Any

import pytest

from draftproof.runtimes.hf.reading import HfReading, Refusal, parse_answer
from draftproof.runtimes.interpreter import NoAnswer
from environments import NEW, OLD
from runtimes.cases import recorded


def answer(case: str = "C types without switch") -> dict[str, Any]:
    """A copy of a recorded answer."""
    return copy.deepcopy(recorded(NEW)[case])


def test_a_reading_says_who_parsed() -> None:
    """Interpreter, version, file and class are part of every reading."""
    reading = parse_answer("py", answer())
    assert isinstance(reading, HfReading)
    assert (reading.python, reading.version, reading.class_name) == ("py", NEW, "Qwen3Config")
    assert reading.path.endswith("transformers/__init__.py")
    assert reading.name == f"transformers {NEW} Qwen3Config"
    assert reading.refusal is None


def test_the_librarys_error_is_a_reading() -> None:
    """A file the library refuses has been parsed, with that result; its message is one line."""
    reading = parse_answer("py", answer("three types"))
    assert isinstance(reading, HfReading)
    assert isinstance(reading.refusal, Refusal)
    assert (reading.refusal.stage, "\n" in reading.refusal.message) == ("parse", False)
    assert (reading.class_name, dict(reading.values)) == (None, {})


def test_no_transformers_is_no_reading() -> None:
    """A Python without the library has not looked; it is not said to agree."""
    body = {
        "python": "3.12.1",
        "library": None,
        "error": {
            "stage": "import",
            "type": "ModuleNotFoundError",
            "message": "No module named 'transformers'",
        },
    }
    assert parse_answer("py", body) == NoAnswer(
        "it has no transformers that can be imported (ModuleNotFoundError: No module named 'transformers')"
    )


@pytest.mark.parametrize(
    "key", ["python", "library", "error", "class", "values", "defaults", "aliases", "trials"]
)
def test_an_answer_of_another_form_is_no_reading(key: str) -> None:
    """A part that is missing, or is of another type, makes the whole no answer."""
    missing, wrong = answer(), answer()
    del missing[key]
    wrong[key] = 7
    for body in (missing, wrong):
        reading = parse_answer("py", body)
        assert isinstance(reading, NoAnswer)
        assert "another form than agreed" in reading.reason


@pytest.mark.parametrize("part", ["ablations", "flips", "hoists"])
def test_trials_of_another_form_are_no_reading(part: str) -> None:
    """The trials are held to the agreed form as well."""
    wrongs: list[Any] = [7, [7], [{}], [{"path": 7}]]
    for wrong in wrongs:
        body = copy.deepcopy(recorded(OLD)["nested rope"])
        body["trials"][part] = wrong
        assert isinstance(parse_answer("py", body), NoAnswer)
