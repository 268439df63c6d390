"""DFlash against transformers' own candidate path (``speculation_type="dflash"``), in this environment.

The one drafter class that transformers ships is built as z-lab's drafters are; two tensors bear other names.
"""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, StoppingCriteria, StoppingCriteriaList

from dflash_drafters import native_config, tensors_of, write_drafter
from draftproof.engine.engine import Engine
from draftproof.engine.proof.tiny import TINY, write_tiny_target
from draftproof.engine.text.stopping import Stopping

pytestmark = [pytest.mark.engine, pytest.mark.slow]

VOCAB, NUM_TOKENS = 24, 60
"""Few tokens, so that a drafter nobody trained is right now and then."""

RENAMED = {"fc.weight": "encoder.fc.weight", "hidden_norm.weight": "encoder.output_norm_enc.weight"}
LAYOUTS: dict[str, dict[str, Any]] = {
    "full": {},
    "sliding, not causal": {
        "layer_types": ["sliding_attention"] * 2,
        "sliding_window": 9,
        "use_sliding_window": True,
        "max_window_layers": 0,
        "is_causal": False,
    },
}


class Lengths(StoppingCriteria):
    """Never stops; notes how long the text was after each step."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, input_ids: torch.Tensor, _scores: object, **_options: object) -> torch.Tensor:
        """One row, not done."""
        self.seen.append(input_ids.shape[1])
        return torch.zeros(input_ids.shape[0], dtype=torch.bool)


def _assistant(config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Any:
    """The drafter as transformers' class."""
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "head_dim")
    further = ("num_key_value_heads", "rms_norm_eps", "max_position_embeddings", "layer_types", "block_size")
    said = {name: config[name] for name in (*names, *further)} | config["dflash_config"]
    rope = {"rope_type": "default", "rope_theta": config["rope_theta"]}
    wanted = transformers.MuseGlimmerAssistantConfig(
        **said,
        rope_parameters=rope,
        sliding_window=config["sliding_window"] or 1,
        attn_implementation="eager",  # type: ignore[call-arg] # taken by the base class
    )
    model = transformers.MuseGlimmerAssistantModel(wanted).double().eval()  # type: ignore[no-untyped-call]
    model.load_state_dict({RENAMED.get(name, name): value.double() for name, value in tensors.items()})
    return model


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tokens_and_acceptance_are_those_of_transformers(layout: str, tmp_path: Path) -> None:
    """Three greedy requests in 64-bit floats: every token, and of every step but the last the tokens it gave.

    transformers drafts from the first token that its prefill gives; here that token ends the prompt.
    """
    write_tiny_target(tmp_path / "target", "dense", config={**TINY["dense"], "vocab_size": VOCAB})
    changes = LAYOUTS[layout] | {"vocab_size": VOCAB, "dflash_config": {"mask_token_id": VOCAB - 1}}
    config = native_config(**changes)
    tensors = tensors_of(config)
    write_drafter(tmp_path / "drafter", config, tensors)
    target = AutoModelForCausalLM.from_pretrained(
        tmp_path / "target", dtype=torch.float64, attn_implementation="eager"
    ).eval()  # type: ignore[no-untyped-call]
    engine = Engine.load(
        tmp_path / "target",
        tmp_path / "drafter",
        method="dflash",
        dtype="float64",
        num_draft_tokens=config["block_size"] - 1,
        with_text=False,
    )
    chance = random.Random(5)  # noqa: S311 - prompts, not secrets
    kept = 0
    for length in (3, 17, 40):
        prompt = [chance.randrange(VOCAB) for _ in range(length)]
        lengths = Lengths()
        told = target.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, length, dtype=torch.long),  # a token like the pad token is no pad
            assistant_model=_assistant(config, tensors),
            speculation_type="dflash",
            do_sample=False,
            max_new_tokens=NUM_TOKENS,
            eos_token_id=None,
            pad_token_id=0,
            stopping_criteria=StoppingCriteriaList([lengths]),
        )[0, length:].tolist()
        first, *rest = told
        stopping = Stopping(len(rest), ignore_eos=True)
        generation = engine.generate([*prompt, first], stopping=stopping)
        assert list(generation.token_ids) == rest
        ours = [step.num_emitted for step in generation.steps][:-1]
        theirs = [after - before for before, after in zip(lengths.seen, lengths.seen[1:], strict=False)]
        assert lengths.seen[0] == length + 1
        assert ours == theirs[: len(ours)]
        kept += sum(ours) - len(ours)
    assert kept > 0  # no draft kept would compare nothing
