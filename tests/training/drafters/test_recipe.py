"""Recipes of drafters: every fault is named with its pointer, and nothing else is forgiven."""

from pathlib import Path

import pytest

from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.training.drafters.recipe import DflashRecipe
from draftproof.training.drafters.train import Job, train_dflash, train_eagle3
from draftproof.training.recipe import fingerprint, read_recipe
from small_runs import write_recipe, write_speaking_target

pytestmark = pytest.mark.engine


def test_a_whole_recipe_is_read(tmp_path: Path) -> None:
    """Values, lists and what nobody said."""
    recipe = read_recipe(write_recipe(tmp_path, "dflash", steps=7), DflashRecipe)
    assert recipe.training.steps == 7
    assert recipe.drafter.layer_types == ("sliding_attention", "full_attention")
    assert recipe.loss.kind == "pace"
    assert isinstance(recipe.drafter.rope_theta, float)


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("seed = 5", 'seed = "5"', "/seed: a int is wanted"),
        ("seed = 5", "seed = true", "/seed: a int is wanted"),
        ("seed = 5", "sed = 5", "/sed: no such key"),
        ("block_size = 6\n", "", "/drafter/block_size: missing"),
        ("block_size = 6", "block_size = -6", "/drafter/block_size: -6 is below 0"),
        ("learning_rate = ", "learning_rate = nan #", "/training/learning_rate: nan is no finite number"),
        ('"sliding_attention"', '"sliding"', "/drafter/layer_types/0: 'sliding' is none of"),
        ("[0, 1]", "[]", "/drafter/target_layer_ids: a list of at least one"),
        ("[0, 1]", '["0", 1]', "/drafter/target_layer_ids/0"),
        ("anchors = 10", 'anchors = 10\nkind = "best"', "/loss/kind: 'best' is none of pace, decay"),
        ("[loss]", "[lost]", "/lost: no such key"),
        ("[training]", "[training", "Expected"),
    ],
)
def test_a_fault_is_named_where_it_stands(tmp_path: Path, was: str, now: str, said: str) -> None:
    """One change of a good recipe."""
    path = write_recipe(tmp_path, "dflash", steps=7)
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, now, 1))
    with pytest.raises(RefusedInput) as caught:
        read_recipe(path, DflashRecipe)
    assert said in caught.value.found


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """Three changes, three pointers."""
    path = write_recipe(tmp_path, "dflash", steps=7)
    text = path.read_text().replace("batch = 6", 'batch = "6"').replace("block_size", "blocksize")
    path.write_text(text)
    with pytest.raises(RefusedInput) as caught:
        read_recipe(path, DflashRecipe)
    for pointer in ("/training/batch", "/drafter/blocksize", "/drafter/block_size: missing"):
        assert pointer in caught.value.found


def test_no_recipe_could_not_be_looked_at(tmp_path: Path) -> None:
    """A file that is not there is no faulty recipe."""
    with pytest.raises(CouldNotLook):
        read_recipe(tmp_path / "none.toml", DflashRecipe)


def test_every_value_decides_the_fingerprint(tmp_path: Path) -> None:
    """Two recipes that differ in one number are two runs."""
    a = read_recipe(write_recipe(tmp_path, "dflash", steps=7), DflashRecipe)
    b = read_recipe(write_recipe(tmp_path, "dflash", steps=8), DflashRecipe)
    assert fingerprint(a) != fingerprint(b)
    assert fingerprint(a) == fingerprint(a)
    assert fingerprint(a, "x") != fingerprint(a, "y")


@pytest.mark.parametrize(
    ("what", "was", "now", "pointer"),
    [
        ("dflash", "[0, 1]", "[0, 3]", "/drafter/target_layer_ids"),
        ("dflash", "[0, 1]", "[1, 0]", "/drafter/target_layer_ids"),
        ("dflash", "= 127", "= 128", "/drafter/mask_token_id"),
        ("eagle3", "[0, 1, 2]", "[0, 0, 2]", "/drafter/target_layer_ids"),
    ],
)
def test_a_drafter_that_does_not_fit_the_target_is_refused(
    tmp_path: Path, what: str, was: str, now: str, pointer: str
) -> None:
    """The target has three layers and 128 ids."""
    write_speaking_target(tmp_path, what)
    path = write_recipe(tmp_path, what, steps=1)
    path.write_text(path.read_text().replace(was, now, 1))
    with pytest.raises(RefusedInput) as caught:
        (train_dflash if what == "dflash" else train_eagle3)(Job(path, tmp_path / "run"))
    assert pointer in caught.value.where
