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
from draftproof.models.eagle3.load import load_eagle3
from draftproof.models.mtp.load import load_mtp
from draftproof.models.target.load import load_decoder
from draftproof.training.drafters.blocks import draw_blocks
from draftproof.training.drafters.configs import dflash_config, eagle3_config
from draftproof.training.drafters.dflash import DflashNet
from draftproof.training.drafters.eagle3 import Eagle3Net
from draftproof.training.drafters.mtp import MtpNet
from draftproof.training.drafters.recipe import DflashRecipe, Eagle3Recipe, MtpRecipe
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


def test_the_chains_are_what_their_recipes_say() -> None:
    """EAGLE-3's config to the key and nothing found beside the target; the head is of the target it names."""
    recipe = read_recipe(PAIR / "recipes" / "hybrid-eagle3.toml", Eagle3Recipe)
    made, decoder = PAIR / "hybrid-eagle3", load_decoder(PAIR / "hybrid")
    assert json.loads((made / "config.json").read_bytes()) == eagle3_config(recipe.drafter, decoder.shape)
    assert main(["check", str(made), "--target", str(PAIR / "hybrid"), "--json"]) == 0
    head = read_recipe(PAIR / "recipes" / "hybrid-mtp.toml", MtpRecipe)
    assert (PAIR / "recipes" / head.target).resolve() == (PAIR / "hybrid").resolve()


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
        alone = net.logits(net(batch.taps, batch.tokens, anchors[:, 2:3]))
    places = (blocks.anchors[..., None] + torch.arange(16)).clamp(max=batch.tokens.shape[1] - 1)
    in_place = batch.tokens.gather(1, places.flatten(1)).view(places.shape)
    assert int(blocks.counted.sum()) > 100
    assert (blocks.labels[blocks.counted] == in_place[blocks.counted]).all()
    assert (trained[:, 2] - alone[:, 0]).abs().max() < 1e-4  # blocks are independent of each other
    assert (trained[:, 0] - cut[:, 0]).abs().max() < 1e-4
    assert (trained[:, -1] - cut[:, -1]).abs().max() > 1e-2  # the control: the last block does
    for row in range(3):
        memory, done = drafter.new_memory(), 0
        for number, anchor in enumerate(anchors[row].tolist()):
            token = int(batch.tokens[row, anchor])
            decoded = drafter.draft(memory, batch.taps[row, done:anchor], token, 15)
            done = anchor
            assert (trained[row, number, 1:] - decoded).abs().max() < 1e-3


def test_an_eagle3_chain_is_decoded_as_it_was_trained() -> None:
    """Every step of the unrolled pass is the session's; no row behind a pair changes its guesses."""
    decoder = load_decoder(PAIR / "hybrid")
    drafter = load_eagle3(PAIR / "hybrid-eagle3", decoder)
    tensors = load_file(PAIR / "hybrid-eagle3" / "model.safetensors")
    count = drafter.shape.draft_vocab_size
    ids = torch.arange(count) + tensors.get("d2t", torch.zeros(count, dtype=torch.long))
    net = Eagle3Net(drafter.shape, embedding=decoder.embedding, target_ids=ids)
    net.load_state_dict({name: each for name, each in tensors.items() if name not in {"d2t", "t2d"}})
    batch = Rows(decoder, answers("hybrid", 1), drafter.shape.taps).batch([0])
    following = batch.tokens[0, 1:].tolist()
    pair = len(following) // 2
    with torch.no_grad():
        trained = net(batch.taps, batch.tokens, 4)
        behind = batch.taps.clone()
        behind[:, pair + 1 :] = 0
        cut = net(behind, batch.tokens, 4)
        behind[:, pair] = 0
        assert (net(behind, batch.tokens, 1)[0][0, pair] - trained[0][0, pair]).abs().max() > 1e-2  # control
    session = drafter.new_session()
    features = drafter.fused(batch.taps[0, : pair + 1].chunk(len(drafter.shape.taps), -1))
    read = drafter.read(session, features, following[: pair + 1])
    for step, logits in enumerate(trained):
        assert (logits[0, pair] - cut[step][0, pair]).abs().max() < 1e-4
        decoded = drafter.logits(read.normed[-1:])[0, ids]
        assert (logits[0, pair] - decoded).abs().max() < 1e-3, f"step {step}"
        read = drafter.read(session, read.features[-1:], [following[pair + 1 + step]])


def test_the_head_is_decoded_as_it_was_trained() -> None:
    """The same of multi-token prediction, over the rows that the target's own head reads."""
    decoder = load_decoder(PAIR / "hybrid")
    head = load_mtp(PAIR / "hybrid", decoder)
    tensors = load_file(PAIR / "hybrid" / "model.safetensors")
    net = MtpNet(decoder.shape, embedding=decoder.embedding, head=decoder.embedding)
    net.load_state_dict({n.removeprefix("mtp."): each for n, each in tensors.items() if n.startswith("mtp.")})
    batch = Rows(decoder, answers("hybrid", 1), ()).batch([0])
    following = batch.tokens[0, 1:].tolist()
    pair = len(following) // 2
    with torch.no_grad():
        trained = net(batch.normed, batch.tokens, 4)
        behind = batch.normed.clone()
        behind[:, pair + 1 :] = 0
        cut = net(behind, batch.tokens, 4)
        behind[:, pair] = 0
        assert (net(behind, batch.tokens, 1)[0][0, pair] - trained[0][0, pair]).abs().max() > 1e-2  # control
    session = head.new_session()
    out = head.read(session, batch.normed[0, : pair + 1], following[: pair + 1])
    for step, logits in enumerate(trained):
        assert (logits[0, pair] - cut[step][0, pair]).abs().max() < 1e-4
        assert (logits[0, pair] - head.logits(out[-1:])[0]).abs().max() < 1e-3, f"step {step}"
        out = head.read(session, out[-1:], [following[pair + 1 + step]])
