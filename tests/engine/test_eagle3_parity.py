"""models.eagle3.drafter against PyPI ``speculators`` 0.9.0, which runs in the test on its own checkpoints."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from draftproof.models.eagle3.load import load_eagle3
from draftproof.models.target.load import load_decoder
from environments import peer_python

pytestmark = [pytest.mark.engine, pytest.mark.live, pytest.mark.slow]

_LAYER: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
}
_OUTER: dict[str, Any] = {"draft_vocab_size": 96, "eagle_aux_hidden_state_layer_ids": [1, 2, 3]}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "llama": ({}, {}),
    "qwen3, norm_before_residual": ({"model_type": "qwen3"}, {"norm_before_residual": True}),
    "norm_output, fc_norm": ({}, {"norm_output": True, "fc_norm": True}),
    "two layers, norm_before_fc": ({"num_hidden_layers": 2}, {"norm_before_fc": True}),
    "whole vocabulary, biases": ({"attention_bias": True}, {"draft_vocab_size": 128}),
}


@pytest.fixture(scope="module")
def peer_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the peer wrote, one folder for each case."""
    try:
        python = peer_python("speculators-0.9.0", "torch==2.13.0", "speculators==0.9.0")
    except RuntimeError as error:
        pytest.skip(f"PyPI speculators could not be installed: {error}")
    folder = tmp_path_factory.mktemp("eagle3")
    ask = [
        {"name": str(number), "seed": number, "layer": _LAYER | layer, "outer": _OUTER | outer}
        for number, (layer, outer) in enumerate(CASES.values())
    ]
    (folder / "ask.json").write_text(json.dumps(ask))
    script = Path(__file__).parents[1] / "peer_eagle3.py"
    ran = subprocess.run([python, script, folder], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "speculators 0.9.0" in ran.stdout
    print(ran.stdout)  # noqa: T201 - the peer's version belongs into the report
    return folder


@pytest.mark.parametrize("case", range(len(CASES)), ids=list(CASES))
def test_every_step_computes_what_training_computed(
    peer_runs: Path, tiny_targets: dict[str, Path], case: int
) -> None:
    """From every pair, the first guess and two guesses on from it have the peer's logits in float32.

    The peer runs all starts side by side under its training mask; here each is a chain in a session.
    """
    folder = peer_runs / str(case)
    drafter = load_eagle3(folder, load_decoder(tiny_targets["dense"]))
    rows = load_file(folder.with_suffix(".safetensors"))
    tokens, features = rows["tokens"].tolist(), drafter.fused(rows["states"].chunk(3, 1))
    ids = torch.arange(rows["logits"].shape[-1])
    weights = load_file(folder / "model.safetensors")
    if "d2t" in weights:
        ids = ids + weights["d2t"]
    session = drafter.new_session()
    compared = 0
    for start in range(len(tokens)):
        read = drafter.read(session, features[start : start + 1], tokens[start : start + 1])
        mark = session.mark()
        for step in range(len(rows["logits"])):
            logits = drafter.logits(read.normed)[0, ids]
            torch.testing.assert_close(logits, rows["logits"][step, start], atol=2e-5, rtol=1e-4)
            compared += 1
            if start + step + 1 == len(tokens):
                break
            read = drafter.read(session, read.features, [tokens[start + step + 1]])
        session.rewind(mark)
    assert compared == 3 * len(tokens) - 3
