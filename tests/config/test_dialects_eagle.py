"""config.dialects.eagle and mtp: flat EAGLE-3 and P-EAGLE files, and heads inside targets."""

import json
from pathlib import Path
from typing import Any

import pytest

from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.parse import Parsed, parse_config
from draftproof.config.problem import ProblemKind
from draftproof.config.raw import parse_raw
from draftproof.config.source import ClassDefault, Derived, Unknown, Written
from draftproof.config.target import TargetConfig

CONFIGS = Path(__file__).parents[1] / "configs"
BASE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "draft_vocab_size": 50,
}


def _parsed(**changes: Any) -> Parsed:
    value = {key: item for key, item in (BASE | changes).items() if item is not ...}
    return parse_config(parse_raw(json.dumps(value, indent=1).encode(), "test"))


def _drafter(**changes: Any) -> DrafterConfig:
    config = _parsed(**changes).config
    assert isinstance(config, DrafterConfig)
    return config


def test_ids_inside_eagle_config_are_layers() -> None:
    """SGLang adds one to them: [1, 11, 21] are the outputs of those layers."""
    path = CONFIGS / "specforge-gpt-oss-20b-eagle3.json"
    config = parse_config(parse_raw(path.read_bytes(), path.name)).config
    assert isinstance(config, DrafterConfig)
    assert config.dialect == "eagle"
    assert config.taps.layer_ids.value == (1, 11, 21)
    assert config.taps.hidden_indexes.value == (2, 12, 22)


def test_the_same_key_at_the_top_level_holds_hidden_states() -> None:
    """There vLLM takes them as they are."""
    config = _drafter(eagle_aux_hidden_state_layer_ids=[2, 12, 21])
    assert config.taps.hidden_indexes.value == (2, 12, 21)
    assert config.taps.layer_ids.value == (1, 11, 20)


def test_both_places_must_differ_by_one() -> None:
    """The same list in both places reads different layers in different engines."""
    inner = {"eagle_aux_hidden_state_layer_ids": [1, 11, 20]}
    assert _parsed(eagle_config=inner, eagle_aux_hidden_state_layer_ids=[2, 12, 21]).problems == ()
    parsed = _parsed(eagle_config=inner, eagle_aux_hidden_state_layer_ids=[1, 11, 20])
    assert [p.kind for p in parsed.problems] == [ProblemKind.CONFLICT]


def test_silent_ids_depend_on_the_depth_of_the_target() -> None:
    """Hidden states 2, L//2, L-3: known with L, unknown without."""
    assert isinstance(_drafter().taps.layer_ids.source, Unknown)
    taps = _drafter(num_target_layers=36).taps
    assert taps.hidden_indexes.value == (2, 18, 33)
    assert isinstance(taps.hidden_indexes.source, Derived)


def test_eagle3_has_no_block() -> None:
    """No block, no mask, one causal layer; how many tokens is decided when serving."""
    config = _drafter()
    assert config.method.value is Method.EAGLE3
    for said in (config.block_size, config.num_draft_tokens, config.mask_token_id, config.sample_from_anchor):
        assert isinstance(said.source, Unknown)
    assert [(layer.kind.value, layer.causal.value) for layer in config.layers] == [("full_attention", True)]


def test_window_keys_of_a_llama_file_do_not_make_windows() -> None:
    """LlamaConfig knows no gate: such leftovers are kept as extras, and the layer stays full."""
    config = _drafter(use_sliding_window=True, sliding_window=8, max_window_layers=0)
    assert config.layers[0].kind.value == "full_attention"
    assert config.extras["sliding_window"].value == 8


def test_absent_rope_theta_is_llamas_default() -> None:
    """Every reader of this format fills in 10000."""
    theta = _drafter().rope.theta
    assert theta.value == 10000.0
    assert isinstance(theta.source, ClassDefault)


def test_norm_flags_default_to_false_here() -> None:
    """A flat file without norm flags has none; written ones count."""
    norms = _drafter(norm_output=True).norms
    assert (norms.before_residual.value, norms.before_fc.value, norms.output.value) == (False, False, True)


def test_norm_flags_inside_eagle_config_are_the_files_own_words() -> None:
    """NVIDIA's heads write them there; what the file says counts, whichever engine misses it."""
    norms = _drafter(eagle_config={"norm_before_fc": True, "norm_output": True}).norms
    assert (norms.before_fc.value, norms.output.value, norms.fc_norm.value) == (True, True, False)
    assert isinstance(norms.before_fc.source, Written)
    assert norms.before_fc.source.pointer == "/eagle_config/norm_before_fc"


def test_own_head_and_reduced_vocabulary() -> None:
    """An EAGLE-3 checkpoint has its own head; whether it has an embedding the tensors decide."""
    config = _drafter()
    assert config.sharing.lm_head.value is False
    assert config.draft_vocab_size.value == 50
    assert isinstance(config.sharing.embeddings.source, Unknown)


def test_peagle_is_named_and_may_have_a_mask() -> None:
    """P-EAGLE is no EAGLE-3; pard_token is its mask in vLLM."""
    config = _drafter(architectures=["PEagleDraftModel"], pard_token=7)
    assert config.method.value is Method.PEAGLE
    assert config.mask_token_id.value == 7


def test_eagle1_is_not_taken_for_eagle3() -> None:
    """Older heads have no method here, with the reason."""
    config = _drafter(architectures=["LlamaForCausalLMEagle"], draft_vocab_size=...)
    assert config.method.value is None
    assert isinstance(config.method.source, Unknown)


def test_draft_vocabulary_under_a_plain_name_is_eagle3_with_a_problem() -> None:
    """Only EAGLE-3 files have draft_vocab_size; the architecture is told."""
    parsed = _parsed(architectures=["LlamaForCausalLM"])
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.method.value is Method.EAGLE3
    assert [p.kind for p in parsed.problems] == [ProblemKind.ODD]


# --- heads inside targets --------------------------------------------------------------------------


def _target(value: dict[str, Any]) -> TargetConfig:
    config = parse_config(parse_raw(json.dumps(value).encode(), "test")).config
    assert isinstance(config, TargetConfig)
    return config


def test_qwen36_target_carries_a_head() -> None:
    """One layer under text_config, the target's embedding, the last hidden state."""
    path = CONFIGS / "qwen3.6-27b-target.json"
    config = parse_config(parse_raw(path.read_bytes(), path.name)).config
    assert isinstance(config, TargetConfig)
    assert config.mtp is not None
    assert config.mtp.style == "qwen"
    assert config.mtp.num_layers.source == Written("/text_config/mtp_num_hidden_layers", 95)
    drafter = config.mtp.drafter
    assert drafter.method.value is Method.MTP
    assert drafter.taps.hidden_indexes.value == (64,)
    assert [(x.kind.value, x.causal.value) for x in drafter.layers] == [("full_attention", True)]
    assert drafter.sharing.embeddings.value is True


@pytest.mark.parametrize(
    ("model_type", "key", "style"),
    [
        ("qwen3_next", "num_nextn_predict_layers", "qwen"),
        ("qwen3_5", "mtp_num_hidden_layers", "qwen"),
        ("deepseek_v3", "num_nextn_predict_layers", "deepseek"),
        ("glm4_moe", "num_nextn_predict_layers", "deepseek"),
    ],
)
def test_head_style_follows_the_family(model_type: str, key: str, style: str) -> None:
    """Qwen keeps the head under mtp.*, DeepSeek's kin as one more layer."""
    config = _target(
        {"architectures": ["XForCausalLM"], "model_type": model_type, "num_hidden_layers": 8, key: 1}
    )
    assert config.mtp is not None
    assert config.mtp.style == style
    assert config.mtp.drafter.taps.hidden_indexes.value == (8,)


@pytest.mark.parametrize("count", [0, None, ...])
def test_no_head_without_a_count(count: Any) -> None:
    """Zero, null and absence: no head, and the reason stays."""
    value = {"model_type": "qwen3_next", "num_hidden_layers": 8, "num_nextn_predict_layers": count}
    config = _target({key: item for key, item in value.items() if item is not ...})
    assert config.mtp is None
    assert isinstance(config.mtp_layers.source, Unknown if count is ... else Written)


def test_dedicated_embeddings_are_not_shared() -> None:
    """mtp_use_dedicated_embeddings true: the head brings its own."""
    config = _target(
        {"model_type": "qwen3_5", "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": True}
    )
    assert config.mtp is not None
    assert config.mtp.drafter.sharing.embeddings.value is False


@pytest.mark.parametrize("name", ["Qwen3_5MTP", "DeepSeekMTPModel", "DeepseekV3ForCausalLMNextN"])
def test_file_of_a_head_alone_is_a_drafter(name: str) -> None:
    """An exported head is an MTP drafter, whose target is elsewhere."""
    config = _drafter(architectures=[name], draft_vocab_size=..., num_nextn_predict_layers=1)
    assert config.method.value is Method.MTP
    assert isinstance(config.taps.layer_ids.source, Unknown)


@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ({"eagle_config": {"layer_ids": [2, 18, 33]}}, (1, 17, 32)),
        ({"layer_ids": [2, 18, 33]}, (1, 17, 32)),
        ({"target_layer_ids": [2, 18, 33]}, (2, 18, 33)),
    ],
)
def test_every_name_that_vllm_looks_for(fields: dict[str, Any], ids: tuple[int, ...]) -> None:
    """layer_ids are hidden states, target_layer_ids layers: neither is passed over for the default taps."""
    parsed = _parsed(num_target_layers=36, **fields)
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.taps.layer_ids.value == ids
    assert parsed.unparsed == ()


def test_an_older_head_gets_no_eagle3_taps() -> None:
    """EAGLE-1 reads one hidden state: the default of EAGLE-3 is not made up for it."""
    config = _drafter(architectures=["LlamaForCausalLMEagle"], num_target_layers=36, draft_vocab_size=...)
    assert config.method.value is None
    assert config.taps.hidden_indexes.value is None
