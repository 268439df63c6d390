"""MTP heads in DeepSeek's layout against transformers 5.24's own MtpModel, one layer and two.

No whole target of a family that ships such heads is built here, nor could one run on this machine: they are
experts of hundreds of billions. The head is the same whatever trunk it sits on; here that is a Llama.

The library keeps the embedding of each layer's first pair, which vLLM blanks and so does this engine; the
second and third token of every prompt have an embedding of zeros, so that the two cannot differ.
"""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from draftproof.engine.engine import Engine
from draftproof.engine.proposers.mtp import MtpProposer
from draftproof.engine.proposers.propose import Context
from draftproof.engine.text.stopping import Stopping
from draftproof.models.mtp.load import load_mtp
from draftproof.speculation.chance import SeededChance
from draftproof.speculation.sampling import Sampling
from environments import peer_python

pytestmark = [pytest.mark.engine, pytest.mark.live, pytest.mark.slow]

VOCAB, BLANK, NUM_TOKENS = 16, 0, 40
"""Few tokens, so that a head nobody trained is right now and then."""

TARGET: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "rope_theta": 10000.0,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


@pytest.fixture(scope="module", params=[1, 2], ids=["one layer", "two layers"])
def run_of_peer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[dict[str, Any]]]:
    """The target, and what the peer made of it."""
    folder = tmp_path_factory.mktemp("mtp")
    chance = random.Random(7)  # noqa: S311 - prompts, not secrets
    prompts = [[chance.randrange(1, VOCAB) for _ in range(length)] for length in (3, 17, 40)]
    ask = {
        "target": TARGET,
        "num_layers": request.param,
        "blank": BLANK,
        "prompts": [[prompt[0], BLANK, BLANK, *prompt[3:]] for prompt in prompts],
        "max_new_tokens": NUM_TOKENS,
    }
    (folder / "ask.json").write_text(json.dumps(ask))
    script = Path(__file__).parents[1] / "peer_transformers_mtp.py"
    python = peer_python("dflash-0.1.0", "torch==2.13.0", "transformers==5.24.0", "dflash==0.1.0")
    argv = [python, script, folder]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "transformers 5.24.0" in ran.stdout
    print(ran.stdout.splitlines()[-1])  # noqa: T201 - the peer's version belongs into the report
    return folder / "target", json.loads((folder / "runs.json").read_text())


def test_drafts_and_tokens_are_those_of_the_library(run_of_peer: tuple[Path, list[dict[str, Any]]]) -> None:
    """Every chain it drafted, behind every text it drafted at, and the whole runs, in 64-bit floats."""
    folder, told = run_of_peer
    engine = Engine.load(folder, method="mtp", dtype="float64", num_draft_tokens=3, with_text=False)
    head = load_mtp(folder, engine.target)
    compared = kept = 0
    for run in told:
        generation = engine.generate(run["prompt"], stopping=Stopping(NUM_TOKENS, ignore_eos=True))
        assert list(generation.token_ids) == run["tokens"]
        for step in run["steps"]:
            behind = step["behind"]
            if not step["drafts"]:
                continue  # no room for a draft at the end
            read = engine.target.prefill(engine.target.new_session(), behind[:-1], with_normed=True)
            depth = len(step["drafts"])
            context = Context(behind, depth, {}, Sampling(), SeededChance(0), read.normed)
            assert MtpProposer(head, depth).propose(context).tree.tokens.tolist() == step["drafts"]
            text = [*run["prompt"], *run["tokens"]]
            kept += text[len(behind) : len(behind) + 1] == step["drafts"][:1]
            compared += 1
    assert compared > 40
    assert kept > 0
