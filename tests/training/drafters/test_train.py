"""Whole small runs: they learn, they go on where they were cut, and what they write is served as it is."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

from draftproof.cli.main import main
from draftproof.engine.engine import Engine
from draftproof.engine.text.stopping import Stopping
from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.training.drafters.train import Job, train_dflash, train_eagle3, train_mtp
from draftproof.training.loop import Report
from small_runs import write_recipe, write_speaking_target

pytestmark = pytest.mark.engine

TRAINERS = {"dflash": train_dflash, "eagle3": train_eagle3, "mtp": train_mtp}
FIRST = {"dflash": "first", "eagle3": "r1", "mtp": "r1"}
CHANCE = 1 / 128
Run = tuple[str, Path, list[Report]]


@pytest.fixture(scope="module", params=list(TRAINERS))
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, list[Report]]:
    """One run of each kind, with its reports."""
    folder = tmp_path_factory.mktemp(request.param)
    write_speaking_target(folder, request.param)
    reports: list[Report] = []
    job = Job(write_recipe(folder, request.param, steps=100), folder / "run", reports.append)
    assert TRAINERS[request.param](job).step == 100
    return request.param, folder, reports


def test_it_learns(run: Run) -> None:
    """The loss falls, by a third where its floor is 0; the first guess is right 15 times as often as chance.

    A chain's loss is a cross entropy with the target's whole distribution, whose own entropy is its floor.
    """
    what, _, reports = run
    first, last = reports[0].figures, reports[-1].figures
    assert last["loss"] < first["loss"] * (2 / 3 if what == "dflash" else 0.93)
    assert last[FIRST[what]] > 15 * CHANCE
    assert last["tau"] > first["tau"] + 0.15


def test_what_it_writes_is_served(run: Run) -> None:
    """The strict checker finds nothing, and the engine drafts with it, losslessly."""
    what, folder, _ = run
    made = folder / "run" / "model"
    target = made if what == "mtp" else folder / "target"
    if what != "mtp":
        assert main(["check", str(made), "--target", str(target), "--json"]) == 0
    drafted = Engine.load(target, None if what == "mtp" else made, method=what, num_draft_tokens=3)
    plain = Engine.load(target)
    assert plain.text is not None
    emitted = steps = 0
    for line in (folder / "prompts.jsonl").read_text().splitlines()[:8]:
        prompt = plain.text.encode(json.loads(line)["prompt"])
        answer = drafted.generate(prompt, stopping=Stopping(40))
        assert answer.token_ids == plain.generate(prompt, stopping=Stopping(40)).token_ids
        emitted, steps = emitted + len(answer.token_ids), steps + len(answer.steps)
    assert emitted / steps > 1.1


@pytest.mark.parametrize("what", list(TRAINERS))
def test_a_cut_run_goes_on_to_the_same_bits(what: str, tmp_path: Path) -> None:
    """Cut at a step that is no snapshot's multiple, gone on, and never cut: the same files."""
    write_speaking_target(tmp_path, what)
    recipe = write_recipe(tmp_path, what, steps=8)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    TRAINERS[what](Job(recipe, whole))
    TRAINERS[what](Job(recipe, cut, stop_at=3))
    torn = cut / "responses.jsonl"
    torn.write_text(
        torn.read_text() + '{"prompt": 6, "ids": [1, 2'
    )  # as a kill in the middle of a line leaves it
    assert TRAINERS[what](Job(recipe, cut)).resumed_at == 3
    for name in ("model.safetensors", "config.json"):
        assert (whole / "model" / name).read_bytes() == (cut / "model" / name).read_bytes()
    other = TRAINERS[what](Job(write_recipe(tmp_path, what, steps=9), tmp_path / "other"))
    assert other.step == 9
    assert (tmp_path / "other" / "model" / "model.safetensors").read_bytes() != (
        whole / "model" / "model.safetensors"
    ).read_bytes()


def test_a_run_of_another_recipe_is_not_gone_on_with(tmp_path: Path) -> None:
    """A changed rate, or another target behind the same path, is refused and nothing is touched."""
    target = write_speaking_target(tmp_path, "dflash")
    train_dflash(Job(write_recipe(tmp_path, "dflash", steps=2), tmp_path / "run"))
    before = (tmp_path / "run" / "model" / "model.safetensors").read_bytes()
    with pytest.raises(RefusedInput, match="recipe"):
        train_dflash(Job(write_recipe(tmp_path, "dflash", steps=3), tmp_path / "run"))
    weights = (target / "model.safetensors").read_bytes()
    (target / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(RefusedInput, match="responses"):
        train_dflash(Job(write_recipe(tmp_path, "dflash", steps=2), tmp_path / "run"))
    assert (tmp_path / "run" / "model" / "model.safetensors").read_bytes() == before


def test_a_run_starts_from_a_drafter(run: Run, tmp_path: Path) -> None:
    """``start`` takes its weights: the first step is as good as the last of the run before."""
    what, folder, reports = run
    started: list[Report] = []
    recipe = write_recipe(folder, what, steps=5, training='start = "run/model"\nwarmup = 1.0')
    TRAINERS[what](Job(recipe, tmp_path / "run", started.append))
    assert started[0].figures["loss"] < 1.3 * reports[-1].figures["loss"]
    recipe = write_recipe(folder, what, steps=5, training='start = "nowhere"')
    with pytest.raises(CouldNotLook, match="start"):
        TRAINERS[what](Job(recipe, tmp_path / "none"))


def test_a_reduced_vocabulary_has_its_map(tmp_path: Path) -> None:
    """EAGLE-3 with half the ids: offsets lead back, the checker agrees, the text is the target's."""
    target = write_speaking_target(tmp_path, "eagle3")
    path = write_recipe(tmp_path, "eagle3", steps=3)
    path.write_text(path.read_text().replace("draft_vocab_size = 128", "draft_vocab_size = 64"))
    train_eagle3(Job(path, tmp_path / "run"))
    made = tmp_path / "run" / "model"
    tensors = load_file(made / "model.safetensors")
    assert tensors["lm_head.weight"].shape[0] == 64
    assert int(tensors["t2d"].sum()) == 64
    assert main(["check", str(made), "--target", str(target), "--json"]) == 0
    engine = Engine.load(target, made, method="eagle3", num_draft_tokens=2)
    plain = Engine.load(target).generate([5, 6, 7], stopping=Stopping(30)).token_ids
    assert engine.generate([5, 6, 7], stopping=Stopping(30)).token_ids == plain


@pytest.mark.parametrize("what", ["dflash", "eagle3"])
def test_both_formats_are_the_same_drafter(what: str, tmp_path: Path) -> None:
    """Speculators' names and numbering, read back by the strict reader, draft the same tokens."""
    target = write_speaking_target(tmp_path, what)
    texts = []
    for said in ("native", "speculators"):
        recipe = write_recipe(tmp_path, what, steps=3, more=f'format = "{said}"')
        TRAINERS[what](Job(recipe, tmp_path / said))
        made = tmp_path / said / "model"
        assert main(["check", str(made), "--target", str(target), "--json"]) == 0
        config = json.loads((made / "config.json").read_text())
        assert ("speculators_model_type" in config) is (said == "speculators")
        engine = Engine.load(target, made, method=what, num_draft_tokens=3)
        generation = engine.generate([9, 8, 7], stopping=Stopping(40))
        texts.append((generation.token_ids, generation.steps))
    assert texts[0] == texts[1]
