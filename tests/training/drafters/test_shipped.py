"""The drafters of the shipped pair: as their recipes say, and lawful as trained."""

import json
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from draftproof.cli.main import main
from draftproof.engine.engine import Engine
from draftproof.engine.text.stopping import Stopping
from draftproof.models.dflash.load import load_dflash
from draftproof.models.target.load import load_decoder
from draftproof.training.drafters.blocks import draw_blocks
from draftproof.training.drafters.configs import dflash_config
from draftproof.training.drafters.dflash import DflashNet
from draftproof.training.drafters.recipe import DflashRecipe
from draftproof.training.drafters.responses import Example
from draftproof.training.drafters.rows import Rows
from draftproof.training.recipe import read_recipe

pytestmark = pytest.mark.engine

PAIR = Path(str(files("draftproof"))) / "pair"
TARGETS = ("hybrid", "dense")


def answers(target: str, count: int) -> list[Example]:
    """What the target says to the first held-out prompts."""
    engine = Engine.load(PAIR / target)
    assert engine.text is not None
    found = []
    for line in (PAIR / "prompts" / "procedural.jsonl").read_text(encoding="utf-8").splitlines()[:count]:
        prompt = engine.text.encode_chat([{"role": "user", "content": json.loads(line)["prompt"]}])
        said = engine.generate(prompt, stopping=Stopping(60)).token_ids
        found.append(Example((*prompt, *said), len(prompt)))
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_a_drafter_is_what_its_recipe_says(target: str) -> None:
    """The config to the key; the strict checker finds nothing beside the target."""
    recipe = read_recipe(PAIR / "recipes" / f"{target}-dflash.toml", DflashRecipe)
    made, decoder = PAIR / f"{target}-dflash", load_decoder(PAIR / target)
    expected = dflash_config(recipe.drafter, decoder.shape, decoder.num_layers)
    assert json.loads((made / "config.json").read_bytes()) == expected
    assert main(["check", str(made), "--target", str(PAIR / target), "--json"]) == 0


@pytest.mark.parametrize("target", TARGETS)
def test_the_laws_hold_as_trained(target: str) -> None:
    """On real rows of held-out texts: every block of a pass is the block decoded, and sees nothing behind."""
    decoder = load_decoder(PAIR / target)
    drafter = load_dflash(PAIR / f"{target}-dflash", decoder)
    net = DflashNet(drafter.shape, embedding=decoder.embedding, head=decoder.embedding)
    net.load_state_dict(load_file(PAIR / f"{target}-dflash" / "model.safetensors"))
    batch = Rows(decoder, answers(target, 3), drafter.shape.taps).batch([0, 1, 2])
    generator = torch.Generator().manual_seed(0)
    blocks = draw_blocks(batch.tokens, batch.spans, num_anchors=6, num_slots=16, generator=generator)
    anchors = blocks.anchors.sort(1).values
    with torch.no_grad():
        trained = net.logits(net(batch.taps, batch.tokens, anchors))
        behind = batch.taps.clone()
        for row, anchor in enumerate(anchors[:, 0].tolist()):
            behind[row, anchor:] = 0  # the first block of every text sees none of these rows
        cut = net.logits(net(behind, batch.tokens, anchors))
    assert (trained[:, 0] - cut[:, 0]).abs().max() < 1e-4
    assert (trained[:, -1] - cut[:, -1]).abs().max() > 1e-2  # the control: the last block does
    for row in range(3):
        memory, done = drafter.new_memory(), 0
        for number, anchor in enumerate(anchors[row].tolist()):
            token = int(batch.tokens[row, anchor])
            decoded = drafter.draft(memory, batch.taps[row, done:anchor], token, 15)
            done = anchor
            assert (trained[row, number, 1:] - decoded).abs().max() < 1e-3
