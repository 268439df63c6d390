"""text.generation_file and text.endings: what the checkpoint's files say about drawing and ending."""

import json
from pathlib import Path

import pytest

from draftproof.engine.proof.tiny import TINY
from draftproof.engine.text.endings import config_endings
from draftproof.engine.text.generation_file import read_generation_file
from draftproof.errors import CouldNotLook, RefusedInput

pytestmark = pytest.mark.engine


def write(directory: Path, **values: object) -> Path:
    """A generation_config.json with these values."""
    (directory / "generation_config.json").write_text(json.dumps(values))
    return directory


def test_sampling_options_are_those_written(tmp_path: Path) -> None:
    """Numbers the file writes are taken by name, others are left to their defaults."""
    found = read_generation_file(
        write(tmp_path, do_sample=True, temperature=0.6, top_k=20, top_p=0.95, eos_token_id=[7, 9])
    )
    assert found.options == {"temperature": 0.6, "top_k": 20, "top_p": 0.95}
    assert found.endings == {7, 9}


def test_a_file_that_does_not_sample_is_greedy(tmp_path: Path) -> None:
    """Without do_sample a temperature means nothing; with it and no temperature, 1."""
    assert read_generation_file(write(tmp_path, temperature=0.6)).options["temperature"] == 0.0
    assert read_generation_file(write(tmp_path, do_sample=True)).options["temperature"] == 1.0
    assert read_generation_file(write(tmp_path, do_sample=True, top_k=None)).options == {"temperature": 1.0}


def test_no_file_cannot_be_looked_at(tmp_path: Path) -> None:
    """Asked for and missing is an error."""
    with pytest.raises(CouldNotLook):
        read_generation_file(tmp_path)


@pytest.mark.parametrize(
    "values", [{"top_k": 1.5}, {"top_p": "0.9"}, {"min_p": True}, {"eos_token_id": "x"}, {"eos_token_id": -1}]
)
def test_mistyped_values_are_refused(tmp_path: Path, values: dict[str, object]) -> None:
    """A value that is no number, or no token id, is named."""
    with pytest.raises(RefusedInput):
        read_generation_file(write(tmp_path, do_sample=True, **values))


@pytest.mark.parametrize(("written", "expected"), [(5, {5}), ([5, 6], {5, 6}), (None, set()), ([], set())])
def test_the_configs_end_tokens(tmp_path: Path, written: object, expected: set[int]) -> None:
    """One id, several, or none."""
    (tmp_path / "config.json").write_text(json.dumps(dict(TINY["hybrid"]) | {"eos_token_id": written}))
    assert config_endings(tmp_path) == expected


@pytest.mark.parametrize("written", ["x", 1.5, [True], [-1], {"a": 1}])
def test_end_tokens_that_are_no_ids_are_refused(tmp_path: Path, written: object) -> None:
    """Where a text ends is never guessed."""
    (tmp_path / "config.json").write_text(json.dumps(dict(TINY["dense"]) | {"eos_token_id": written}))
    with pytest.raises(RefusedInput):
        config_endings(tmp_path)
