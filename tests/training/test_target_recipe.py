"""Recipes of targets go through the one reader: every fault with its pointer, all of them at once."""

from importlib.resources import files
from pathlib import Path

import pytest

from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.training.recipe import read_recipe
from draftproof.training.target_recipe import TargetRecipe, train_target

pytestmark = pytest.mark.engine

RECIPES = Path(str(files("draftproof"))) / "pair" / "recipes"


@pytest.mark.parametrize("name", ["hybrid", "dense"])
def test_the_shipped_recipes_are_whole(name: str) -> None:
    """Read as they are; the model's own keys are kept as written."""
    recipe = read_recipe(RECIPES / f"{name}.toml", TargetRecipe)
    assert recipe.config["vocab_size"] == 1024
    assert recipe.training.steps > 100
    assert recipe.machine.device == "cpu"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A shipped recipe with faults in four tables."""
    text = (RECIPES / "dense.toml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("documents")]
    path = tmp_path / "broken.toml"
    path.write_text("\n".join(lines).replace("[losses]", "[loses]").replace("[corpus]", "[corpus]\nrow = 3"))
    return path


def test_every_fault_is_told_with_its_pointer(broken: Path, tmp_path: Path) -> None:
    """A key too many, one too few, a table under another name; and nothing was begun."""
    with pytest.raises(RefusedInput) as caught:
        train_target(broken, tmp_path / "run")
    for said in (
        "/corpus/row: no such key",
        "/tokenizer/documents: missing",
        "/loses: no such key",
        "/losses: m",
    ):
        assert said in caught.value.found
    assert not (tmp_path / "run").exists()


def test_no_recipe_could_not_be_looked_at(tmp_path: Path) -> None:
    """A file that is not there, and text that is none."""
    with pytest.raises(CouldNotLook):
        train_target(tmp_path / "none.toml", tmp_path / "run")
    (tmp_path / "bytes.toml").write_bytes(b"seed = \xff")
    with pytest.raises(RefusedInput, match="recipe"):
        train_target(tmp_path / "bytes.toml", tmp_path / "run")
