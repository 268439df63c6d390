"""engine.proposers.dflash against PyPI ``dflash`` 0.1.0, which runs in the test on checkpoints of its own."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from draftproof.engine.engine import Engine
from draftproof.engine.text.stopping import Stopping
from draftproof.models.dflash.load import load_dflash
from draftproof.models.target.load import load_decoder
from environments import peer_python

pytestmark = [pytest.mark.engine, pytest.mark.live, pytest.mark.slow]

VOCAB = 24
"""Few tokens, so that drafters nobody trained are right now and then."""

_TARGET: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "rope_theta": 10000.0,
}
_DRAFTER: dict[str, Any] = _TARGET | {
    "num_hidden_layers": 3,
    "num_target_layers": 4,
    "block_size": 6,
    "dflash_config": {"mask_token_id": VOCAB - 1, "target_layer_ids": [0, 1, 2]},
    "architectures": ["DFlashDraftModel"],
}
_SLIDING = {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 3}

CASES: dict[str, dict[str, Any]] = {
    "A: every layer full, flat block_size": {},
    "A': sliding layers causal, the last full": _SLIDING
    | {"layer_types": ["sliding_attention", "sliding_attention", "full_attention"]},
    "B: block_size inside dflash_config, one tap": _SLIDING
    | {
        "block_size": None,
        "layer_types": ["sliding_attention"] * 2 + ["full_attention"],
        "dflash_config": {"mask_token_id": 3, "target_layer_ids": [2], "block_size": 5},
    },
    "sliding, is_causal false": _SLIDING | {"layer_types": ["sliding_attention"] * 3, "is_causal": False},
    "full, is_causal true": {"is_causal": True},
    "biases, yarn": {
        "attention_bias": True,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
    },
    "softcap, multiplier, embedding scale": {
        "final_logit_softcapping": 2.0,
        "output_multiplier": 0.5,
        "input_embedding_scale": 3.0,
    },
    "taps out of order": {"dflash_config": {"mask_token_id": 0, "target_layer_ids": [2, 0]}},
}


def _ask() -> list[dict[str, Any]]:
    chance = random.Random(5)  # noqa: S311 - prompts, not secrets
    prompts = [[chance.randrange(VOCAB) for _ in range(length)] for length in (3, 17, 40)]
    return [
        {
            "name": str(number),
            "target": _TARGET,
            "drafter": {key: value for key, value in (_DRAFTER | changes).items() if value is not None},
            "portions": [11, 1, 4, 6],
            "prompts": prompts,
            "max_new_tokens": 60,
        }
        for number, changes in enumerate(CASES.values())
    ]


@pytest.fixture(scope="module")
def peer_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the peer wrote, one folder for each case."""
    try:
        python = peer_python("dflash-0.1.0", "torch==2.13.0", "transformers==5.24.0", "dflash==0.1.0")
    except RuntimeError as error:
        pytest.skip(f"PyPI dflash could not be installed: {error}")
    folder = tmp_path_factory.mktemp("dflash")
    (folder / "ask.json").write_text(json.dumps(_ask()))
    script = Path(__file__).parents[1] / "peer_dflash.py"
    ran = subprocess.run([python, script, folder], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "dflash 0.1.0" in ran.stdout
    print(ran.stdout)  # noqa: T201 - the peer's version belongs into the report
    return folder


@pytest.mark.parametrize("case", range(len(CASES)), ids=list(CASES))
def test_the_drafter_computes_what_its_reference_computes(peer_runs: Path, case: int) -> None:
    """Hidden states and logits of every pass agree in float32, with the context in a cache on both sides."""
    folder = peer_runs / str(case)
    drafter = load_dflash(folder / "drafter", load_decoder(folder / "target"))
    rows, memory = load_file(folder / "rows.safetensors"), drafter.new_memory()
    for number in range(4):
        context, tokens = rows[f"context.{number}"], rows[f"tokens.{number}"].tolist()
        twin = drafter.new_memory()
        seen = torch.cat([rows[f"context.{before}"] for before in range(number + 1)])
        logits = drafter.draft(twin, seen, tokens[0], len(tokens) - 1)
        hidden = drafter.hidden(memory, context, tokens)
        torch.testing.assert_close(hidden, rows[f"hidden.{number}"], atol=2e-5, rtol=1e-4)
        torch.testing.assert_close(logits, rows[f"logits.{number}"][1:], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("case", range(len(CASES)), ids=list(CASES))
def test_whole_greedy_runs_and_their_acceptance_lengths_agree(peer_runs: Path, case: int) -> None:
    """The same tokens, and step by step as many of them as the reference emits.

    The reference drafts from the first token its prefill gives; here that token ends the prompt.
    """
    folder = peer_runs / str(case)
    target, drafter = folder / "target", folder / "drafter"
    block = load_dflash(drafter, load_decoder(target)).shape.num_draft_tokens  # whole, as the reference
    engine = Engine.load(target, drafter, method="dflash", num_draft_tokens=block, with_text=False)
    accepted = 0
    for run in json.loads((folder / "runs.json").read_text()):
        first, *rest = run["tokens"]
        generation = engine.generate([*run["prompt"], first], stopping=Stopping(len(rest), ignore_eos=True))
        assert list(generation.token_ids) == rest
        assert [step.num_emitted for step in generation.steps] == run["lengths"]
        accepted += len(rest) - len(run["lengths"])
    assert accepted > 0  # lengths of 1 alone would compare nothing
