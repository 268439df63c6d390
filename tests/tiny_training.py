"""A training run of seconds: a tiny hybrid on procedural text, with the tokenizer made for it."""

import functools
import itertools
import random
from pathlib import Path

from tokenizers import Tokenizer

from draftproof.config.parse import parse_config
from draftproof.config.raw import read_raw
from draftproof.engine.proof.tiny import TINY, write_tiny_target
from draftproof.models.target.reading import read_shape
from draftproof.training.batches import Batches
from draftproof.training.corpus.draws import Draws
from draftproof.training.corpus.real import RealText
from draftproof.training.corpus.stream import made_document
from draftproof.training.loop import Training
from draftproof.training.optimiser import Schedule
from draftproof.training.start import initial_weights
from draftproof.training.target import TargetLosses, TargetTask
from draftproof.training.vocabulary import Pieces, train_tokenizer

VOCAB_SIZE = 400
REAL = RealText(("def spam(eggs):\n    return eggs\n" * 60,))


@functools.cache
def small_tokenizer() -> Tokenizer:
    """A tokenizer of 400 ids."""
    draws = Draws(random.Random(0), held_out=False)  # noqa: S311 - text for a test
    texts = (f"{d.prompt}\n{d.response}" for d in (made_document(draws) for _ in itertools.repeat(None, 200)))
    return train_tokenizer(texts, VOCAB_SIZE)


def small_task(directory: Path, *, kind: str = "hybrid", rows: int = 4, length: int = 96) -> TargetTask:
    """A target whose config stands in ``directory``."""
    config = {**TINY[kind], "vocab_size": VOCAB_SIZE, "tie_word_embeddings": True}
    if kind == "hybrid":
        config["mtp_num_hidden_layers"] = 1
    write_tiny_target(directory, kind, config=config)
    path = directory / "config.json"
    shape = read_shape(parse_config(read_raw(path)), str(path))
    tokenizer = small_tokenizer()
    texts = [tokenizer.decode([token], skip_special_tokens=False) for token in range(VOCAB_SIZE)]
    weights = initial_weights(shape, 3, texts, with_mtp=kind == "hybrid")
    batches = Batches(Pieces(tokenizer), REAL, 0.1, rows, length, seed=5, drill_steps=2)
    losses = TargetLosses(prompt_weight=0.2, mtp_weight=0.2 if kind == "hybrid" else 0.0, mtp_share=0.5)
    return TargetTask(shape, weights, batches, losses, recipe=kind)


def small_training(steps: int, *, save_every: int = 3) -> Training:
    """So many steps, with frequent snapshots."""
    return Training(Schedule(steps, 0.004), seed=1, muon_rate=2.0, save_every=save_every, report_every=2)
