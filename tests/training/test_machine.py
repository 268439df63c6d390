"""The table [machine]: half the bits in the products, the same run otherwise; a missing GPU is said."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.training.drafters.recipe import DflashRecipe
from draftproof.training.drafters.train import Job, train_dflash, train_eagle3, train_mtp
from draftproof.training.loop import Outcome, run
from draftproof.training.machine import Machine
from draftproof.training.recipe import fingerprint, read_recipe
from small_runs import write_recipe, write_speaking_target
from tiny_training import small_task, small_training

pytestmark = pytest.mark.engine

TRAINERS = {"dflash": train_dflash, "eagle3": train_eagle3, "mtp": train_mtp}
HALF = '[machine]\ndtype = "bfloat16"\n'
STEPS = 6
BEGUN = "06d5271790973404d117344ef669c42a79963f9e175f2f44e0d3a4dd279e5c90"
"""Of the recipe of seven steps, as it was before recipes could name a machine."""


def loss_of(outcome: Outcome) -> float:
    """Of the last line of metrics."""
    assert outcome.last is not None
    return outcome.last.figures["loss"]


@pytest.mark.parametrize("what", list(TRAINERS))
def test_a_drafter_in_bfloat16(what: str, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Near the loss of 32 bits, not equal; what is kept has 32 bits; a cut run ends in the same bits."""
    write_speaking_target(tmp_path, what)
    path = write_recipe(tmp_path, what, steps=STEPS)
    whole = loss_of(TRAINERS[what](Job(path, tmp_path / "whole")))
    path.write_text(f"{path.read_text()}{HALF}")
    half = loss_of(TRAINERS[what](Job(path, tmp_path / "half")))
    assert half != whole
    assert math.isclose(half, whole, rel_tol=0.02)
    made = tmp_path / "half" / "model" / "model.safetensors"
    assert {tensor.dtype for tensor in load_file(made).values()} == {torch.float32}
    TRAINERS[what](Job(path, tmp_path / "cut", stop_at=4))
    assert TRAINERS[what](Job(path, tmp_path / "cut")).resumed_at == 4
    assert (tmp_path / "cut" / "model" / "model.safetensors").read_bytes() == made.read_bytes()
    assert not [str(warning.message) for warning in recwarn]


@pytest.mark.parametrize("kind", ["hybrid", "dense"])
def test_a_target_in_bfloat16(kind: str, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """The same of a target: its loss is near, its weights keep 32 bits."""
    losses = []
    for machine in (Machine(), Machine(dtype="bfloat16")):
        task = small_task(tmp_path / "model", kind=kind)
        training = replace(small_training(STEPS), machine=machine)
        losses.append(loss_of(run(task, training, tmp_path / machine.dtype)))
        assert {weight.dtype for weight in task.parameters.values()} == {torch.float32}
    assert losses[0] != losses[1]
    assert math.isclose(*losses, rel_tol=0.02)
    assert not [str(warning.message) for warning in recwarn]


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch sees a GPU: bench/gpu_check.py trains on it")
@pytest.mark.parametrize("what", list(TRAINERS))
def test_no_gpu_is_named_before_anything_is_made(what: str, tmp_path: Path) -> None:
    """The pointer into the recipe, and no directory."""
    write_speaking_target(tmp_path, what)
    path = write_recipe(tmp_path, what, steps=STEPS)
    path.write_text(f'{path.read_text()}[machine]\ndevice = "cuda"\n')
    with pytest.raises(CouldNotLook, match="/machine/device") as caught:
        TRAINERS[what](Job(path, tmp_path / "run"))
    assert caught.value.where == f"{path}#/machine/device"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("line", ['device = "tpu"', 'dtype = "float16"', "threads = 2"])
def test_another_machine_is_refused(line: str, tmp_path: Path) -> None:
    """No device or type that nobody tried, no key that would do nothing."""
    path = write_recipe(tmp_path, "dflash", steps=STEPS)
    path.write_text(f"{path.read_text()}[machine]\n{line}\n")
    with pytest.raises(RefusedInput, match="/machine/"):
        read_recipe(path, DflashRecipe)


def test_a_run_begun_before_there_were_machines_goes_on(tmp_path: Path) -> None:
    """The fingerprint of a recipe without the table is the old one; bfloat16 is another run."""
    path = write_recipe(tmp_path, "dflash", steps=7)
    assert fingerprint(read_recipe(path, DflashRecipe)) == BEGUN
    path.write_text(f'{path.read_text()}[machine]\ndevice = "cpu"\n')
    assert fingerprint(read_recipe(path, DflashRecipe)) == BEGUN
    path.write_text(path.read_text().replace('device = "cpu"', 'dtype = "bfloat16"'))
    assert fingerprint(read_recipe(path, DflashRecipe)) != BEGUN
