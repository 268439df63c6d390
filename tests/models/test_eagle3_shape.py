"""models.eagle3.shape: published configs give a drafter, and what is not built is named."""

import json
from pathlib import Path

import pytest

from draftproof.config.parse import parse_config
from draftproof.config.raw import read_raw
from draftproof.errors import RefusedInput
from draftproof.models.eagle3.shape import Eagle3Shape, read_eagle3_shape

pytestmark = pytest.mark.engine

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*eagle3*.json"))


def shape_of(path: Path) -> Eagle3Shape:
    """Beside a target of 36 layers, from a checkpoint without head norms and output biases."""
    return read_eagle3_shape(parse_config(read_raw(path)), str(path), names=(), num_target_layers=36)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_published_config_gives_a_drafter_that_can_be_run(path: Path) -> None:
    """Three taps inside the target, one layer, a head of 32000 rows."""
    shape = shape_of(path)
    assert len(shape.taps) == 3
    assert list(shape.taps) == sorted(shape.taps)
    assert shape.draft_vocab_size == 32000
    assert len(shape.decoder.layers) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"parallel_drafting": True},
        {"use_aux_hidden_state": False},
        {"mlp_bias": True},
        {"hidden_act": "gelu"},
        {"a_key_of_tomorrow": 1},
    ],
    ids=str,
)
def test_what_would_change_the_forward_pass_is_named(changed: dict[str, object], tmp_path: Path) -> None:
    """A field this drafter is not built with is refused by name, not dropped."""
    key = next(iter(changed))
    config = json.loads(next(p for p in CONFIGS if p.stem == "specforge-qwen3-8b-eagle3").read_text())
    config |= {"eagle_config": changed} if key == "use_aux_hidden_state" else changed
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(RefusedInput) as refused:
        shape_of(tmp_path / "config.json")
    assert key in refused.value.found
