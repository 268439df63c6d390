"""``draftproof train`` killed at moments nobody chose ends in the bits of a run that nobody killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from draftproof.training.drafters.train import Job, train_dflash
from small_runs import write_recipe, write_speaking_target

pytestmark = [pytest.mark.engine, pytest.mark.slow]

KILLS, MOST = 4, 40
"""Kills that are wanted while the run is at work, and starts that may be needed for them."""


def test_a_run_killed_at_random_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    """The first kills fall into the target's answers or the first steps, later ones anywhere.

    A moment is drawn from how long the run has taken so far, so that a slow machine is killed as often.
    """
    seed = random.randrange(1 << 32)  # noqa: S311 - a moment; shown below, for whoever repeats it
    chance = random.Random(seed)  # noqa: S311
    write_speaking_target(tmp_path, "dflash")
    recipe = write_recipe(tmp_path, "dflash", steps=300)
    recipe.write_text(recipe.read_text().replace("save_every = 20", "save_every = 5"))
    train_dflash(Job(recipe, tmp_path / "whole"))
    cut, whole = tmp_path / "cut", tmp_path / "whole" / "model"
    call = [sys.executable, "-m", "draftproof", "train", "dflash", str(recipe), "--out", str(cut), "--resume"]
    environment, kills = {**os.environ, "OMP_NUM_THREADS": "1"}, 0
    for _ in range(MOST):
        child = subprocess.Popen(call, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
        began, before = time.monotonic(), state_of(cut)
        while child.poll() is None and state_of(cut) == before:
            time.sleep(0.02)
        if kills < KILLS:
            time.sleep(chance.random() * 0.2 * (time.monotonic() - began))
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                kills += 1
        if child.wait() == 0:
            break
    assert kills == KILLS, f"seed {seed}"
    for name in ("model.safetensors", "config.json"):
        assert (cut / "model" / name).read_bytes() == (whole / name).read_bytes(), f"seed {seed}, {name}"


def state_of(cut: Path) -> tuple[int, str]:
    """How far a run has come on disk: bytes of answers, and the newest snapshot."""
    answers = cut / "responses.jsonl"
    snapshots = (place.name for place in cut.glob("snapshots/step-*"))
    return (answers.stat().st_size if answers.exists() else -1), max(snapshots, default="")
