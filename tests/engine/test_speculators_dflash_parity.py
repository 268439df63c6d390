"""models.dflash against PyPI ``speculators`` 0.9.0, which runs in the test on its own checkpoints.

The library trains under a window that is the anchor's for all slots of a block; engines, and this one, count
each slot's own. Windows here are wider than the text, so that they cut nothing: what is compared of sliding
layers is that they read a block from left to right.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from draftproof.models.dflash.load import load_dflash
from draftproof.models.target.load import load_decoder
from environments import peer_python

pytestmark = [pytest.mark.engine, pytest.mark.live, pytest.mark.slow]

_LAYER: dict[str, Any] = {
    "model_type": "qwen3",
    "vocab_size": 128,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 20000.0,
}
_OUTER: dict[str, Any] = {
    "block_size": 6,
    "draft_vocab_size": 128,
    "mask_token_id": 127,
    "aux_hidden_state_layer_ids": [1, 2],
}
_SLIDING: dict[str, Any] = {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 0}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "full layers": ({}, {}),
    "sliding layers, causal": (_SLIDING | {"layer_types": ["sliding_attention"] * 2}, {}),
    "mixed layers": (_SLIDING | {"layer_types": ["sliding_attention", "full_attention"]}, {}),
    "sliding layers, not causal": (
        _SLIDING | {"layer_types": ["sliding_attention"] * 2},
        {"sliding_window_non_causal": True},
    ),
    "96 tokens of 128": ({}, {"draft_vocab_size": 96}),
    "one tap, biases, block of 4": (
        {"attention_bias": True, "num_hidden_layers": 1},
        {"aux_hidden_state_layer_ids": [3], "block_size": 4},
    ),
}


@pytest.fixture(scope="module")
def peer_runs(tiny_targets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the peer wrote, one folder for each case."""
    try:
        python = peer_python("speculators-0.9.0", "torch==2.13.0", "speculators==0.9.0")
    except RuntimeError as error:
        pytest.skip(f"PyPI speculators could not be installed: {error}")
    folder = tmp_path_factory.mktemp("speculators")
    drafters = [
        {"name": str(number), "seed": number, "layer": _LAYER | layer, "outer": _OUTER | outer}
        for number, (layer, outer) in enumerate(CASES.values())
    ]
    ask = {"target": str(tiny_targets["dense"]), "drafters": drafters}
    (folder / "ask.json").write_text(json.dumps(ask))
    script = Path(__file__).parents[1] / "peer_speculators_dflash.py"
    ran = subprocess.run([python, script, folder], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "speculators 0.9.0" in ran.stdout
    print(ran.stdout)  # noqa: T201 - the peer's version belongs into the report
    return folder


@pytest.mark.parametrize("case", range(len(CASES)), ids=list(CASES))
def test_every_slot_computes_what_training_computed(
    peer_runs: Path, tiny_targets: dict[str, Path], case: int
) -> None:
    """At every anchor, the logits of every slot but the anchor's own are the peer's, in float32.

    The peer runs all blocks side by side under its training mask; here each is drafted behind its context.
    """
    folder = peer_runs / str(case)
    drafter = load_dflash(folder, load_decoder(tiny_targets["dense"]))
    rows = load_file(f"{folder}.safetensors")
    ids = torch.arange(rows["logits"].shape[-1])
    weights = load_file(folder / "model.safetensors")
    if "d2t" in weights:
        ids = ids + weights["d2t"]
    size = drafter.shape.block_size
    assert len(rows["anchors"]) == len(rows["tokens"]) - size
    for anchor, wanted in zip(rows["anchors"].tolist(), rows["logits"], strict=True):
        memory = drafter.new_memory()
        root = int(rows["tokens"][anchor])
        logits = drafter.draft(memory, rows["states"][:anchor], root, size - 1)
        torch.testing.assert_close(logits[:, ids], wanted[1:], atol=2e-5, rtol=1e-4)
