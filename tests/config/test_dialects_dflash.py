"""config.dialects.native: DFlash and its kin, generation by generation, with the reason for every value."""

import json
from pathlib import Path
from typing import Any

import pytest

from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.parse import Parsed, parse_config
from draftproof.config.problem import ProblemKind
from draftproof.config.raw import parse_raw
from draftproof.config.source import ClassDefault, Derived, Unknown, Written

CONFIGS = Path(__file__).parents[1] / "configs"
BASE: dict[str, Any] = {
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
    "num_target_layers": 24,
    "dflash_config": {"mask_token_id": 99, "target_layer_ids": [1, 11, 21]},
}


def _parsed(**changes: Any) -> Parsed:
    value = {key: item for key, item in (BASE | changes).items() if item is not ...}
    return parse_config(parse_raw(json.dumps(value, indent=1).encode(), "test"))


def _drafter(**changes: Any) -> DrafterConfig:
    config = _parsed(**changes).config
    assert isinstance(config, DrafterConfig)
    return config


def _real(name: str) -> DrafterConfig:
    config = parse_config(parse_raw((CONFIGS / f"{name}.json").read_bytes(), name)).config
    assert isinstance(config, DrafterConfig)
    return config


def _layers(config: DrafterConfig) -> list[tuple[str | None, int | None, bool | None]]:
    return [(layer.kind.value, layer.window.value, layer.causal.value) for layer in config.layers]


S, F = "sliding_attention", "full_attention"


def test_qwen36_drafter_as_published() -> None:
    """z-lab's Qwen3.6-27B drafter: five taps, four causal windows of 2048 and one full layer, mask 248070."""
    config = _real("zlab-qwen3.6-27b-dflash")
    assert config.method.value is Method.DFLASH
    assert config.generation.value == "A'"
    assert config.taps.layer_ids.value == (1, 16, 31, 46, 61)
    assert config.taps.hidden_indexes.value == (2, 17, 32, 47, 62)
    assert (config.block_size.value, config.num_draft_tokens.value) == (16, 15)
    assert config.mask_token_id.source == Written("/dflash_config/mask_token_id", 13)
    assert _layers(config) == [(S, 2048, True)] * 4 + [(F, None, False)]
    assert config.rope.theta.value == 10000000
    assert config.sharing.embeddings.value is True
    assert config.sharing.lm_head.value is True


def test_generation_b_keeps_block_size_inside_and_rope_in_its_object() -> None:
    """z-lab's Qwen3.6-35B-A3B drafter: block_size in dflash_config, rope_parameters, eight taps."""
    config = _real("zlab-qwen3.6-35b-a3b-dflash")
    assert config.generation.value == "B"
    assert config.block_size.source == Written("/dflash_config/block_size", 32)
    assert isinstance(config.rope.theta.source, Written)
    assert config.rope.theta.source.pointer == "/rope_parameters/rope_theta"
    assert len(config.taps.layer_ids.value or ()) == 8
    assert _layers(config) == [(S, 4096, True)] * 5 + [(F, None, False)]


def test_generation_a_is_all_full_and_bidirectional() -> None:
    """z-lab's first drafters: every layer full, not causal, no window."""
    config = _real("zlab-qwen3-8b-dflash-b16")
    assert config.generation.value == "A"
    assert _layers(config) == [(F, None, False)] * 5


def test_dflash2_carries_its_own_fields_and_is_causal_nowhere() -> None:
    """The Qwen3.8-27B DFlash 2: is_causal false holds for every layer; its own fields are kept."""
    config = _real("zlab-qwen3.8-27b-dflash2")
    assert config.method.value is Method.DFLASH2
    assert _layers(config) == [(S, 2048, False)] * 5
    assert {layer.causal.source for layer in config.layers} == {Written("/is_causal", 8)}
    assert {k: config.extras[k].value for k in ("conv_kernel_size", "selector_rank", "selector_top_k")} == {
        "conv_kernel_size": 2,
        "selector_rank": 256,
        "selector_top_k": 16,
    }
    assert (config.block_size.value, config.num_draft_tokens.value) == (8, 7)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("specforge-qwen3-8b-domino", Method.DOMINO),
        ("specforge-qwen3-8b-dspark", Method.DSPARK),
        ("specforge-qwen3.6-27b-dspark", Method.DSPARK),
        ("radixark-qwen3.8-27b-dspark-partial", Method.DSPARK),
    ],
)
def test_look_alikes_are_named_as_what_they_are(name: str, method: Method) -> None:
    """Domino and DSpark share dflash_config with DFlash and are not DFlash."""
    assert _real(name).method.value is method


@pytest.mark.parametrize("projector", ["domino", "dspark"])
def test_projector_type_beats_the_architecture(projector: str) -> None:
    """A Domino or DSpark file under DFlash's class name is still that, and the contradiction is told."""
    parsed = _parsed(dflash_config=BASE["dflash_config"] | {"projector_type": projector})
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.method.value == projector
    assert parsed.config.method.source == Written("/dflash_config/projector_type", 23)
    assert [p.kind for p in parsed.problems] == [ProblemKind.CONFLICT]


def test_unknown_projector_is_not_taken_for_dflash() -> None:
    """A sibling nobody here knows has no method, with the reason."""
    config = _drafter(projector_type="xpress")
    assert config.method.value is None
    assert isinstance(config.method.source, Unknown)
    assert "xpress" in config.method.source.reason


def test_dflash2_fields_under_dflash_name_are_dflash2_and_told() -> None:
    """Run as DFlash such a file loses its selector silently: the fields decide, the name is a problem."""
    parsed = _parsed(dflash_config=BASE["dflash_config"] | {"selector_rank": 8})
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.method.value is Method.DFLASH2
    assert [p.pointer for p in parsed.problems] == ["/architectures"]


@pytest.mark.parametrize("architectures", [..., [], ["Qwen3ForCausalLM"], None])
def test_missing_or_foreign_architecture_is_still_dflash_with_a_problem(architectures: Any) -> None:
    """dflash_config makes a drafter, whatever architectures says; but it is told."""
    parsed = _parsed(architectures=architectures)
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.method.value is Method.DFLASH
    assert [p.kind for p in parsed.problems] == [ProblemKind.ODD]


def test_dspark_drafts_from_the_anchor_on() -> None:
    """A DSpark block of 7 proposes 7 tokens, not 6."""
    config = _real("specforge-qwen3-8b-dspark")
    assert config.sample_from_anchor.value is True
    assert (config.block_size.value, config.num_draft_tokens.value) == (7, 7)


@pytest.mark.parametrize("shift", [True, False])
def test_domino_drafts_one_less_than_its_block_from_either_slot(shift: bool) -> None:  # noqa: FBT001 - a value
    """shift_label decides whether the anchor slot predicts, not how many tokens are drafted."""
    config = _drafter(
        dflash_config=BASE["dflash_config"] | {"projector_type": "domino", "shift_label": shift}
    )
    assert config.sample_from_anchor.value is shift
    assert config.num_draft_tokens.value == 7


def test_sample_from_anchor_written_counts() -> None:
    """The written flag decides over the method."""
    config = _drafter(dflash_config=BASE["dflash_config"] | {"sample_from_anchor": True})
    assert config.num_draft_tokens.value == 8


def test_absent_block_size_is_sixteen_by_its_readers() -> None:
    """The reference, SGLang and mistral.rs fill in 16; the source says so."""
    config = _drafter(block_size=...)
    assert config.block_size.value == 16
    assert isinstance(config.block_size.source, ClassDefault)


def test_null_block_size_is_no_default() -> None:
    """A written null is kept, and the number of draft tokens is not known."""
    config = _drafter(block_size=None)
    assert config.block_size.value is None
    assert isinstance(config.block_size.source, Written)
    assert isinstance(config.num_draft_tokens.source, Unknown)


def test_block_size_in_two_places_prefers_dflash_config_and_tells() -> None:
    """dflash_config wins, as in SGLang; the other value is a conflict at its place."""
    parsed = _parsed(dflash_config=BASE["dflash_config"] | {"block_size": 4})
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.block_size.value == 4
    assert [(p.kind, p.pointer) for p in parsed.problems] == [(ProblemKind.CONFLICT, "/block_size")]


def test_absent_taps_follow_the_default_rule() -> None:
    """One tap a layer, spread from 1 to the third last: 1, 11, 21 of 24."""
    config = _drafter(dflash_config={"mask_token_id": 99})
    assert config.taps.layer_ids.value == (1, 11, 21)
    assert isinstance(config.taps.layer_ids.source, Derived)


def test_absent_taps_without_depth_are_unknown() -> None:
    """Without num_target_layers the rule cannot be applied."""
    config = _drafter(dflash_config={"mask_token_id": 99}, num_target_layers=...)
    assert config.taps.layer_ids.value is None
    assert isinstance(config.taps.layer_ids.source, Unknown)


def test_both_numberings_must_differ_by_one() -> None:
    """eagle_aux_hidden_state_layer_ids = target_layer_ids + 1 is silent; anything else is a conflict."""
    assert _parsed(eagle_aux_hidden_state_layer_ids=[2, 12, 22]).problems == ()
    parsed = _parsed(eagle_aux_hidden_state_layer_ids=[1, 11, 21])
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.taps.layer_ids.value == (1, 11, 21)
    assert [p.pointer for p in parsed.problems] == ["/eagle_aux_hidden_state_layer_ids"]


def test_hidden_index_zero_is_the_embeddings() -> None:
    """The embeddings are no layer's output: null among the layer ids."""
    config = _drafter(dflash_config={"mask_token_id": 9}, eagle_aux_hidden_state_layer_ids=[0, 5])
    assert config.taps.layer_ids.value == (None, 4)
    assert config.taps.hidden_indexes.value == (0, 5)


def test_last_layer_is_a_tap_like_any_other() -> None:
    """Some drafters really read the last layer; the parser has no opinion."""
    config = _drafter(dflash_config={"mask_token_id": 9, "target_layer_ids": [1, 11, 23]})
    assert config.taps.hidden_indexes.value == (2, 12, 24)


# --- kinds, windows, causality -------------------------------------------------------------------


def test_sliding_layers_are_causal_and_full_ones_not() -> None:
    """Where the file is silent on causality the kind of the layer decides."""
    config = _drafter(layer_types=[S, F, S], sliding_window=32, use_sliding_window=True)
    assert _layers(config) == [(S, 32, True), (F, None, False), (S, 32, True)]
    assert all(isinstance(layer.causal.source, Derived) for layer in config.layers)


@pytest.mark.parametrize("value", [True, False])
def test_is_causal_holds_for_every_layer(value: bool) -> None:  # noqa: FBT001 - a parametrised value
    """The top-level flag overrules every layer's default."""
    config = _drafter(layer_types=[S, F, S], sliding_window=32, is_causal=value)
    assert [layer.causal.value for layer in config.layers] == [value] * 3


def test_is_causal_beats_dflash_config_causal() -> None:
    """Both are read, the outer one wins, the difference is told."""
    parsed = _parsed(
        layer_types=[S] * 3,
        sliding_window=8,
        is_causal=False,
        dflash_config={"mask_token_id": 1, "causal": True},
    )
    assert isinstance(parsed.config, DrafterConfig)
    assert [layer.causal.value for layer in parsed.config.layers] == [False] * 3
    assert [p.pointer for p in parsed.problems] == ["/dflash_config/causal"]


def test_null_is_causal_is_no_answer() -> None:
    """A null leaves the default in place."""
    config = _drafter(layer_types=[S, F, F], sliding_window=8, is_causal=None)
    assert [layer.causal.value for layer in config.layers] == [True, False, False]


def test_use_swa_without_layer_types_is_all_sliding_and_not_causal() -> None:
    """The MiMo and ModelOpt dialect: windows on every layer, bidirectional inside the block."""
    config = _drafter(dflash_config=BASE["dflash_config"] | {"use_swa": True, "swa_window_size": 128})
    assert config.dialect == "modelopt"
    assert _layers(config) == [(S, 128, False)] * 3
    assert isinstance(config.layers[0].window.source, Written)
    assert config.layers[0].window.source.pointer == "/dflash_config/swa_window_size"


def test_use_swa_with_all_full_layer_types_makes_all_slide() -> None:
    """An all-full list becomes windows under vLLM 0.33, and stays bidirectional."""
    config = _drafter(
        layer_types=[F] * 3, sliding_window=64, dflash_config=BASE["dflash_config"] | {"use_swa": True}
    )
    assert _layers(config) == [(S, 64, False)] * 3


def test_use_swa_leaves_a_list_with_sliding_layers_alone() -> None:
    """Explicit sliding layers win over use_swa."""
    config = _drafter(
        layer_types=[S, F, S], sliding_window=64, dflash_config=BASE["dflash_config"] | {"use_swa": True}
    )
    assert _layers(config) == [(S, 64, True), (F, None, False), (S, 64, True)]


def test_use_swa_false_is_off() -> None:
    """A written false changes nothing."""
    config = _drafter(dflash_config=BASE["dflash_config"] | {"use_swa": False})
    assert _layers(config) == [(F, None, False)] * 3


def test_swa_window_size_beats_sliding_window() -> None:
    """The inner window wins for every sliding layer."""
    config = _drafter(
        layer_types=[S, S, F],
        sliding_window=64,
        dflash_config=BASE["dflash_config"] | {"swa_window_size": 32},
    )
    assert [layer.window.value for layer in config.layers] == [32, 32, None]


@pytest.mark.parametrize("gate", [False, ..., None])
def test_closed_gate_does_not_unmake_a_written_window(gate: Any) -> None:
    """What a library drops is a matter of the parsed layer; the file says 32."""
    config = _drafter(layer_types=[S, F, F], sliding_window=32, use_sliding_window=gate)
    assert config.layers[0].window.value == 32


def test_sliding_layer_without_any_window() -> None:
    """A written null stays null; an absent window is the class default only where the gate is open."""
    assert _drafter(layer_types=[S, F, F], sliding_window=None).layers[0].window.is_written
    opened = _drafter(layer_types=[S, F, F], use_sliding_window=True).layers[0].window
    assert opened.value == 4096
    assert isinstance(opened.source, ClassDefault)
    assert isinstance(_drafter(layer_types=[S, F, F]).layers[0].window.source, Unknown)


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"sliding_window": 8, "use_sliding_window": True}, [F, F, F]),
        ({"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 0}, [S, S, S]),
        ({"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 2}, [F, F, S]),
        ({"sliding_window": 8, "use_sliding_window": False, "max_window_layers": 0}, [F, F, F]),
        ({"sliding_window": None, "use_sliding_window": True, "max_window_layers": 0}, [F, F, F]),
        ({"layer_types": None, "sliding_window": 8}, [F, F, F]),
    ],
)
def test_absent_layer_types_follow_the_rule_of_the_class(changes: dict[str, Any], kinds: list[str]) -> None:
    """As in Qwen3Config: layers from max_window_layers (28) on slide, if the gate is open."""
    config = _drafter(**changes)
    assert [layer.kind.value for layer in config.layers] == kinds
    assert all(isinstance(layer.kind.source, Derived) for layer in config.layers)


def test_mistyped_layer_types_leave_every_kind_unknown() -> None:
    """A list that cannot be read is not replaced by a made-up one."""
    parsed = _parsed(layer_types=[S, 1, F])
    assert isinstance(parsed.config, DrafterConfig)
    assert {layer.kind.value for layer in parsed.config.layers} == {None}
    assert {layer.causal.is_known for layer in parsed.config.layers} == {False}
    assert [p.pointer for p in parsed.problems] == ["/layer_types"]


# --- rope, vocabulary, shapes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "style",
    [
        {"rope_theta": 500, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
        {"rope_theta": 500, "rope_scaling": {"type": "yarn", "factor": 4.0}},
        {"rope_theta": ..., "rope_parameters": {"rope_theta": 500, "rope_type": "yarn", "factor": 4.0}},
    ],
)
def test_rope_is_the_same_in_both_styles(style: dict[str, Any]) -> None:
    """4.x flat keys and the 5.x object say the same thing."""
    rope = _drafter(**style).rope
    assert (rope.theta.value, rope.type.value, rope.scaling.value) == (500, "yarn", {"factor": 4.0})


def test_two_ropes_that_differ_are_a_conflict() -> None:
    """The object's theta wins, as in transformers 5; the flat one is told."""
    parsed = _parsed(rope_theta=500, rope_parameters={"rope_theta": 900, "rope_type": "default"})
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.rope.theta.value == 900
    assert [(p.kind, p.pointer) for p in parsed.problems] == [(ProblemKind.CONFLICT, "/rope_theta")]


def test_two_ropes_that_agree_are_no_problem() -> None:
    """The same theta twice is a repetition."""
    parsed = _parsed(rope_theta=900, rope_parameters={"rope_theta": 900, "rope_type": "default"})
    assert parsed.problems == ()
    assert parsed.superseded == ("/rope_theta",)


def test_absent_theta_is_unknown_because_readers_disagree() -> None:
    """1e4, 1e6 and 1e7 are filled in by different engines: no value is right."""
    theta = _drafter(rope_theta=...).rope.theta
    assert theta.value is None
    assert isinstance(theta.source, Unknown)
    assert "disagree" in theta.source.reason


def test_reduced_vocabulary_brings_its_own_head() -> None:
    """draft_vocab_size below vocab_size: the drafter carries a head."""
    config = _drafter(draft_vocab_size=50)
    assert config.draft_vocab_size.value == 50
    assert config.sharing.lm_head.value is False
    assert _drafter().draft_vocab_size.value == 100


def test_target_width_is_the_drafters_unless_written() -> None:
    """Null and absence mean hidden_size; a number means itself."""
    assert _drafter().target_hidden_size.value == 64
    assert _drafter(target_hidden_size=None).target_hidden_size.value == 64
    assert _drafter(target_hidden_size=128).target_hidden_size.value == 128


def test_absent_shapes_are_unknown_never_the_class_default() -> None:
    """Nobody means Qwen3Config's 4096 by leaving hidden_size out."""
    config = _drafter(hidden_size=..., num_key_value_heads=...)
    assert config.geometry.hidden_size.value is None
    assert isinstance(config.geometry.num_key_value_heads.source, Unknown)


def test_absent_head_dim_is_disputed() -> None:
    """Fill in 128 (transformers) or divide (vLLM): known only where they agree."""
    assert _drafter(head_dim=...).geometry.head_dim.value is None
    assert _drafter(head_dim=..., hidden_size=512).geometry.head_dim.value == 128


def test_top_level_mask_token_is_read_at_its_place() -> None:
    """Some engines read it there, SGLang 0.5.11 does not: the pointer tells."""
    config = _drafter(dflash_config={"target_layer_ids": [1]}, mask_token_id=7)
    assert isinstance(config.mask_token_id.source, Written)
    assert config.mask_token_id.source.pointer == "/mask_token_id"


@pytest.mark.parametrize("name", ["xiaomi-mimo-v2.5-dflash-partial", "incoai-glm-5.3-flash-dflash2-partial"])
def test_partial_files_parse_with_unknowns(name: str) -> None:
    """What a partial file leaves out is unknown, with a reason."""
    config = _real(name)
    assert config.vocab_size.value is None
    assert isinstance(config.vocab_size.source, Unknown)
    assert config.taps.layer_ids.value is not None


def test_provenance_is_advisory() -> None:
    """bos, eos, dtype and the like change no draft."""
    config = _real("casestudy-qwen3.6-27b-dflash-STALE-reconstructed")
    assert config.advisory["bos_token_id"].value == 248044
    assert config.mask_token_id.value == 248064


def test_a_kind_not_known_here_has_no_window_and_no_causality() -> None:
    """Nothing is said of a layer of another kind, least of all what holds for full ones."""
    config = _drafter(layer_types=["weird", "linear_attention", F], sliding_window=4)
    assert _layers(config) == [("weird", None, None), ("linear_attention", None, None), (F, None, False)]
    for source in (config.layers[0].window.source, config.layers[0].causal.source):
        assert isinstance(source, Unknown)
        assert "'weird'" in source.reason


def test_use_swa_makes_no_kind_of_an_unreadable_list() -> None:
    """A layer_types that is no list does not list "no sliding layer"."""
    swa = BASE["dflash_config"] | {"use_swa": True, "swa_window_size": 4}
    config = _drafter(layer_types=S, dflash_config=swa)
    assert _layers(config) == [(None, None, None)] * 3


@pytest.mark.parametrize("size", [0, -5])
def test_a_block_without_a_slot_drafts_an_unknown_number(size: int) -> None:
    """Not -1 and not -6 tokens: the size is written, the number does not follow from it."""
    config = _drafter(block_size=size)
    assert config.block_size.value == size
    assert isinstance(config.num_draft_tokens.source, Unknown)


def test_layer_ids_alone_are_hidden_states() -> None:
    """The last name that vLLM 0.33 looks for, taken as it is; a list of the usual name decides before it."""
    bare = {"mask_token_id": 99}
    assert _drafter(dflash_config=bare, layer_ids=[2, 12]).taps.layer_ids.value == (1, 11)
    parsed = _parsed(layer_ids=[1, 11, 21])
    assert isinstance(parsed.config, DrafterConfig)
    assert parsed.config.taps.layer_ids.value == (1, 11, 21)
    assert [(p.kind, p.pointer) for p in parsed.problems] == [(ProblemKind.CONFLICT, "/layer_ids")]


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_a_rope_that_is_no_object_is_not_the_default_rope(key: str) -> None:
    """What stands there is told as the reason: type and scaling are not known."""
    rope = _drafter(**{key: [1]}).rope
    for said in (rope.type, rope.scaling):
        assert isinstance(said.source, Unknown)
        assert "[1]" in said.source.reason
    assert rope.theta.value == 10000


def test_the_rotated_part_is_the_default_of_the_class_named() -> None:
    """A file that names a Qwen3.5 class is told that class's quarter, not another's whole."""
    said = _drafter(model_type="qwen3_5_text").rope.partial_rotary_factor
    assert said.value == 0.25
    assert isinstance(said.source, ClassDefault)
    assert "Qwen3_5" in said.source.library
