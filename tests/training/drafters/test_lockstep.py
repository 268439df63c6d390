"""Answers in lockstep are the engine's own greedy texts."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from draftproof.engine.engine import Engine
from draftproof.engine.text.stopping import Stopping
from draftproof.models.target.load import load_decoder
from draftproof.training.drafters.lockstep import Lockstep
from draftproof.training.drafters.responses import Speaker

pytestmark = pytest.mark.engine

PROMPTS = [[5, 9, 77], [1] * 20, [100, 3, 99, 41, 7, 30, 2], [64]]


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_the_logits_are_the_decoders(kind: str, tiny_targets: dict[str, Path]) -> None:
    """Two texts, a hundred positions, one of them forgotten on the way."""
    target = load_decoder(tiny_targets[kind])
    texts = torch.randint(128, (2, 100), generator=torch.Generator().manual_seed(0))
    steps = Lockstep(target.shape, load_file(tiny_targets[kind] / "model.safetensors"), 2)
    expected = [target.forward(target.new_session(), text.tolist()).logits for text in texts]
    for position in range(100):
        if position == 50:
            steps.keep(torch.tensor([1]))
        rows = [0, 1] if position < 50 else [1]
        logits = steps.step(texts[rows, position])
        for row, number in enumerate(rows):
            assert (logits[row] - expected[number][position]).abs().max() < 1e-3


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_the_answers_are_the_engines(kind: str, tiny_targets: dict[str, Path]) -> None:
    """Prompts of different lengths side by side, each up to its own end token or the limit."""
    engine = Engine.load(tiny_targets[kind], with_text=False)
    free = [engine.generate(prompt, stopping=Stopping(30)).token_ids for prompt in PROMPTS]
    ending = free[0][4]  # a token that cuts the first answer short
    weights = load_file(tiny_targets[kind] / "model.safetensors")
    found = Speaker(engine.target.shape, weights, {ending}, 30).answers(PROMPTS)
    for example, prompt in zip(found, PROMPTS, strict=True):
        stopping = Stopping(30, token_ids=frozenset({ending}), ignore_eos=True)
        assert example.tokens == (*prompt, *engine.generate(prompt, stopping=stopping).token_ids)
        assert example.num_prompt == len(prompt)
    assert len(found[0].tokens) - len(PROMPTS[0]) == 1 + free[0].index(ending)
