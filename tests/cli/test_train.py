"""``draftproof train``: one object for programs, a bar for people, and no run mixed into another."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from draftproof.cli.main import main

sys.path.insert(0, str(Path(__file__).parents[1]))  # for ``small_runs``

pytestmark = pytest.mark.engine
if find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

from small_runs import write_recipe, write_speaking_target  # noqa: E402 - found on the path just extended


def test_a_run_is_told_as_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps, figures, where the model is; then nothing is left to do."""
    write_speaking_target(tmp_path, "dflash")
    recipe, out = write_recipe(tmp_path, "dflash", steps=4), tmp_path / "run"
    call = ["train", "dflash", str(recipe), "--out", str(out), "--json"]
    assert main([*call, "--stop-at", "2"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["steps"], told["resumed_at"]) == ("draftproof.train/1", 2, 0)
    assert main([*call, "--resume"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["steps"], told["resumed_at"]) == (4, 2)
    assert 1 <= told["figures"]["tau"] <= 6
    assert (Path(told["model"]) / "model.safetensors").exists()
    assert main([*call, "--resume"]) == 0
    assert json.loads(capsys.readouterr().out)["resumed_at"] == 4


def test_a_run_is_not_gone_on_with_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory with a run needs --resume."""
    write_speaking_target(tmp_path, "dflash")
    recipe, out = write_recipe(tmp_path, "dflash", steps=2), tmp_path / "run"
    assert main(["train", "dflash", str(recipe), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "24 answers of the target" in shown
    assert "[########################] 2/2" in shown
    assert main(["train", "dflash", str(recipe), "--out", str(out)]) == 2
    assert "--resume" in capsys.readouterr().err


def test_a_faulty_recipe_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pointer stands in the object; nothing was made."""
    write_speaking_target(tmp_path, "dflash")
    recipe = write_recipe(tmp_path, "dflash", steps=2, more="sed = 1")
    assert main(["train", "dflash", str(recipe), "--out", str(tmp_path / "run"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["error"]["id"] == "refused"
    assert "/sed: no such key" in told["error"]["found"]
    assert not (tmp_path / "run").exists()
