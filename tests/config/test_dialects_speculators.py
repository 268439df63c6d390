"""config.dialects.speculators: one outer object, layers as a difference to a class, taps as hidden states."""

import json
from pathlib import Path
from typing import Any

import pytest

from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.parse import Parsed, parse_config
from draftproof.config.problem import ProblemKind
from draftproof.config.raw import parse_raw
from draftproof.config.source import ClassDefault, Unknown, Written

CONFIGS = Path(__file__).parents[1] / "configs"
S, F = "sliding_attention", "full_attention"
LAYER: dict[str, Any] = {
    "model_type": "qwen3",
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "vocab_size": 100,
}
BASE: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "speculators_model_type": "dflash",
    "speculators_config": {
        "algorithm": "dflash",
        "default_proposal_method": "greedy",
        "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 7}],
        "verifier": {"name_or_path": "Qwen/Qwen3-8B", "architectures": ["Qwen3ForCausalLM"]},
    },
    "transformer_layer_config": LAYER,
    "aux_hidden_state_layer_ids": [2, 10, 18],
    "block_size": 8,
    "draft_vocab_size": 50,
    "mask_token_id": 9,
}


def _parsed(layer: dict[str, Any] | None = None, **changes: Any) -> Parsed:
    value = BASE | {"transformer_layer_config": LAYER | (layer or {})} | changes
    value = {key: item for key, item in value.items() if item is not ...}
    return parse_config(parse_raw(json.dumps(value, indent=1).encode(), "test"))


def _drafter(layer: dict[str, Any] | None = None, **changes: Any) -> DrafterConfig:
    config = _parsed(layer, **changes).config
    assert isinstance(config, DrafterConfig)
    return config


def _layers(config: DrafterConfig) -> list[tuple[str | None, int | None, bool | None]]:
    return [(layer.kind.value, layer.window.value, layer.causal.value) for layer in config.layers]


def test_redhat_dflash_as_published() -> None:
    """RedHat's Qwen3-8B speculator: hidden states 2..34 are layers 1..33, block 8, draft vocabulary 32000."""
    path = CONFIGS / "redhat-qwen3-8b-speculator-dflash-trimmed.json"
    config = parse_config(parse_raw(path.read_bytes(), path.name)).config
    assert isinstance(config, DrafterConfig)
    assert config.dialect == "speculators"
    assert config.taps.layer_ids.value == (1, 9, 17, 25, 33)
    assert config.taps.hidden_indexes.value == (2, 10, 18, 26, 34)
    assert (config.block_size.value, config.num_draft_tokens.value) == (8, 7)
    assert (config.vocab_size.value, config.draft_vocab_size.value) == (151936, 32000)
    assert config.sharing.lm_head.value is False


def test_absence_inside_the_layer_config_means_the_class_default() -> None:
    """The inner object is a difference: what it leaves out is the default of its class, by name."""
    geometry = _drafter().geometry
    assert geometry.intermediate_size.value == 22016
    assert geometry.head_dim.value == 128
    assert geometry.num_key_value_heads.source == ClassDefault("transformers 4.57.6 and 5.24.0 Qwen3Config")


def test_llama_layers_fill_in_llamas_defaults() -> None:
    """The class follows the inner model_type: key-value heads are heads, head_dim is the quotient."""
    geometry = _drafter({"model_type": "llama"}).geometry
    assert geometry.intermediate_size.value == 11008
    assert geometry.num_key_value_heads.value == 4
    assert geometry.head_dim.value == 16


def test_verifier_and_number_of_draft_tokens_come_from_speculators_config() -> None:
    """The verifier's name, and speculative_tokens at its own place."""
    config = _drafter()
    assert config.verifier.value == "Qwen/Qwen3-8B"
    assert config.num_draft_tokens.value == 7
    assert isinstance(config.num_draft_tokens.source, Written)
    pointer = "/speculators_config/proposal_methods/0/speculative_tokens"
    assert config.num_draft_tokens.source.pointer == pointer


def test_speculative_tokens_must_be_block_size_less_one() -> None:
    """Another number is kept as written and told as a conflict."""
    methods = [{"proposal_type": "greedy", "speculative_tokens": 5}]
    parsed = _parsed(speculators_config={"proposal_methods": methods})
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.num_draft_tokens.value == 5
    [problem] = parsed.problems
    assert problem.kind is ProblemKind.CONFLICT


def test_anchor_sampling_proposes_one_more() -> None:
    """With sample_from_anchor a block of 8 proposes 8."""
    config = _drafter(sample_from_anchor=True, speculators_config={})
    assert config.num_draft_tokens.value == 8


@pytest.mark.parametrize(
    ("method", "flag", "causal"),
    [
        ("dflash", ..., True),
        ("dflash", False, True),
        ("dflash", True, False),
        ("dflash2", ..., False),
        ("dflash2", False, True),
        ("dflash2", True, False),
    ],
)
def test_sliding_window_non_causal_speaks_of_sliding_layers_only(
    method: str,
    flag: Any,
    causal: bool,  # noqa: FBT001 - a parametrised value
) -> None:
    """Full layers are never causal; sliding ones unless the flag is set, whose default differs by method."""
    layer = {"layer_types": [S, F, S], "sliding_window": 16, "use_sliding_window": True}
    config = _drafter(layer, speculators_model_type=method, sliding_window_non_causal=flag)
    assert _layers(config) == [(S, 16, causal), (F, None, False), (S, 16, causal)]


def test_window_fields_at_the_outer_level_do_not_count() -> None:
    """Readers drop layer_types and sliding_window there: full attention, and the keys are unparsed."""
    parsed = _parsed(layer_types=[S, S, S], sliding_window=16)
    assert isinstance(parsed.config, DrafterConfig)
    assert _layers(parsed.config) == [(F, None, False)] * 3
    assert set(parsed.unparsed) == {"/layer_types", "/sliding_window"}


@pytest.mark.parametrize("method", ["dflash", "dflash2", "eagle3", "peagle", "mtp", "dspark"])
def test_every_method_is_named(method: str) -> None:
    """speculators_model_type names the method, whatever the architecture says."""
    config = _drafter(speculators_model_type=method)
    assert config.method.value == method
    assert isinstance(config.method.source, Written)


def test_domino_is_a_dflash_speculator_with_another_projector() -> None:
    """projector_type domino makes it Domino; its fields have the class's defaults."""
    config = _drafter(projector_type="domino")
    assert config.method.value is Method.DOMINO
    assert config.extras["gru_hidden_dim"].value == 1024


def test_unknown_method_is_not_guessed() -> None:
    """A speculators method nobody here knows has no method, with the reason."""
    config = _drafter(speculators_model_type="dflare")
    assert config.method.value is None
    assert isinstance(config.method.source, Unknown)


def test_method_without_its_field_comes_from_the_architecture_and_is_told() -> None:
    """speculators_model_type may be lost; the class name still tells, and the loss is a problem."""
    parsed = _parsed(speculators_model_type=..., speculators_config=...)
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.method.value is Method.DFLASH
    assert [p.kind for p in parsed.problems] == [ProblemKind.ODD]


def test_dflash2_fills_in_its_own_defaults() -> None:
    """Convolution and selector sizes where the file is silent, and the written ones where it is not."""
    config = _drafter(speculators_model_type="dflash2", selector_rank=8)
    assert config.extras["selector_rank"].value == 8
    assert config.extras["conv_group_size"].value == 16
    assert isinstance(config.extras["conv_group_size"].source, ClassDefault)


def test_dspark_keeps_its_markov_head() -> None:
    """The fields of the Markov and confidence heads are extras; drafts start at the anchor."""
    config = _drafter(speculators_model_type="dspark", markov_rank=256, speculators_config={})
    assert config.extras["markov_rank"].value == 256
    assert config.num_draft_tokens.value == 8


def test_eagle3_norm_flags_follow_the_engine_that_reads_them() -> None:
    """norm_before_residual is true where absent for eagle3, false for peagle; written values count."""
    assert _drafter(speculators_model_type="eagle3").norms.before_residual.value is True
    assert _drafter(speculators_model_type="peagle").norms.before_residual.value is False
    said = _drafter(speculators_model_type="eagle3", norm_before_residual=False).norms.before_residual
    assert said.value is False
    assert said.is_written


def test_eagle3_ids_are_hidden_states_and_layers_causal() -> None:
    """eagle_aux_hidden_state_layer_ids count as written; the drafter goes from left to right."""
    config = _drafter(
        speculators_model_type="eagle3",
        aux_hidden_state_layer_ids=...,
        eagle_aux_hidden_state_layer_ids=[2, 18, 33],
    )
    assert config.taps.hidden_indexes.value == (2, 18, 33)
    assert config.taps.layer_ids.value == (1, 17, 32)
    assert {layer.causal.value for layer in config.layers} == {True}
    assert isinstance(config.block_size.source, Written)


def test_eagle3_without_ids_needs_the_depth() -> None:
    """The default is 2, L//2 and L-3 of a target of L layers."""
    config = _drafter(speculators_model_type="eagle3", aux_hidden_state_layer_ids=...)
    assert isinstance(config.taps.layer_ids.source, Unknown)
    assert "L//2" in config.taps.layer_ids.source.reason


def test_peagle_has_a_mask_token() -> None:
    """P-EAGLE drafts all tokens in one pass and masks the rest."""
    config = _drafter(speculators_model_type="peagle")
    assert config.method.value is Method.PEAGLE
    assert config.mask_token_id.value == 9


def test_mtp_reads_the_last_hidden_state() -> None:
    """A head of one full, causal layer that uses the target's embedding and head."""
    config = _drafter(
        speculators_model_type="mtp", num_nextn_predict_layers=1, block_size=..., num_target_layers=24
    )
    assert config.taps.hidden_indexes.value == (24,)
    assert _layers(config) == [(F, None, True)]
    assert (config.sharing.embeddings.value, config.sharing.lm_head.value) == (True, True)
    assert config.num_draft_tokens.value == 7


def test_missing_mask_token_is_unknown() -> None:
    """No default exists: the reason says who refuses."""
    config = _drafter(mask_token_id=...)
    assert config.mask_token_id.value is None
    assert isinstance(config.mask_token_id.source, Unknown)
