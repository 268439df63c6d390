"""config.convert: nothing is lost between the two formats without being named."""

import json
from pathlib import Path
from typing import Any

import pytest

from draftproof.config.convert import Conversion, convert
from draftproof.config.drafter import DrafterConfig
from draftproof.config.facts import facts
from draftproof.config.parse import Parsed, parse_config
from draftproof.config.raw import JsonValue, RawConfig, parse_raw
from draftproof.errors import RefusedInput

HERE = Path(__file__).parents[1]
GRADES = json.loads((HERE / "config_grades.json").read_text())["grades"]
CONFIGS = sorted((HERE / "configs").glob("*.json"))
CLEAN_DRAFTERS = [p for p in CONFIGS if GRADES[p.name] in "VN" and "target" not in p.name]
TRIMMED = [p for p in CONFIGS if p.name.startswith("redhat")]
S, F = "sliding_attention", "full_attention"

# What names the layout of a file, is decided by tensors, or is a mechanism whose meaning is in the layers.
LABELS = {"format", "generation", "architecture", "sharing", "sources", "superseded", "unparsed"}
MECHANISMS = {"is_causal", "sliding_window", "use_sliding_window", "max_window_layers", "projector_type"}


def _raw(value: dict[str, JsonValue]) -> RawConfig:
    return parse_raw(json.dumps(value, indent=1).encode(), "test")


def _read(path: Path) -> tuple[RawConfig, Parsed]:
    raw = parse_raw(path.read_bytes(), path.name)
    return raw, parse_config(raw)


def _converted(value: dict[str, Any], to: str) -> Conversion:
    raw = _raw(value)
    return convert(raw, parse_config(raw), to)


def _canonical(parsed: Parsed) -> dict[str, JsonValue]:
    """The facts without labels and mechanisms, as dotted leaves of extras and advisory."""
    document = {key: value for key, value in facts(parsed).items() if key not in LABELS}
    for group in ("extras", "advisory"):
        inner = document.pop(group)
        assert isinstance(inner, dict)
        document |= {f"{group}.{key}": value for key, value in inner.items() if key not in MECHANISMS}
    return document


@pytest.mark.parametrize("path", CLEAN_DRAFTERS, ids=lambda p: p.stem)
def test_round_trip_of_a_clean_drafter_changes_nothing_but_named_losses(path: Path) -> None:
    """Native -> speculators -> native gives the same canonical drafter, except what the first step named."""
    raw, parsed = _read(path)
    there = convert(raw, parsed, "speculators")
    back = _converted(there.config, "native")
    before, after = _canonical(parsed), _canonical(parse_config(_raw(back.config)))
    lost = {loss.pointer.removeprefix("/") for loss in there.losses}
    changed = {key for key, value in before.items() if after.get(key) != value}
    assert changed <= lost
    assert back.losses == ()


def test_clean_drafters_lose_nothing_but_a_foreign_model_type() -> None:
    """Of all complete drafters only gpt-oss's file, which calls Qwen3 layers gpt_oss, loses a field."""
    losses = {}
    for path in CLEAN_DRAFTERS:
        named = [loss.pointer for loss in convert(*_read(path), "speculators").losses]
        if named:
            losses[path.name] = named
    assert losses == {"zlab-gpt-oss-20b-dflash.json": ["/model_type"]}
    assert len(CLEAN_DRAFTERS) == 29


@pytest.mark.parametrize("path", TRIMMED, ids=lambda p: p.stem)
def test_speculators_files_become_native_without_loss(path: Path) -> None:
    """RedHat's files: layer ids one lower, shapes filled in, reduced vocabulary kept."""
    raw, parsed = _read(path)
    result = convert(raw, parsed, "native")
    assert result.losses == ()
    assert isinstance(parsed.config, DrafterConfig)
    after = parse_config(_raw(result.config)).config
    assert isinstance(after, DrafterConfig)
    assert after.method.value is parsed.config.method.value
    assert after.taps.layer_ids.value == parsed.config.taps.layer_ids.value
    assert after.draft_vocab_size.value == 32000


@pytest.mark.parametrize("path", CLEAN_DRAFTERS, ids=lambda p: p.stem)
def test_converted_files_are_read_whole(path: Path) -> None:
    """What is written is read back without a leftover or a problem."""
    written = parse_config(_raw(convert(*_read(path), "speculators").config))
    assert written.unparsed == ()
    assert written.problems == ()


def test_layer_config_is_complete_and_opens_the_gate() -> None:
    """No field of the layers is left to a class default, and transformers keeps the window."""
    path = next(p for p in CONFIGS if p.name == "zlab-qwen3.6-27b-dflash.json")
    layer = convert(*_read(path), "speculators").config["transformer_layer_config"]
    assert isinstance(layer, dict)
    assert layer["use_sliding_window"] is True
    assert layer["sliding_window"] == 2048
    assert layer["layer_types"] == [S] * 4 + [F]
    assert set(layer) >= {
        "model_type",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "attention_bias",
        "hidden_act",
        "rms_norm_eps",
        "max_position_embeddings",
        "vocab_size",
        "rope_theta",
    }


def test_taps_become_hidden_states_all_of_them() -> None:
    """One more than the layer id, the last layer included."""
    path = next(p for p in CONFIGS if p.name.startswith("casestudy"))
    result = convert(*_read(path), "speculators")
    assert result.config["aux_hidden_state_layer_ids"] == [2, 18, 34, 50, 64]
    assert result.config["num_target_layers"] == 64


# --- causality survives, or is a loss --------------------------------------------------------------

NATIVE: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 100,
    "rope_theta": 10000,
    "block_size": 8,
    "layer_types": [S, S, F],
    "sliding_window": 32,
    "dflash_config": {"mask_token_id": 99, "target_layer_ids": [1, 11, 21]},
}


@pytest.mark.parametrize(("is_causal", "flag"), [(..., False), (False, True)])
def test_causality_of_sliding_layers_survives(is_causal: Any, flag: bool) -> None:  # noqa: FBT001 - a value
    """The default stays causal, is_causal false does not flip."""
    value = {key: item for key, item in (NATIVE | {"is_causal": is_causal}).items() if item is not ...}
    result = _converted(value, "speculators")
    assert result.config["sliding_window_non_causal"] is flag
    assert result.losses == ()


def test_causal_full_layers_are_a_named_loss() -> None:
    """The speculators format has no way to make a full layer causal."""
    losses = _converted(NATIVE | {"is_causal": True}, "speculators").losses
    assert [(loss.pointer, loss.value) for loss in losses] == [("/is_causal", True)]
    assert "can only say false" in losses[0].why


def test_engine_that_misreads_the_flag_is_noted() -> None:
    """Mixed layers with causal windows are right in the file and wrong in one engine; others need no note."""
    assert "vLLM 0.33" in _converted(NATIVE, "speculators").notes[0]
    assert _converted(NATIVE | {"is_causal": False}, "speculators").notes == ()
    assert _converted(NATIVE | {"layer_types": [S] * 3}, "speculators").notes == ()


def test_a_file_without_a_length_of_drafts_is_noted() -> None:
    """EAGLE-3's own layout has none, and a library refuses a list of proposals that is empty."""
    value = json.loads((HERE / "configs" / "specforge-qwen3-8b-eagle3.json").read_bytes())
    result = _converted(value, "speculators")
    group = result.config["speculators_config"]
    assert isinstance(group, dict)
    assert group["proposal_methods"] == []
    assert ["speculative_tokens" in note for note in result.notes] == [True]


def test_modelopt_windows_become_layer_types() -> None:
    """use_swa: every layer sliding, not causal, in words that the other format has."""
    value = {key: item for key, item in NATIVE.items() if key not in ("layer_types", "sliding_window")}
    value["dflash_config"] = NATIVE["dflash_config"] | {"use_swa": True, "swa_window_size": 16}
    result = _converted(value, "speculators")
    layer = result.config["transformer_layer_config"]
    assert isinstance(layer, dict)
    assert (layer["layer_types"], layer["sliding_window"]) == ([S, S, S], 16)
    assert result.config["sliding_window_non_causal"] is True
    assert result.losses == ()


# --- losses ------------------------------------------------------------------------------------------


def test_silence_that_the_other_format_fills_is_a_loss() -> None:
    """A native file without rope has no theta; a speculators file without one means 10000."""
    value = {key: item for key, item in NATIVE.items() if key != "rope_theta"}
    losses = _converted(value, "speculators").losses
    assert [loss.pointer for loss in losses] == ["rope.theta"]
    assert "10000.0" in losses[0].why


def test_unread_mistyped_and_overruled_fields_are_losses() -> None:
    """What the canonical form cannot hold is named with its place and value."""
    value = NATIVE | {
        "zz": [1],
        "block_size": "8",
        "eagle_aux_hidden_state_layer_ids": [1, 11, 21],
    }
    losses = {loss.pointer: loss.value for loss in _converted(value, "speculators").losses}
    assert losses["/zz"] == [1]
    assert losses["/block_size"] == "8"
    assert losses["/eagle_aux_hidden_state_layer_ids"] == [1, 11, 21]


def test_other_number_of_draft_tokens_is_a_loss() -> None:
    """A native file drafts block_size - 1; fewer speculative_tokens cannot be written there."""
    spec = _converted(NATIVE, "speculators").config
    config = spec["speculators_config"]
    assert isinstance(config, dict)
    config["proposal_methods"] = [{"proposal_type": "greedy", "speculative_tokens": 3}]
    pointers = {loss.pointer for loss in _converted(spec, "native").losses}
    assert "/speculators_config/proposal_methods/0/speculative_tokens" in pointers


def test_name_of_the_verifier_is_a_loss() -> None:
    """Native files do not name their target."""
    spec = _converted(NATIVE, "speculators").config
    config = spec["speculators_config"]
    assert isinstance(config, dict)
    config["verifier"] = {"name_or_path": "Qwen/Qwen3-8B", "architectures": ["Qwen3ForCausalLM"]}
    losses = {loss.pointer: loss.value for loss in _converted(spec, "native").losses}
    assert losses == {
        "/speculators_config/verifier/name_or_path": "Qwen/Qwen3-8B",
        "/speculators_config/verifier/architectures": ["Qwen3ForCausalLM"],
    }


def test_embeddings_as_a_tap_survive() -> None:
    """Hidden state 0 has no layer id: the native file gets the other numbering."""
    spec = _converted(NATIVE, "speculators").config | {"aux_hidden_state_layer_ids": [0, 12, 22]}
    result = _converted(spec, "native")
    assert result.losses == ()
    assert result.config["eagle_aux_hidden_state_layer_ids"] == [0, 12, 22]


def test_eagle_ids_are_written_for_both_engines() -> None:
    """SGLang reads layers inside eagle_config, vLLM hidden states at the top: both, one apart."""
    path = next(p for p in CONFIGS if p.name == "specforge-gpt-oss-20b-eagle3.json")
    there = convert(*_read(path), "speculators")
    assert there.config["eagle_aux_hidden_state_layer_ids"] == [2, 12, 22]
    assert there.config["norm_before_residual"] is False
    back = _converted(there.config, "native").config
    assert back["eagle_aux_hidden_state_layer_ids"] == [2, 12, 22]
    assert back["eagle_config"] == {"eagle_aux_hidden_state_layer_ids": [1, 11, 21]}


# --- what is not converted ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "to"), [("zlab-qwen3-8b-dflash-b16.json", "native"), (TRIMMED[0].name, "speculators")]
)
def test_same_format_is_returned_as_it_is(name: str, to: str) -> None:
    """A file already in that format is not rewritten."""
    raw, parsed = _read(HERE / "configs" / name)
    result = convert(raw, parsed, to)
    assert result.is_unchanged
    assert result.config == raw.value
    assert result.losses == ()


def test_head_of_a_target_becomes_a_speculator() -> None:
    """The MTP head of a Qwen3.6 target keeps its layers, taps and sharing."""
    raw, parsed = _read(HERE / "configs" / "qwen3.6-27b-target.json")
    result = convert(raw, parsed, "speculators")
    assert result.losses == ()
    assert result.config["speculators_model_type"] == "mtp"
    written = parse_config(_raw(result.config))
    assert isinstance(written.config, DrafterConfig)
    assert written.config.taps.hidden_indexes.value == (64,)
    assert written.unparsed == ()


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1},
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2},
        NATIVE | {"projector_type": "xpress"},
        {"speculators_model_type": "mtp", "transformer_layer_config": {}},
    ],
)
def test_what_the_other_format_cannot_hold_is_refused(value: dict[str, Any]) -> None:
    """No drafter, no known method, or a head without its target: refused, with the reason."""
    to = "native" if "speculators_model_type" in value else "speculators"
    with pytest.raises(RefusedInput) as caught:
        _converted(value, to)
    assert caught.value.exit_code == 1
