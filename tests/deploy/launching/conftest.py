"""A tiny target and DFlash drafter as directories, a plan over them, and a Python that an engine runs in."""

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from runtimes.tiny_checkpoints import DFLASH, TARGET, changed, dflash_tensors, write

Planned = Callable[..., Path]


def target_tensors(config: dict[str, Any]) -> dict[str, list[int]]:
    """Names and shapes of a dense Qwen3's tensors."""
    hidden, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    width, narrow = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    shapes = {"model.embed_tokens.weight": [config["vocab_size"], hidden], "model.norm.weight": [hidden]}
    shapes["lm_head.weight"] = [config["vocab_size"], hidden]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        shapes |= {
            f"{at}.{name}.weight": [hidden] for name in ("input_layernorm", "post_attention_layernorm")
        }
        shapes |= {f"{at}.self_attn.{name}.weight": [head] for name in ("q_norm", "k_norm")}
        shapes |= {f"{at}.self_attn.{name}_proj.weight": [narrow, hidden] for name in "kv"}
        shapes |= {f"{at}.self_attn.q_proj.weight": [width, hidden]}
        shapes |= {f"{at}.self_attn.o_proj.weight": [hidden, width]}
        shapes |= {f"{at}.mlp.{name}_proj.weight": [inner, hidden] for name in ("gate", "up")}
        shapes |= {f"{at}.mlp.down_proj.weight": [hidden, inner]}
    return shapes


def free_port() -> int:
    """A port of loopback that nobody listens on just now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Directories of a tiny target and its drafter."""
    target = write(tmp_path / "target", TARGET, target_tensors(TARGET))
    drafter = write(tmp_path / "drafter", DFLASH, dflash_tensors(DFLASH))
    return target, drafter


@pytest.fixture
def planned(pair: tuple[Path, Path], tmp_path: Path) -> Planned:
    """A plan for the pair on vLLM's CPU build; changes go into the file on disk, not into the intent."""

    def make(*lines: str, **on_disk: Any) -> Path:
        target, drafter = pair
        if on_disk:
            intended = drafter / "config.json"
            (tmp_path / "intended.json").write_text(intended.read_text())
            write(drafter, changed(DFLASH, **on_disk))
            lines = (*lines, 'drafter_config = "intended.json"')
        plan = tmp_path / "plan.toml"
        said = [
            'engine = "vllm"',
            'version = "0.32.0"',
            'method = "dflash"',
            f'target = "{target}"',
            f'drafter = "{drafter}"',
            'dtype = "float32"',
            'device = "cpu"',
            "max_model_len = 256",
            f"port = {free_port()}",
        ]
        extra = [
            "[serve.extra.vllm]",
            "skip-tokenizer-init = true",
            "enforce-eager = true",
            "max-num-seqs = 2",
            "max-num-batched-tokens = 256",
            "kv-cache-memory-bytes = 67108864",
            "enable-prefix-caching = false",
            "[serve.env]",
            'OMP_NUM_THREADS = "1"',
            'HF_HUB_OFFLINE = "1"',
            f'PLANNED_IN = "{tmp_path}"',
        ]
        plan.write_text("\n".join(["[serve]", *said, *lines, *extra]) + "\n")
        return plan

    return make
