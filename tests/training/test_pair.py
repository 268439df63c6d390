"""What ships as the pair: its card, its recipes and its files say the same."""

import json
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from draftproof.engine.text.tokens import read_text_codec
from draftproof.models.mtp.load import load_mtp
from draftproof.models.target.load import load_decoder
from draftproof.training.card import CARD, LIMIT, files_table
from draftproof.training.corpus.document import Document
from draftproof.training.corpus.held_out import made_prompts
from draftproof.training.nets.target import TargetNet
from draftproof.training.vocabulary import SPECIAL, Pieces

pytestmark = pytest.mark.engine

PAIR = Path(str(files("draftproof"))) / "pair"
TARGETS = ("hybrid", "dense")


def test_the_card_names_every_file_as_it_is() -> None:
    """Sizes and digests; a file that changed, came or went is another pair. Mend: write_files_table."""
    assert (PAIR / CARD).read_text(encoding="utf-8").endswith(files_table(PAIR))


def test_the_pair_is_small() -> None:
    """Everything together."""
    assert sum(path.stat().st_size for path in PAIR.rglob("*") if path.is_file()) <= LIMIT


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_is_what_its_recipe_says(target: str) -> None:
    """The config to the key, and every tensor finite and used."""
    recipe = tomllib.loads((PAIR / "recipes" / f"{target}.toml").read_text(encoding="utf-8"))
    assert json.loads((PAIR / target / "config.json").read_bytes()) == recipe["config"]
    decoder = load_decoder(PAIR / target)
    if target == "hybrid":
        load_mtp(PAIR / target, decoder)
    weights = load_file(PAIR / target / "model.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}


def test_both_targets_speak_alike() -> None:
    """One tokenizer, one template, the special tokens last."""
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (PAIR / "hybrid" / name).read_bytes() == (PAIR / "dense" / name).read_bytes()
    codec = read_text_codec(PAIR / "hybrid")
    assert [codec.tokenizer.token_to_id(token) for token in SPECIAL] == list(range(1019, 1024))


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_foresees_what_it_never_saw(target: str) -> None:
    """Forty held-out answers: under one nat a token, where a uniform guess takes 6.9; the card has all."""
    decoder = load_decoder(PAIR / target)
    net = TargetNet(decoder.shape, load_file(PAIR / target / "model.safetensors"))
    pieces = Pieces(read_text_codec(PAIR / target).tokenizer)
    nats: list[float] = []
    for document in made_prompts(40):
        nats += _losses(net, pieces, document)
    assert sum(nats) / len(nats) < 1.0


def _losses(net: TargetNet, pieces: Pieces, document: Document) -> list[float]:
    prompt, answer = pieces.prompt(document), pieces.response(document)
    ids = torch.tensor([[*prompt, *answer]])
    with torch.no_grad():
        chances = net.logits(net.read(ids[:, :-1]).normed[0, len(prompt) - 1 :]).log_softmax(-1)
    found: list[float] = (-chances.gather(1, torch.tensor(answer)[:, None])[:, 0]).tolist()
    return found
