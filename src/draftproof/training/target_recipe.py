"""From a recipe file to a trained target on disk."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from draftproof.config.parse import parse_config
from draftproof.config.raw import read_raw
from draftproof.errors import RefusedInput
from draftproof.models.target.reading import read_shape
from draftproof.training.batches import Batches
from draftproof.training.corpus.real import read_real_text
from draftproof.training.corpus.stream import documents
from draftproof.training.loop import Outcome, Report, Training, run
from draftproof.training.machine import Machine
from draftproof.training.optimiser import Schedule
from draftproof.training.recipe import fingerprint, read_recipe
from draftproof.training.start import initial_weights
from draftproof.training.target import TargetLosses, TargetTask, write_target
from draftproof.training.vocabulary import Pieces, train_tokenizer

__all__ = ["TargetRecipe", "read_manifest", "train_target"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is read."""

    manifest: str
    """Of the real files: path beside the recipe."""

    real_share: float
    rows: int
    length: int
    seed: int
    drill_steps: int


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the tokenizer is trained on."""

    documents: int
    seed: int


@dataclass(frozen=True, slots=True)
class TargetRun:
    """How the run goes."""

    seed: int
    steps: int
    learning_rate: float
    muon_rate: float
    warmup: float
    floor: float
    weight_decay: float
    clip: float
    save_every: int


@dataclass(frozen=True, slots=True)
class TargetRecipe:
    """``draftproof train target``."""

    config: dict[str, Any]
    """The model's, key by key as it is written."""

    corpus: Corpus
    tokenizer: Vocabulary
    losses: TargetLosses
    training: TargetRun
    machine: Machine = field(default_factory=Machine)


def train_target(
    recipe: Path,
    directory: Path,
    *,
    on_report: Callable[[Report], None] = lambda _: None,
    stop_at: int | None = None,
) -> Outcome:
    """Train the target of a recipe, or go on with it; ``directory/model`` is always the newest snapshot's.

    Args:
        recipe: the file.
        directory: of the run.
        on_report: called with every line of metrics.
        stop_at: end after so many steps, as if cut there.

    Raises:
        CouldNotLook, RefusedInput: the recipe, its corpus or the directory is not what it must be.
    """
    said = read_recipe(recipe, TargetRecipe)
    device, corpus, going = said.machine.found(recipe), said.corpus, said.training
    model = directory / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(json.dumps(said.config, indent=2) + "\n", encoding="ascii")
    shape = read_shape(parse_config(read_raw(model / "config.json")), str(recipe))
    real = read_real_text(read_manifest(recipe.parent / corpus.manifest)["train"])
    stream = documents(said.tokenizer.seed, real, corpus.real_share)
    read = itertools.islice(stream, said.tokenizer.documents)
    tokenizer = train_tokenizer((f"{d.prompt}\n{d.response}" for d in read), shape.vocab_size)
    pieces = Pieces(tokenizer)
    drawn = initial_weights(shape, going.seed, pieces.texts, with_mtp=said.losses.mtp_weight > 0)
    weights = {name: weight.detach().to(device).requires_grad_() for name, weight in drawn.items()}
    batches = Batches(
        pieces,
        real,
        corpus.real_share,
        corpus.rows,
        corpus.length,
        corpus.seed,
        corpus.drill_steps,
    )
    task = TargetTask(shape, weights, batches, said.losses, recipe=fingerprint(said, tokenizer.to_str()))
    training = Training(
        Schedule(going.steps, going.learning_rate, going.warmup, going.floor),
        going.seed,
        weight_decay=going.weight_decay,
        clip=going.clip,
        muon_rate=going.muon_rate,
        save_every=going.save_every,
        machine=said.machine,
    )
    return run(
        task,
        training,
        directory,
        on_report=on_report,
        on_snapshot=lambda _: write_target(model, said.config, weights, tokenizer),
        stop_at=stop_at,
    )


def read_manifest(path: Path) -> dict[str, dict[str, str]]:
    """The real files of the corpus, sha256 by path, under ``train`` and ``held_out``."""
    found = read_raw(path)
    return {name: _digests(found.at(f"/{name}"), path) for name in ("train", "held_out")}


def _digests(value: object, path: Path) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(digest, str) for digest in value.values()):
        raise RefusedInput(
            "manifest",
            expected="sha256 by path",
            found=repr(value)[:80],
            where=str(path),
            means="it is not known which texts are meant",
            next_step="take the corpus.json of the shipped pair as a model",
        )
    return value
