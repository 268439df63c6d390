"""checkpoint.derive and geometry: what shapes tell, and every way a config can contradict them."""

from pathlib import Path

import pytest

from checkpoint.clean import CLEAN, EAGLE3_LLAMA, SIZE_8B, checkpoint_of, config_of
from checkpoint.models import Decoder, Shapes, dflash
from draftproof.checkpoint.derive import derive_facts
from draftproof.checkpoint.expected.match import match_tensors
from draftproof.checkpoint.expected.mismatch import match_defects
from draftproof.checkpoint.expected.tables import expected_tensors
from draftproof.checkpoint.geometry import compare_facts

DFLASH_8B = "zlab-qwen3-8b-dflash-b16.json"
LLAMA = "specforge-llama3-8b-eagle3.json"


def facts_of(root: Path, shapes: Shapes) -> dict[str, object]:
    """Field -> derived value."""
    return {f.field: f.value for f in derive_facts(checkpoint_of(root, shapes))}


@pytest.mark.parametrize("case", CLEAN)
@pytest.mark.parametrize("prefix", ["", "model."])
def test_a_true_pair_agrees(tmp_path: Path, case: str, prefix: str) -> None:
    """Config and weights of each architecture agree on everything both know."""
    name, shapes = CLEAN[case]
    named = shapes if case == "hybrid target" else {prefix + n: s for n, s in shapes.items()}
    assert compare_facts(derive_facts(checkpoint_of(tmp_path, named)), config_of(name)) == ()


def test_dflash_facts(tmp_path: Path) -> None:
    """A DFlash drafter's headers alone tell its method, widths, heads, layers."""
    facts = facts_of(tmp_path, CLEAN["dflash 27B"][1])
    assert facts == {
        "method": "dflash",
        "hidden_size": 5120,
        "fc_columns": 25600,
        "intermediate_size": 17408,
        "head_dim": 128,
        "query_rows": 4096,
        "key_rows": 1024,
        "attention_width": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 5,
        "attention_bias": False,
        "norm_before_fc": False,
        "fc_norm": False,
    }


def test_eagle3_facts(tmp_path: Path) -> None:
    """An EAGLE-3 drafter is told by its doubled width, its vocabulary by d2t, t2d and head."""
    facts = facts_of(tmp_path, CLEAN["eagle3 official"][1])
    assert (facts["method"], facts["num_hidden_layers"]) == ("eagle3", 1)
    assert (facts["draft_vocab_size"], facts["vocab_size"], facts["own_lm_head"]) == (32000, 128256, True)
    assert "own_embeddings" not in facts
    assert "head_dim" not in facts


def test_target_facts(tmp_path: Path) -> None:
    """A hybrid target's heads are read off a layer that attends fully, gate or not."""
    facts = facts_of(tmp_path, CLEAN["hybrid target"][1])
    assert (facts["num_hidden_layers"], facts["hidden_size"], facts["vocab_size"]) == (64, 5120, 248320)
    assert (facts["num_attention_heads"], facts["num_key_value_heads"], facts["head_dim"]) == (24, 4, 256)
    assert "method" not in facts


DISAGREEMENTS: dict[str, tuple[str, Shapes, list[tuple[str, object, object]]]] = {
    "taps": (DFLASH_8B, dflash(5, SIZE_8B, 6, 4096), [("num_taps", 5, 6)]),
    "width of the target": (DFLASH_8B, dflash(5, SIZE_8B, 5, 5120), [("target_hidden_size", 4096, 5120)]),
    "neither": (DFLASH_8B, dflash(5, SIZE_8B, 1, 4097), [("num_taps x target_hidden_size", 20480, 4097)]),
    "layers": (DFLASH_8B, dflash(4, SIZE_8B, 5, 4096), [("num_hidden_layers", 5, 4)]),
    "heads": (
        DFLASH_8B,
        dflash(5, Decoder(4096, 12288, 16, 8, 128), 5, 4096),
        [("num_attention_heads", 32, 16)],
    ),
    "key heads": (
        DFLASH_8B,
        dflash(5, Decoder(4096, 12288, 32, 4, 128), 5, 4096),
        [("num_key_value_heads", 8, 4)],
    ),
    "intermediate": (
        DFLASH_8B,
        dflash(5, Decoder(4096, 9728, 32, 8, 128), 5, 4096),
        [("intermediate_size", 12288, 9728)],
    ),
    "bias": (DFLASH_8B, dflash(5, SIZE_8B, 5, 4096, bias=True), [("attention_bias", False, True)]),
    "EAGLE-3 as DFlash": (DFLASH_8B, CLEAN["eagle3 as speculators"][1], [("method", "dflash", "eagle3")]),
    "DFlash 2 as DFlash": (
        "zlab-qwen3.6-27b-dflash.json",
        CLEAN["dflash 2"][1],
        [("method", "dflash", "dflash2")],
    ),
    "draft vocabulary": (
        LLAMA,
        CLEAN["eagle3 official"][1] | {"d2t": (16000,), "lm_head.weight": (16000, 4096)},
        [("draft_vocab_size", 32000, 16000)],
    ),
    "vocabulary": (LLAMA, CLEAN["eagle3 official"][1] | {"t2d": (151936,)}, [("vocab_size", 128256, 151936)]),
    "norm_before_fc": (
        LLAMA,
        CLEAN["eagle3 official"][1] | {"input_norm.weight": (3 * EAGLE3_LLAMA[1],)},
        [("norm_before_fc", False, True)],
    ),
}


@pytest.mark.parametrize("case", DISAGREEMENTS)
def test_each_contradiction_is_found(tmp_path: Path, case: str) -> None:
    """One fact of the weights changed is named with what the config says and what the weights are."""
    name, shapes, expected = DISAGREEMENTS[case]
    found = compare_facts(derive_facts(checkpoint_of(tmp_path, shapes)), config_of(name))
    told = [(d.field, d.configured, d.derived) for d in found]
    assert [entry for entry in told if entry in expected] == expected
    assert len(told) == len(expected) or case == "EAGLE-3 as DFlash"


def test_a_disagreement_names_its_tensor(tmp_path: Path) -> None:
    """The tensor that tells, under the name it has in the file, and the rule it was read by."""
    shapes = {f"model.{n}": s for n, s in dflash(5, SIZE_8B, 6, 4096).items()}
    found = compare_facts(derive_facts(checkpoint_of(tmp_path, shapes)), config_of(DFLASH_8B))
    assert [(d.tensor, d.rule) for d in found] == [
        ("model.fc.weight", "24576 columns of fc / target_hidden_size 4096")
    ]


@pytest.mark.parametrize("case", ["taps", "width of the target", "heads", "key heads", "intermediate"])
def test_a_misshapen_tensor_is_not_told_twice(tmp_path: Path, case: str) -> None:
    """Tensors whose shape follows from a disagreement are told by it alone; others still by name."""
    name, shapes, _ = DISAGREEMENTS[case]
    checkpoint = checkpoint_of(tmp_path, shapes)
    table = expected_tensors(config_of(name))
    match = match_tensors(table, checkpoint)
    told = compare_facts(derive_facts(checkpoint), config_of(name))
    assert match.misshapen
    assert match_defects(table, match, checkpoint, told) == ()
    assert {d.id for d in match_defects(table, match, checkpoint)} == {"tensor-misshapen"}
    other = checkpoint_of(tmp_path, shapes | {"norm.weight": (4096,), "hidden_norm.weight": (4095,)})
    found = match_defects(table, match_tensors(table, other), other, told)
    assert [(d.id, d.subject) for d in found] == [("tensor-misshapen", "hidden_norm.weight")]
