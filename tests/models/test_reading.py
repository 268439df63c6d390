"""models.target.reading: a field the forward pass needs is known, or the error names it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from draftproof.config.parse import parse_config
from draftproof.config.raw import parse_raw, read_raw
from draftproof.errors import RefusedInput
from draftproof.models.target.reading import read_shape
from draftproof.models.target.shape import DecoderShape

pytestmark = pytest.mark.engine

CONFIGS = Path(__file__).parents[1] / "configs"


def shape_of(config: dict[str, object]) -> DecoderShape:
    """The shape of a config given as a value."""
    return read_shape(parse_config(parse_raw(json.dumps(config).encode(), "given")), "given")


@pytest.fixture
def qwen3(write_target: Callable[..., Path]) -> dict[str, object]:
    """The tiny dense config as a value that a test may change."""
    found: dict[str, object] = json.loads((write_target("qwen3") / "config.json").read_text())
    return found


@pytest.fixture
def hybrid(write_target: Callable[..., Path]) -> dict[str, object]:
    """The tiny hybrid config as a value that a test may change."""
    found: dict[str, object] = json.loads((write_target("hybrid") / "config.json").read_text())
    return found


def test_every_number_has_a_source(qwen3: dict[str, object]) -> None:
    """The shape says where each of its numbers came from."""
    named = dict(shape_of(qwen3).sources)
    assert {"hidden_size", "rope_theta", "rms_norm_eps", "head_dim", "tie_word_embeddings"} <= set(named)


@pytest.mark.parametrize("name", ["qwen3.6-27b-target", "qwen3.5-27b-target", "qwen3.5-0.8b-target"])
def test_the_real_hybrid_configs_are_read(name: str) -> None:
    """The published configs hold everything the forward pass needs."""
    path = CONFIGS / f"{name}.json"
    shape = read_shape(parse_config(read_raw(path)), str(path))
    assert shape.delta is not None
    assert shape.rope.rotary_dim == 64
    assert sum(layer.is_recurrent for layer in shape.layers) * 4 == len(shape.layers) * 3


@pytest.mark.parametrize(
    "key", ["hidden_size", "intermediate_size", "num_attention_heads", "vocab_size", "num_key_value_heads"]
)
def test_a_missing_field_is_named(qwen3: dict[str, object], key: str) -> None:
    """A config without a shape is refused, and the error names the field."""
    del qwen3[key]
    with pytest.raises(RefusedInput) as caught:
        shape_of(qwen3)
    assert key in caught.value.found


def test_all_that_is_missing_is_named_at_once(qwen3: dict[str, object]) -> None:
    """Two gaps and an unknown key come in one error."""
    del qwen3["hidden_size"], qwen3["vocab_size"]
    qwen3["residual_dropout_schedule"] = [1, 2]
    with pytest.raises(RefusedInput) as caught:
        shape_of(qwen3)
    for name in ("hidden_size", "vocab_size", "/residual_dropout_schedule"):
        assert name in caught.value.found


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("hidden_act", "gelu", "hidden_act"),
        ("num_key_value_heads", 3, "num_key_value_heads"),
        ("layer_types", ["full_attention"], "layer_types"),
        ("layer_types", ["full_attention", "linear_attention", "full_attention"], "linear_num_key_heads"),
        ("rope_parameters", {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}, "rope_type"),
        ("rope_parameters", {"rope_type": "yarn", "rope_theta": 1e4}, "factor"),
        ("rope_parameters", {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0, "x": 1}, "parameter x"),
        ("attn_logit_softcapping", 50.0, "attn_logit_softcapping"),
        ("quantization_config", {"quant_method": "fp8"}, "quantization_config"),
        ("num_experts", 8, "num_experts"),
        ("rms_norm_eps", "small", "rms_norm_eps"),
    ],
)
def test_what_would_change_the_forward_pass_is_refused(
    qwen3: dict[str, object], key: str, value: object, named: str
) -> None:
    """A switch that is not built here stops the load instead of being ignored."""
    with pytest.raises(RefusedInput) as caught:
        shape_of({**qwen3, key: value})
    assert named in caught.value.found


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("mamba_ssm_dtype", "bfloat16", "mamba_ssm_dtype"),
        ("output_gate_type", "sigmoid", "output_gate_type"),
        ("linear_num_value_heads", 3, "linear_num_key_heads"),
        ("head_dim", 12, "partial_rotary_factor"),
    ],
)
def test_what_would_change_a_recurrent_layer_is_refused(
    hybrid: dict[str, object], key: str, value: object, named: str
) -> None:
    """The same for the fields of hybrid targets."""
    with pytest.raises(RefusedInput) as caught:
        shape_of({**hybrid, key: value})
    assert named in caught.value.found


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "mamba2", "architectures": ["Mamba2ForCausalLM"]},
        {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"]},
        {"dflash_config": {"mask_token_id": 1, "target_layer_ids": [1]}, "block_size": 4},
    ],
)
def test_another_architecture_is_refused_by_name(
    qwen3: dict[str, object], changes: dict[str, object]
) -> None:
    """A family without a forward pass here, and a drafter, are told what is known."""
    with pytest.raises(RefusedInput) as caught:
        shape_of({**qwen3, **changes})
    assert caught.value.subject == "architecture"
    assert "qwen3" in caught.value.expected
