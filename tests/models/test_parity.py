"""Parity with transformers: the same checkpoint gives the same hidden states, logits and text."""

import json
import math
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from draftproof.models.decoder import Decoder
from draftproof.models.target.load import load_decoder
from draftproof.names import HiddenIndex

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:::transformers")]

KINDS = ("qwen3", "qwen3-sliding", "qwen3-yarn", "qwen2", "llama", "llama-biased", "hybrid", "hybrid-plain")
LENGTH = 70
TOKENS = tuple(int(t) for t in torch.randint(0, 97, (LENGTH,), generator=torch.Generator().manual_seed(5)))
PARITY = 5e-5
"""Largest difference over largest entry in 32-bit floats (seen: 2e-6)."""

WORSE = 1.0
"""How far our 16-bit logits may be from the 32-bit ones, in units of transformers' own 16-bit logits."""

NUM_GREEDY = 200
NOISE = 1e-4
"""Of the largest logit: two 32-bit forwards may order tokens differently that are closer than this."""


def apart(found: Tensor, expected: Tensor) -> float:
    """Largest absolute difference over the largest absolute entry expected."""
    return float((found.double() - expected.double()).abs().max() / expected.double().abs().max())


def strayed(found: Tensor, expected: Tensor) -> float:
    """Root mean square of the difference over that of what was expected: one wild token does not decide."""
    return float((found.double() - expected.double()).norm() / expected.double().norm())


@cache
def peer_run(
    directory: Path, tokens: tuple[int, ...], weights: torch.dtype, arithmetic: torch.dtype
) -> tuple[list[Tensor], Tensor]:
    """What transformers makes of the tokens: hidden states as it numbers them, and logits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: Any = AutoModelForCausalLM.from_pretrained(directory, dtype=weights)
        model = model.to(arithmetic)
        with torch.no_grad():
            found = model(torch.tensor([tokens]), output_hidden_states=True, use_cache=False)
    return [h[0] for h in found.hidden_states], found.logits[0]


@cache
def ours(directory: Path, dtype: torch.dtype = torch.float32) -> Decoder:
    """Our decoder of the same files."""
    return load_decoder(directory, dtype=dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_prompt(write_target: Callable[..., Path], kind: str) -> None:
    """Every residual stream, the normed state and all logits of one forward are transformers'."""
    directory = write_target(kind)
    hidden, logits = peer_run(directory, TOKENS, torch.float32, torch.float32)
    model = ours(directory)
    layers = [HiddenIndex(j) for j in range(model.num_layers)]
    found = model.forward(model.new_session(), TOKENS, capture=layers, with_normed=True)
    assert max(apart(found.hidden[j], hidden[j]) for j in layers) < PARITY
    # transformers puts the normed state where the last residual stream would stand.
    assert found.normed is not None
    assert apart(found.normed, hidden[-1]) < PARITY
    assert apart(found.logits, logits) < PARITY


@pytest.mark.parametrize("kind", KINDS)
def test_split_at_every_boundary(write_target: Callable[..., Path], kind: str) -> None:
    """Wherever the prompt is cut in two, the second part's logits are those of the whole."""
    _, logits = peer_run(write_target(kind), TOKENS, torch.float32, torch.float32)
    model = ours(write_target(kind))
    for cut in range(1, LENGTH):
        session = model.new_session()
        first = model.prefill(session, TOKENS[:cut])
        assert apart(first.logits[0], logits[cut - 1]) < PARITY
        assert apart(model.forward(session, TOKENS[cut:]).logits, logits[cut:]) < PARITY
        session.rollback()
        last = model.prefill(session, TOKENS[cut:])
        assert apart(last.logits[0], logits[-1]) < PARITY
        session.check()


@pytest.mark.parametrize("kind", KINDS)
def test_token_by_token(write_target: Callable[..., Path], kind: str) -> None:
    """One committed token after another, the logits are those of the whole prompt."""
    _, logits = peer_run(write_target(kind), TOKENS, torch.float32, torch.float32)
    model = ours(write_target(kind))
    session = model.new_session()
    for place, token in enumerate(TOKENS):
        assert apart(model.forward(session, [token]).logits[0], logits[place]) < PARITY
        session.commit([0])
        session.check()


@pytest.mark.parametrize("kind", KINDS)
def test_sixteen_bits_are_no_worse_than_the_peers(write_target: Callable[..., Path], kind: str) -> None:
    """With bfloat16 weights, our bfloat16 arithmetic strays no further from 32-bit arithmetic than theirs."""
    directory = write_target(kind, dtype="bfloat16")
    _, exact = peer_run(directory, TOKENS, torch.bfloat16, torch.float32)
    _, rounded = peer_run(directory, TOKENS, torch.bfloat16, torch.bfloat16)
    model = load_decoder(directory)
    assert model.dtype == torch.bfloat16
    bound = WORSE * strayed(rounded, exact)
    assert strayed(model.forward(model.new_session(), TOKENS).logits, exact) < bound
    session, steps = model.new_session(), []
    for token in TOKENS:
        steps.append(model.forward(session, [token]).logits[0])
        session.commit([0])
    assert strayed(torch.stack(steps), exact) < bound


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_text_is_the_same_up_to_ties(
    write_target: Callable[..., Path], kind: str, record_property: Callable[[str, object], None]
) -> None:
    """Two hundred greedy tokens: wherever the choices differ, the two logits are nearer than rounding."""
    directory = write_target(kind)
    model = ours(directory)
    session = model.new_session()
    found = model.prefill(session, TOKENS[:20])
    text, logits = list(TOKENS[:20]), []
    for _ in range(NUM_GREEDY):
        logits.append(found.logits[-1])
        text.append(int(logits[-1].argmax()))
        found = model.forward(session, [text[-1]])
        session.commit([0])
    _, peers = peer_run(directory, tuple(text[:-1]), torch.float32, torch.float32)
    ties = []
    for place, (mine, theirs) in enumerate(zip(logits, peers[19:], strict=True)):
        assert apart(mine, theirs) < PARITY
        if int(theirs.argmax()) != text[20 + place]:
            gap = float(theirs.max() - theirs[text[20 + place]]) / float(theirs.abs().max())
            ties.append({"token": place, "gap": gap})
    record_property("ties", json.dumps(ties))
    assert all(tie["gap"] < NOISE for tie in ties)
    assert len(ties) <= math.ceil(NUM_GREEDY * 0.01)


def test_a_vision_language_checkpoint_loads_its_language_model(
    write_target: Callable[..., Path], tmp_path: Path
) -> None:
    """The names of a vision-language file lead to the same model, and the vision tower is left alone."""
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - only this test writes a checkpoint

    plain = write_target("hybrid")
    tensors = load_file(plain / "model.safetensors")
    moved = {
        name.replace("model.", "model.language_model.", 1) if name.startswith("model.") else name: tensor
        for name, tensor in tensors.items()
    }
    moved["model.visual.blocks.0.norm1.weight"] = torch.ones(4)
    moved["mtp.norm.weight"] = torch.ones(32)
    save_file(moved, tmp_path / "model.safetensors")
    text = json.loads((plain / "config.json").read_text())
    outer = {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "image_token_id": 90,
        "text_config": {key: value for key, value in text.items() if key != "architectures"},
        "tie_word_embeddings": False,
        "vision_config": {"model_type": "qwen3_5", "depth": 1, "hidden_size": 8},
    }
    (tmp_path / "config.json").write_text(json.dumps(outer))
    first, second = ours(plain), load_decoder(tmp_path)
    found = [m.forward(m.new_session(), TOKENS).logits for m in (first, second)]
    assert torch.equal(*found)
