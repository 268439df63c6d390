"""The trainable nets compute what the engine's drafters compute, step by step, on the same weights."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from dflash_drafters import native_config, tensors_of, write_drafter
from draftproof.models.decoder import Decoder
from draftproof.models.dflash.load import load_dflash, read_dflash
from draftproof.models.dflash.shape import DflashShape
from draftproof.models.eagle3.load import load_eagle3
from draftproof.models.mtp.load import load_mtp
from draftproof.models.target.load import load_decoder
from draftproof.training.drafters.dflash import DflashNet
from draftproof.training.drafters.eagle3 import Eagle3Net
from draftproof.training.drafters.mtp import MtpNet
from tiny_eagle3 import write_tiny_eagle3
from tiny_mtp import write_tiny_mtp

pytestmark = pytest.mark.engine

CLOSE = 1e-4
LENGTH = 29
SLIDING = {"use_sliding_window": True, "sliding_window": 7}
LAYOUTS: dict[str, dict[str, Any]] = {
    "full": {},
    "sliding, then full": SLIDING | {"layer_types": ["sliding_attention", "full_attention"]},
    "sliding, not causal": SLIDING | {"layer_types": ["sliding_attention"] * 2, "is_causal": False},
    "causal, biased": {"is_causal": True, "attention_bias": True},
    "partial rope": {
        "rope_theta": None,
        "rope_parameters": {"rope_theta": 5e5, "partial_rotary_factor": 0.5},
    },
    "scaled, softcapped": {"input_embedding_scale": 3.0, "final_logit_softcapping": 2.0},
}


@pytest.fixture(scope="module")
def target(tiny_targets: dict[str, Path]) -> Decoder:
    """The dense tiny target in float32."""
    return load_decoder(tiny_targets["dense"])


def sequence(width: int) -> tuple[Tensor, Tensor]:
    """[1, S, width] rows and [1, S] tokens."""
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(1, LENGTH, width, generator=generator)
    return rows, torch.randint(128, (1, LENGTH), generator=generator)


def head_of(folder: Path) -> Tensor:
    """The target's output head as stored."""
    return load_file(folder / "model.safetensors")["lm_head.weight"]


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_a_block_trained_is_the_block_decoded(
    layout: str, target: Decoder, tiny_targets: dict[str, Path], tmp_path: Path
) -> None:
    """Law 5: every anchor's block of one training pass has the logits the cached drafter gives in its turn.

    The cached drafter takes the rows in portions as decoding does, between blocks that it forgets.
    """
    config = native_config(**LAYOUTS[layout])
    tensors = tensors_of(config)
    drafter = load_dflash(write_drafter(tmp_path, config, tensors), target)
    net = DflashNet(drafter.shape, embedding=target.embedding, head=head_of(tiny_targets["dense"]))
    net.load_state_dict(tensors)
    rows, tokens = sequence(2 * 48)
    anchors = [1, 4, 5, 12, 23, 28]
    with torch.no_grad():
        trained = net.logits(net(rows, tokens, torch.tensor([anchors])))[0]
    memory, done = drafter.new_memory(), 0
    for block, anchor in zip(trained, anchors, strict=True):
        decoded = drafter.draft(memory, rows[0, done:anchor], int(tokens[0, anchor]), 5)
        done = anchor
        assert (block[1:] - decoded).abs().max() < CLOSE


@pytest.mark.parametrize("variant", ["official", "official-full"])
def test_a_chain_trained_is_the_chain_decoded(variant: str, target: Decoder, tmp_path: Path) -> None:
    """Every pair's guesses of the unrolled pass are those of a session: true pairs first, then guesses."""
    write_tiny_eagle3(tmp_path, variant)
    drafter = load_eagle3(tmp_path, target)
    tensors = load_file(tmp_path / "model.safetensors")
    num_rows = drafter.shape.draft_vocab_size
    ids = torch.arange(num_rows) + tensors.get("d2t", torch.zeros(num_rows, dtype=torch.long))
    embedding = tensors.get("embed_tokens.weight", target.embedding)
    net = Eagle3Net(drafter.shape, embedding=embedding, target_ids=ids)
    left = {"d2t", "t2d", "embed_tokens.weight"}
    net.load_state_dict({name: tensor for name, tensor in tensors.items() if name not in left})
    rows, tokens = sequence(3 * 48)
    with torch.no_grad():
        trained = net(rows, tokens, 4)
    for pair in (0, 3, 11, 24):
        session = drafter.new_session()
        features = drafter.fused(rows[0, : pair + 1].chunk(3, -1))
        following = tokens[0, 1:].tolist()
        read = drafter.read(session, features, following[: pair + 1])
        for step, logits in enumerate(trained):
            decoded = drafter.logits(read.normed[-1:])[0, ids]
            assert (logits[0, pair] - decoded).abs().max() < CLOSE, f"pair {pair}, step {step}"
            if pair + 1 + step < len(following):
                read = drafter.read(session, read.features[-1:], [following[pair + 1 + step]])


@pytest.mark.parametrize("kind", ["hybrid", "dense"])
def test_a_head_trained_is_the_head_decoded(kind: str, tmp_path: Path) -> None:
    """The same for the multi-token-prediction head, gate, partial rope and zero-centred norms in it."""
    write_tiny_mtp(tmp_path, kind)
    target = load_decoder(tmp_path)
    head = load_mtp(tmp_path, target)
    tensors = load_file(tmp_path / "model.safetensors")
    net = MtpNet(target.shape, embedding=target.embedding, head=head_of(tmp_path))
    net.load_state_dict({n.removeprefix("mtp."): t for n, t in tensors.items() if n.startswith("mtp.")})
    normed, tokens = sequence(48)
    with torch.no_grad():
        trained = net(normed, tokens, 4)
    following = tokens[0, 1:].tolist()
    for pair in (0, 5, 20):
        session = head.new_session()
        out = head.read(session, normed[0, : pair + 1], following[: pair + 1])
        for step, logits in enumerate(trained):
            assert (logits[0, pair] - head.logits(out[-1:])[0]).abs().max() < CLOSE, f"pair {pair}, {step}"
            out = head.read(session, out[-1:], [following[pair + 1 + step]])


def test_the_parameters_are_the_checkpoint(target: Decoder, tiny_targets: dict[str, Path]) -> None:
    """A net's own names are those of a native checkpoint, none missing and none more."""
    config = native_config()
    net = DflashNet(
        shape_of(config, tiny_targets["dense"].parent / "names"),
        embedding=target.embedding,
        head=head_of(tiny_targets["dense"]),
    )
    assert set(net.state_dict()) == set(tensors_of(config))


def shape_of(config: dict[str, Any], folder: Path) -> DflashShape:
    """The shape the strict reader makes of a config."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return read_dflash(folder)
