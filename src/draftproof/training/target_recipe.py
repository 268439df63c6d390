"""From a recipe file to a trained target on disk."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from draftproof.config.parse import parse_config
from draftproof.config.raw import read_raw
from draftproof.models.target.reading import read_shape
from draftproof.training.batches import Batches
from draftproof.training.corpus.real import read_real_text
from draftproof.training.corpus.stream import documents
from draftproof.training.loop import Outcome, Report, Training, run
from draftproof.training.optimiser import Schedule
from draftproof.training.recipe import read_recipe, refused, section
from draftproof.training.start import initial_weights
from draftproof.training.target import TargetLosses, TargetTask, write_target
from draftproof.training.vocabulary import Pieces, train_tokenizer

__all__ = ["train_target"]

_TABLES = ("config", "corpus", "tokenizer", "losses", "training")


@dataclass(frozen=True, slots=True)
class _Corpus:
    manifest: str
    """Of the real files: path beside the recipe."""

    real_share: float
    rows: int
    length: int
    seed: int
    drill_steps: int


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    documents: int
    seed: int


@dataclass(frozen=True, slots=True)
class _Run:
    seed: int
    steps: int
    learning_rate: float
    muon_rate: float
    warmup: float
    floor: float
    weight_decay: float
    clip: float
    save_every: int


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
    tables = read_recipe(recipe)
    if extra := sorted(tables.keys() - set(_TABLES)):
        raise refused(recipe, f"the tables {', '.join(_TABLES)}", ", ".join(extra))
    corpus, losses = (
        section(_Corpus, tables, "corpus", recipe),
        section(TargetLosses, tables, "losses", recipe),
    )
    said = section(_Run, tables, "training", recipe)
    config = tables["config"]
    model = directory / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="ascii")
    shape = read_shape(parse_config(read_raw(model / "config.json")), str(recipe))
    real = read_real_text(read_manifest(recipe.parent / corpus.manifest)["train"])
    vocabulary = section(_Vocabulary, tables, "tokenizer", recipe)
    stream = itertools.islice(documents(vocabulary.seed, real, corpus.real_share), vocabulary.documents)
    tokenizer = train_tokenizer((f"{d.prompt}\n{d.response}" for d in stream), shape.vocab_size)
    pieces = Pieces(tokenizer)
    weights = initial_weights(shape, said.seed, pieces.texts, with_mtp=losses.mtp_weight > 0)
    batches = Batches(
        pieces,
        real,
        corpus.real_share,
        corpus.rows,
        corpus.length,
        corpus.seed,
        corpus.drill_steps,
    )
    task = TargetTask(shape, weights, batches, losses, recipe=_text_of(tables, tokenizer))
    training = Training(
        Schedule(said.steps, said.learning_rate, said.warmup, said.floor),
        said.seed,
        weight_decay=said.weight_decay,
        clip=said.clip,
        muon_rate=said.muon_rate,
        save_every=said.save_every,
    )
    return run(
        task,
        training,
        directory,
        on_report=on_report,
        on_snapshot=lambda _: write_target(model, config, weights, tokenizer),
        stop_at=stop_at,
    )


def read_manifest(path: Path) -> dict[str, dict[str, str]]:
    """The real files of the corpus, sha256 by path, under ``train`` and ``held_out``."""
    found = read_raw(path)
    return {name: _digests(found.at(f"/{name}"), path) for name in ("train", "held_out")}


def _digests(value: object, path: Path) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(digest, str) for digest in value.values()):
        raise refused(path, "sha256 by path", repr(value))
    return value


def _text_of(tables: dict[str, Any], tokenizer: Tokenizer) -> str:
    """Everything the outcome depends on, the tokenizer as it came out."""
    return json.dumps([tables, tokenizer.to_str()], sort_keys=True)
