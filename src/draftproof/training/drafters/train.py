"""From a recipe to a drafter on disk: the target answers, the drafter learns, every snapshot can be served.

A run's directory holds ``responses.jsonl``, ``metrics.jsonl``, ``snapshots/`` and ``model/``.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from draftproof.config.parse import parse_config
from draftproof.config.raw import parse_raw
from draftproof.errors import RefusedInput
from draftproof.models.dflash.shape import read_dflash_shape
from draftproof.models.eagle3.shape import read_eagle3_shape
from draftproof.models.mtp.load import PREFIX
from draftproof.training.drafters.checkpoint import write_drafter
from draftproof.training.drafters.configs import dflash_config, eagle3_config
from draftproof.training.drafters.dflash import DflashNet
from draftproof.training.drafters.eagle3 import Eagle3Net
from draftproof.training.drafters.formats import Served, laid_out, raw_of
from draftproof.training.drafters.frozen import weights_digest
from draftproof.training.drafters.ground import Ground, lay_ground
from draftproof.training.drafters.learn_blocks import BlockTask
from draftproof.training.drafters.learn_chains import ChainTask
from draftproof.training.drafters.mtp import MtpNet
from draftproof.training.drafters.recipe import DflashRecipe, Eagle3Recipe, MtpRecipe
from draftproof.training.drafters.start import draw_weights, take_weights
from draftproof.training.loop import Outcome, Report, Task, Training, run
from draftproof.training.optimiser import Schedule
from draftproof.training.recipe import fingerprint, read_recipe

__all__ = ["Job", "train_dflash", "train_eagle3", "train_mtp"]

AnyRecipe = DflashRecipe | Eagle3Recipe | MtpRecipe


@dataclass(frozen=True, slots=True)
class Job:
    """One run, and who is told how it goes."""

    recipe: Path
    directory: Path
    """Of the run; ``model`` in it is the drafter as of the newest snapshot."""

    on_report: Callable[[Report], None] = lambda _: None
    on_answer: Callable[[int], None] = lambda _: None
    """Called with the number of answers the target has given."""

    stop_at: int | None = None
    """End after so many steps, as if cut there."""


def train_dflash(job: Job) -> Outcome:
    """Train the DFlash drafter of a recipe, or go on with it.

    Raises:
        CouldNotLook, RefusedInput: recipe, target or directory is not what it must be.
    """
    path, recipe = job.recipe, read_recipe(job.recipe, DflashRecipe)
    ground = _ground(job, recipe)
    config = dflash_config(recipe.drafter, ground.target.shape, ground.target.num_layers)
    shape = read_dflash_shape(parse_config(raw_of(config, str(path))), str(path))
    _refuse_outside(path, recipe.drafter.target_layer_ids, ground)
    if shape.mask_token_id >= shape.vocab_size:
        raise _refused(
            path,
            "/drafter/mask_token_id",
            f"an id below {ground.target.shape.vocab_size}",
            shape.mask_token_id,
        )
    net = DflashNet(shape, embedding=ground.target.embedding, head=ground.head).to(ground.head.device)
    draw_weights(net, recipe.seed)
    if recipe.training.start:
        take_weights(net, path.parent / recipe.training.start / "model.safetensors")
    task = BlockTask(
        net,
        ground.rows(shape.taps),
        recipe.loss,
        batch=recipe.training.batch,
        fingerprint=_mark(job, recipe, ground),
    )
    drafted = shape.block_size - 1
    return _run(job, task, recipe, _served(path, recipe, (config, net.state_dict()), drafted))


def train_eagle3(job: Job) -> Outcome:
    """Train the EAGLE-3 drafter of a recipe, or go on with it; errors as ``train_dflash``."""
    path, recipe = job.recipe, read_recipe(job.recipe, Eagle3Recipe)
    ground = _ground(job, recipe)
    target = ground.target
    config = eagle3_config(recipe.drafter, target.shape)
    shape = read_eagle3_shape(
        parse_config(raw_of(config, str(path))), str(path), names=(), num_target_layers=target.num_layers
    )
    _refuse_outside(path, recipe.drafter.target_layer_ids, ground)
    ids = _frequent(ground, shape.draft_vocab_size)
    net = Eagle3Net(shape, embedding=target.embedding, target_ids=ids).to(ground.head.device)
    draw_weights(net, recipe.seed)
    with torch.no_grad():
        net.lm_head.weight.copy_(ground.head[ids.to(ground.head.device)])
    if recipe.training.start:
        take_weights(net, path.parent / recipe.training.start / "model.safetensors")
    task = ChainTask(
        net,
        lambda batch, depth: net(batch.taps, batch.tokens, depth),
        ground.rows(shape.taps),
        recipe.loss,
        head=ground.head,
        target_ids=ids,
        batch=recipe.training.batch,
        fingerprint=_mark(job, recipe, ground),
    )
    tensors = net.state_dict()
    if len(ids) < target.shape.vocab_size:
        is_drafted = torch.zeros(target.shape.vocab_size, dtype=torch.bool).index_fill_(0, ids, value=True)
        tensors |= {"d2t": ids - torch.arange(len(ids)), "t2d": is_drafted}
    return _run(job, task, recipe, _served(path, recipe, (config, tensors), recipe.loss.depth))


def train_mtp(job: Job) -> Outcome:
    """Train a target's head of multi-token prediction on; ``model`` is the whole target with the new head.

    Errors as ``train_dflash``.
    """
    path, recipe = job.recipe, read_recipe(job.recipe, MtpRecipe)
    ground = _ground(job, recipe)
    target = ground.target
    net = MtpNet(target.shape, embedding=target.embedding, head=ground.head).to(ground.head.device)
    place = path.parent / recipe.target
    start = path.parent / recipe.training.start if recipe.training.start else place
    take_weights(net, start / "model.safetensors", PREFIX)
    task = ChainTask(
        net,
        lambda batch, depth: net(batch.normed, batch.tokens, depth),
        ground.rows(()),
        recipe.loss,
        head=ground.head,
        target_ids=torch.arange(target.shape.vocab_size),
        batch=recipe.training.batch,
        fingerprint=_mark(job, recipe, ground),
    )
    whole = load_file(place / "model.safetensors")
    whole |= {f"{PREFIX}{name}": weight for name, weight in net.state_dict().items()}
    for file in sorted(place.glob("*.json*")) + sorted(place.glob("*.jinja")):
        (job.directory / "model").mkdir(exist_ok=True)
        (job.directory / "model" / file.name).write_bytes(file.read_bytes())
    config = parse_raw((place / "config.json").read_bytes(), str(place / "config.json")).value
    return _run(job, task, recipe, (config, whole))


def _ground(job: Job, recipe: AnyRecipe) -> Ground:
    device, beside = recipe.machine.found(job.recipe), job.recipe.parent
    job.directory.mkdir(parents=True, exist_ok=True)
    kept, place = job.directory / "responses.jsonl", beside / recipe.target
    return lay_ground(place, recipe.responses, beside, kept, on_answer=job.on_answer, device=device)


def _mark(job: Job, recipe: AnyRecipe, ground: Ground) -> str:
    """Digest of all that decides the outcome: recipe, target, weights started from."""
    start = recipe.training.start
    return fingerprint(recipe, ground.digest, weights_digest(job.recipe.parent / start) if start else "")


def _served(path: Path, recipe: DflashRecipe | Eagle3Recipe, native: Served, num_draft_tokens: int) -> Served:
    """The drafter in the format that the recipe asks for."""
    target = path.parent / recipe.target
    return laid_out(native, recipe.format, str(path), num_draft_tokens=num_draft_tokens, target=target)


def _run(job: Job, task: Task, recipe: AnyRecipe, served: Served) -> Outcome:
    going = recipe.training
    training = Training(
        Schedule(going.steps, going.learning_rate, going.warmup, going.floor),
        recipe.seed,
        weight_decay=going.weight_decay,
        clip=going.clip,
        muon_rate=going.muon_rate,
        save_every=going.save_every,
        report_every=going.report_every,
        machine=recipe.machine,
    )

    def serve(_: int) -> None:
        write_drafter(job.directory / "model", *served)

    return run(task, training, job.directory, on_report=job.on_report, on_snapshot=serve, stop_at=job.stop_at)


def _frequent(ground: Ground, count: int) -> Tensor:
    """[count] ids the target says most often, rising; those never said follow in order."""
    said = Counter(token for e in ground.examples for token in e.tokens[e.num_prompt :])
    ranked = sorted(range(ground.target.shape.vocab_size), key=lambda token: (-said[token], token))
    return torch.tensor(sorted(ranked[:count]))


def _refuse_outside(path: Path, ids: tuple[int, ...], ground: Ground) -> None:
    depth = ground.target.num_layers
    if max(ids) >= depth or list(ids) != sorted(set(ids)):
        raise _refused(path, "/drafter/target_layer_ids", f"rising ids below {depth}", list(ids))


def _refused(path: Path, pointer: str, expected: str, found: object) -> RefusedInput:
    return RefusedInput(
        pointer,
        expected=expected,
        found=str(found),
        where=f"{path}#{pointer}",
        means="no drafter of this target can be made of it",
        next_step="mend the recipe",
    )
