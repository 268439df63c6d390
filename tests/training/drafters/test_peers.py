"""A drafter trained here is taken by PyPI ``dflash``, PyPI ``speculators`` and vLLM as it is written."""

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from safetensors.torch import load_file, save_file

from draftproof.cli.main import main
from draftproof.models.dflash.load import load_dflash
from draftproof.models.target.load import load_decoder
from draftproof.training.drafters.train import Job, train_dflash, train_eagle3
from environments import peer_python, vllm_python
from small_runs import write_recipe, write_speaking_target

pytestmark = [pytest.mark.engine, pytest.mark.live, pytest.mark.slow]

BORROWED = {"embed_tokens.weight", "lm_head.weight", "verifier_lm_head.weight", "verifier_norm.weight"}


def test_pypi_dflash_takes_it(tmp_path: Path) -> None:
    """Nothing missing, nothing left over, the same block to 1e-4."""
    try:
        python = peer_python("dflash-0.1.0", "torch==2.13.0", "dflash==0.1.0", "transformers==5.24.0")
    except RuntimeError as error:
        pytest.skip(f"PyPI dflash could not be installed: {error}")
    target = load_decoder(write_speaking_target(tmp_path, "dflash"))
    train_dflash(Job(write_recipe(tmp_path, "dflash", steps=3), tmp_path / "run"))
    drafter = load_dflash(tmp_path / "run" / "model", target)
    tokens = [5, *[drafter.shape.mask_token_id] * 5]
    rows = torch.randn(1, 17, 2 * 48, generator=torch.Generator().manual_seed(1))
    block = F.embedding(torch.tensor([tokens]), target.embedding)
    save_file({"rows": rows, "block": block.contiguous()}, tmp_path / "ask.safetensors")
    script = Path(__file__).with_name("peer_load.py")
    ran = subprocess.run(
        [python, script, tmp_path / "run" / "model", tmp_path], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "taps [0, 1], mask 127" in ran.stdout
    told = load_file(tmp_path / "told.safetensors")["hidden"][0]
    assert (told - drafter.hidden(drafter.new_memory(), rows[0], tokens)).abs().max() < 1e-4


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each kind a folder with target, recipe, and ``native`` and ``speculators`` as they were trained."""
    found = {}
    for what, train in (("dflash", train_dflash), ("eagle3", train_eagle3)):
        folder = found[what] = tmp_path_factory.mktemp(what)
        write_speaking_target(folder, what)
        for said in ("native", "speculators"):
            recipe = write_recipe(folder, what, steps=2, more=f'format = "{said}"')
            # vLLM 0.32.0 on a CPU: "Model Runner V1 does not support: mixed sliding/full dflash drafts".
            recipe.write_text(recipe.read_text().replace('"full_attention"', '"sliding_attention"'))
            train(Job(recipe, folder / said))
    return found


def speculators(*arguments: object) -> list[dict[str, Any]]:
    """What PyPI speculators tells, an object a line."""
    try:
        python = peer_python("speculators-0.9.0", "torch==2.13.0", "speculators==0.9.0")
    except RuntimeError as error:
        pytest.skip(f"PyPI speculators could not be installed: {error}")
    script = Path(__file__).with_name("peer_speculators.py")
    ran = subprocess.run([python, script, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: list[dict[str, Any]] = [
        json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"speculators": "0.9.0"')
    ]
    return found


def test_pypi_speculators_takes_what_is_written(both: dict[str, Path]) -> None:
    """Every tensor in its place, to the bit; layers and drafted tokens as the recipe means them."""
    dflash, eagle3 = speculators("load", *(folder / "speculators" / "model" for folder in both.values()))
    assert (dflash["kind"], eagle3["kind"]) == ("DFlashDraftModel", "Eagle3DraftModel")
    assert (dflash["wrong"], eagle3["wrong"]) == ([], [])
    for told in (dflash, eagle3):  # what is not in the file is the target's, and is taken from it
        assert set(told["absent"]) <= BORROWED, told["absent"]
    assert (dflash["target_layer_ids"], eagle3["target_layer_ids"]) == ([1, 2], [1, 2, 3])
    assert (dflash["speculative_tokens"], eagle3["speculative_tokens"]) == (5, 3)


@pytest.mark.parametrize("what", ["dflash", "eagle3"])
def test_the_trainer_of_pypi_speculators_takes_what_is_emitted(what: str, both: dict[str, Path]) -> None:
    """Its command line, its model, its loader, and a loss with gradients; the trainer itself wants a GPU."""
    folder = both[what]
    recipe = write_recipe(folder, what, steps=2)
    assert main(["train", what, str(recipe), "--emit", "speculators", "--out", str(folder / "out")]) == 0
    (told,) = speculators("train", folder / "out")
    assert 0 < told["loss"] < 3 * math.log(128)
    assert told["with_gradient"] > 5
    assert told["target_layer_ids"] == ([1, 2] if what == "dflash" else [1, 2, 3])


@pytest.mark.parametrize("said", ["native", "speculators"])
@pytest.mark.parametrize("what", ["dflash", "eagle3"])
def test_vllm_resolves_what_is_written(
    what: str, said: str, both: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The configuration code of vLLM 0.32.0 takes every kind in every format as the file means it."""
    try:
        python = vllm_python()
    except RuntimeError as error:
        pytest.skip(f"vLLM could not be installed: {error}")
    asked = ["preflight", str(both[what] / said / "model"), "--target", str(both[what] / "target")]
    asked += ["--engine", "vllm", "--python", str(python), "--timeout", "1800", "--json"]
    asked += ["--k", "5" if what == "dflash" else "3"]  # a native EAGLE-3 file does not say it
    capsys.readouterr()
    assert main(asked) == 0, capsys.readouterr().out
