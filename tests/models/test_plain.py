"""target.plain: the fast decoder computes what the formulas say, to the last digits of 64-bit floats."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from draftproof.models.decoder import Decoder
from draftproof.models.target.load import load_decoder
from draftproof.models.target.plain import PlainResult, run_plain
from draftproof.names import HiddenIndex

pytestmark = pytest.mark.engine

KINDS = ("qwen3", "qwen3-sliding", "qwen3-yarn", "qwen2", "llama", "llama-biased", "hybrid", "hybrid-plain")
TOKENS = tuple(int(t) for t in torch.randint(0, 97, (75,), generator=torch.Generator().manual_seed(3)))
LAW = 1e-12
"""Relative to the largest entry: two orders of the same 64-bit sums, with room (seen: below 1e-13)."""


def apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest absolute difference over the largest absolute entry expected."""
    return float((found - expected).abs().max() / expected.abs().max())


def both(directory: Path) -> tuple[Decoder, PlainResult]:
    """The fast decoder in 64-bit floats, and what its twin makes of TOKENS."""
    model = load_decoder(directory, dtype=torch.float64)
    return model, run_plain(model.shape, load_file(directory / "model.safetensors"), TOKENS)


@pytest.mark.parametrize("kind", KINDS)
def test_one_forward_is_the_twin(write_target: Callable[..., Path], kind: str) -> None:
    """Every residual stream, the normed state and the logits of a whole chain equal the twin's."""
    model, twin = both(write_target(kind))
    every = [HiddenIndex(j) for j in range(model.num_layers + 1)]
    found = model.forward(model.new_session(), TOKENS, capture=every, with_normed=True)
    assert found.normed is not None
    assert apart(found.logits, twin.logits) < LAW
    assert apart(found.normed, twin.normed) < LAW
    assert max(apart(found.hidden[j], twin.hidden[j]) for j in every) < LAW


@pytest.mark.parametrize("kind", KINDS)
def test_prefill_in_chunks_is_the_twin(write_target: Callable[..., Path], kind: str) -> None:
    """Chunks of one, a few, a whole DeltaNet chunk and more leave the same last logits."""
    model, twin = both(write_target(kind))
    for chunk in (1, 5, 64, 70, 512):
        session = model.new_session()
        found = model.prefill(session, TOKENS, chunk=chunk, capture=[HiddenIndex(model.num_layers)])
        session.check()
        assert session.length == len(TOKENS)
        assert found.logits.shape == (1, 97)
        assert apart(found.logits[0], twin.logits[-1]) < LAW
        assert apart(found.hidden[HiddenIndex(model.num_layers)], twin.hidden[-1]) < LAW


@pytest.mark.parametrize("kind", KINDS)
def test_one_token_at_a_time_is_the_twin(write_target: Callable[..., Path], kind: str) -> None:
    """A committed token each, the logits after every one of them equal the twin's."""
    model, twin = both(write_target(kind))
    session = model.new_session()
    for place, token in enumerate(TOKENS):
        found = model.forward(session, [token])
        session.check()
        session.commit([0])
        session.check()
        assert apart(found.logits[0], twin.logits[place]) < LAW


def test_the_twin_notices_a_changed_weight(write_target: Callable[..., Path]) -> None:
    """One weight of one decay changed by a thousandth moves the twin by far more than the law allows."""
    directory = write_target("hybrid")
    model = load_decoder(directory, dtype=torch.float64)
    tensors = load_file(directory / "model.safetensors")
    tensors["model.layers.4.linear_attn.A_log"][1] += 1e-3
    found = model.forward(model.new_session(), TOKENS)
    assert apart(found.logits, run_plain(model.shape, tensors, TOKENS).logits) > 1e3 * LAW
