"""Tiny seeded targets for the tests of models and cache, written as real checkpoints.

These tests need torch; where it is not installed they are left out, and the header of the run says so.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for ``dflash_drafters``

HAS_TORCH = find_spec("torch") is not None
HAS_PEER = HAS_TORCH and find_spec("transformers") is not None
collect_ignore_glob = [] if HAS_PEER else ["test_parity*.py"] if HAS_TORCH else ["test_*.py"]

if HAS_TORCH:
    import torch
    from safetensors.torch import save_file

    from draftproof.config.parse import parse_config
    from draftproof.config.raw import read_raw
    from draftproof.models.target.parameters import bill_of
    from draftproof.models.target.reading import read_shape

BASE: Mapping[str, Any] = {
    "attention_bias": False,
    "dtype": "float32",
    "hidden_act": "silu",
    "hidden_size": 32,
    "intermediate_size": 48,
    "max_position_embeddings": 640,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "vocab_size": 97,
}
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
QWEN3 = {**BASE, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 16}
LLAMA = {**BASE, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "mlp_bias": False}
HYBRID = {
    **BASE,
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "num_hidden_layers": 8,
    "head_dim": 16,
    "attn_output_gate": True,
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 2,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_value_head_dim": 16,
    "mamba_ssm_dtype": "float32",
    "rope_parameters": {**PLAIN_ROPE, "partial_rotary_factor": 0.25, "mrope_section": [1, 1, 0]},
}
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "qwen3": {**QWEN3, "rope_parameters": PLAIN_ROPE},
    "qwen3-sliding": {
        **QWEN3,
        "rope_parameters": PLAIN_ROPE,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "sliding_window": 7,
        "use_sliding_window": True,
    },
    "qwen3-yarn": {
        **QWEN3,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 160,
        },
    },
    "qwen2": {
        **BASE,
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "rope_parameters": PLAIN_ROPE,
    },
    "llama": {
        **LLAMA,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    "llama-biased": {
        **LLAMA,
        "attention_bias": True,
        "mlp_bias": True,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0},
    },
    "hybrid": HYBRID,
    "hybrid-plain": {
        **HYBRID,
        "num_hidden_layers": 4,
        "layer_types": ["linear_attention", "full_attention", "linear_attention", "linear_attention"],
        "linear_num_value_heads": 2,
        "tie_word_embeddings": True,
    },
}
"""Every architecture with the switches it has."""

Writer = Callable[..., Path]


def weights_of(directory: Path, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Noise that keeps activations near 1, so that no layer is idle, under the names of the bill."""
    path = directory / "config.json"
    shape = read_shape(parse_config(read_raw(path)), str(path))
    random = np.random.default_rng(seed)
    found = {}
    for name, piece in sorted(bill_of(shape, "model.").pieces.items()):
        noise = random.standard_normal(piece.shape)
        if name.endswith("linear_attn.norm.weight"):
            noise = 1 + 0.2 * noise
        elif name.endswith("norm.weight"):
            noise = (0 if shape.norm_is_zero_centred else 1) + 0.2 * noise
        elif name.endswith(".weight") and "embed" not in name:
            noise /= math.sqrt(math.prod(piece.shape[1:]))
        elif not name.endswith(".weight"):
            noise *= 0.5
        found[name] = noise.astype(np.float32)
    return found


@pytest.fixture(scope="session")
def write_target(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    """Writes a checkpoint of one of CONFIGS; keyword arguments change its config. Same call, same files."""
    written: dict[str, Path] = {}

    def write(kind: str, seed: int = 0, **changes: object) -> Path:
        key = json.dumps([kind, seed, changes], sort_keys=True)
        if key not in written:
            directory = tmp_path_factory.mktemp(kind)
            config = {
                name: value for name, value in {**CONFIGS[kind], **changes}.items() if value != "absent"
            }
            (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="ascii")
            dtype = torch.bfloat16 if config["dtype"] == "bfloat16" else torch.float32
            weights = {n: torch.from_numpy(w).to(dtype) for n, w in weights_of(directory, seed).items()}
            save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
            written[key] = directory
        return written[key]

    return write


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Torch on one thread: sums in one order, and room for whatever else runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pytest_report_header() -> str:
    """One line for the head of the run."""
    parity = "" if HAS_PEER else "; without test_parity*.py, transformers is not installed"
    return f"tests/models: {'run' + parity if HAS_TORCH else 'left out, torch is not installed'}"
