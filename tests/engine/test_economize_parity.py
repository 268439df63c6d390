"""MTP and n-gram drafts on a hybrid target against PyPI ``economize`` 0.3.2, which is right on those."""

import json
import math
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from draftproof.engine.engine import Engine
from draftproof.engine.proof.tiny import write_tiny_target
from draftproof.engine.text.stopping import Stopping
from draftproof.models.mtp.load import bill_of_mtp
from environments import peer_python
from tiny_mtp import MTP_CONFIGS, shape_of

pytestmark = [pytest.mark.engine, pytest.mark.live, pytest.mark.slow]

VOCAB, NUM_TOKENS, NUM_DRAFTS = 24, 60, 3
"""Few tokens, so that a head nobody trained is right now and then."""


def _write(folder: Path) -> None:
    """A hybrid target with a head, from noise."""
    write_tiny_target(folder, "hybrid", config={**MTP_CONFIGS["hybrid"], "vocab_size": VOCAB})
    generator = torch.Generator().manual_seed(1000)
    tensors = load_file(folder / "model.safetensors")
    for name, piece in sorted(bill_of_mtp(shape_of(folder)).pieces.items()):
        noise = torch.randn(piece.shape, generator=generator)
        tensors[name] = 0.1 * noise if "norm" in name else noise / math.sqrt(piece.shape[-1])
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[dict[str, Any]]]]:
    """The target, and what the peer made of it."""
    python = peer_python("economize-0.3.2", "torch==2.13.0", "transformers==5.19.0", "economize==0.3.2")
    folder = tmp_path_factory.mktemp("economize")
    _write(folder / "target")
    chance = random.Random(5)  # noqa: S311 - prompts, not secrets
    ask = {
        "prompts": [[chance.randrange(VOCAB) for _ in range(length)] for length in (3, 17, 40)],
        "num_draft_tokens": NUM_DRAFTS,
        "longest": 4,
        "shortest": 2,
        "max_new_tokens": NUM_TOKENS,
    }
    (folder / "ask.json").write_text(json.dumps(ask))
    script = Path(__file__).parents[1] / "peer_economize.py"
    ran = subprocess.run([python, script, folder], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "economize 0.3.2, transformers 5.19.0" in ran.stdout
    print(ran.stdout.splitlines()[-1])  # noqa: T201 - the peer's version belongs into the report
    return folder / "target", json.loads((folder / "runs.json").read_text())


def test_all_of_the_peer_s_methods_give_its_plain_tokens(
    runs: tuple[Path, dict[str, list[dict[str, Any]]]],
) -> None:
    """The peer is a fit witness: it rolls a recurrent state back rightly."""
    _, told = runs
    plain = [run["tokens"] for run in told["plain"]]
    assert [run["tokens"] for run in told["lookup"]] == plain
    assert [run["tokens"] for run in told["mtp"]] == plain


@pytest.mark.parametrize("method", ["ar", "ngram", "mtp"])
def test_our_tokens_are_the_peer_s(method: str, runs: tuple[Path, dict[str, list[dict[str, Any]]]]) -> None:
    """Plainly and with drafts, in 64-bit floats, token for token."""
    target, told = runs
    options: dict[str, Any] = {} if method == "ar" else {"num_draft_tokens": NUM_DRAFTS}
    engine = Engine.load(target, method=method, dtype="float64", with_text=False, **options)
    for run in told["plain"]:
        generation = engine.generate(run["prompt"], stopping=Stopping(NUM_TOKENS, ignore_eos=True))
        assert list(generation.token_ids) == run["tokens"]


def test_the_head_is_right_as_often_as_the_peer_says(
    runs: tuple[Path, dict[str, list[dict[str, Any]]]],
) -> None:
    """Step by step the same number of its drafts is kept; the peer drafts first from its prefill's own token.

    The last step is cut by the limit, which the two count differently.
    """
    target, told = runs
    engine = Engine.load(target, method="mtp", dtype="float64", with_text=False, num_draft_tokens=NUM_DRAFTS)
    kept = 0
    for run in told["mtp"]:
        first, *rest = run["tokens"]
        stopping = Stopping(len(rest), ignore_eos=True)
        generation = engine.generate([*run["prompt"], first], stopping=stopping)
        ours = [step.num_emitted - 1 for step in generation.steps][:-1]
        theirs = [accepted for drafted, accepted in run["cycles"] if drafted]
        assert ours == theirs[: len(ours)]
        kept += sum(ours)
    assert kept > 0  # no draft kept would compare nothing
