"""findings.engines: which versions a row is known to hold for, and what is not known stays unknown."""

import pytest

from draftproof.errors import UsageError
from draftproof.findings.engines import BLIND_SPOTS, LAST_TAP_LIMITS, Engine, Verdict, Versions, parse_engine

KNOWN = Versions("vllm", (0, 20, 1), (0, 25))
OPEN = Versions("vllm", (0, 20, 1), None)
REPORTED = Versions("vllm", None, None)


@pytest.mark.parametrize(
    ("versions", "engine", "verdict"),
    [
        (KNOWN, Engine("vllm", (0, 20, 1)), Verdict.HOLDS),
        (KNOWN, Engine("vllm", (0, 24, 9)), Verdict.HOLDS),
        (KNOWN, Engine("vllm", (0, 25)), Verdict.HOLDS_NOT),
        (KNOWN, Engine("vllm", (0, 25, 0)), Verdict.HOLDS_NOT),
        (KNOWN, Engine("vllm", (0, 19)), Verdict.UNKNOWN),
        (KNOWN, Engine("sglang", (0, 20, 1)), Verdict.HOLDS_NOT),
        (OPEN, Engine("vllm", (0, 40)), Verdict.UNKNOWN),
        (REPORTED, Engine("vllm", (0, 20, 1)), Verdict.UNKNOWN),
        (REPORTED, Engine("sglang", (0, 5)), Verdict.HOLDS_NOT),
    ],
)
def test_a_row_holds_only_where_it_was_read(versions: Versions, engine: Engine, verdict: Verdict) -> None:
    """Outside the versions read in source a row neither accuses nor acquits."""
    assert versions.verdict(engine) is verdict


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("vllm@0.20.1", Engine("vllm", (0, 20, 1))),
        ("SGLang@0.5.11", Engine("sglang", (0, 5, 11))),
        (" vllm@0.33 ", Engine("vllm", (0, 33))),
    ],
)
def test_an_engine_is_named_with_its_version(text: str, engine: Engine) -> None:
    """NAME@VERSION, whatever the case."""
    assert parse_engine(text) == engine


@pytest.mark.parametrize("text", ["", "vllm", "vllm@", "vllm@main", "tgi@1.0", "vllm@1", "vllm@0.20.1rc1"])
def test_anything_else_is_usage(text: str) -> None:
    """A version that cannot be compared is not guessed."""
    with pytest.raises(UsageError):
        parse_engine(text)


def test_every_row_has_a_source_and_real_pointers() -> None:
    """A row names where it was read, and fields as pointers."""
    for spot in BLIND_SPOTS:
        assert spot.source
        assert spot.methods
        assert spot.dialects
        assert all(field.startswith("/") for field in spot.fields)
    assert LAST_TAP_LIMITS


def test_versions_are_told_in_words() -> None:
    """A reader sees from when until when."""
    assert str(KNOWN) == "vllm 0.20.1 until before 0.25"
    assert str(OPEN) == "vllm 0.20.1 and possibly later"
    assert "not recorded" in str(REPORTED)
    assert str(Engine("vllm", (0, 20, 1))) == "vllm 0.20.1"
