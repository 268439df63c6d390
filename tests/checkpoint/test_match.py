"""checkpoint.match: the table of each architecture against header sets, both ways."""

from pathlib import Path

import pytest

from checkpoint.build import write_index, write_sparse
from checkpoint.clean import CLEAN, CONFIGS, checkpoint_of, config_of
from checkpoint.models import QWEN36_27B, Shapes, hybrid_target, mtp_head
from draftproof.checkpoint.expected.match import match_tensors
from draftproof.checkpoint.expected.mismatch import match_defects
from draftproof.checkpoint.expected.tables import expected_tensors
from draftproof.checkpoint.ledger import Checkpoint, read_checkpoint
from draftproof.config.drafter import DrafterConfig
from draftproof.config.parse import parse_config
from draftproof.config.raw import read_raw
from draftproof.config.target import TargetConfig


def told(config: DrafterConfig | TargetConfig, checkpoint: Checkpoint) -> list[tuple[str, str]]:
    """Id and subject of every disagreement."""
    table = expected_tensors(config)
    assert table.unknown is None, table.unknown
    return [(d.id, d.subject) for d in match_defects(table, match_tensors(table, checkpoint), checkpoint)]


@pytest.mark.parametrize("case", CLEAN)
def test_a_true_checkpoint_fits_its_table(tmp_path: Path, case: str) -> None:
    """A complete checkpoint of each architecture leaves nothing unread, unfilled or misshapen."""
    name, shapes = CLEAN[case]
    checkpoint = checkpoint_of(tmp_path, shapes)
    table = expected_tensors(config_of(name))
    match = match_tensors(table, checkpoint)
    assert told(config_of(name), checkpoint) == []
    assert len(match.filled) == len(shapes)
    assert match.not_judged == ()


@pytest.mark.parametrize("case", [c for c in CLEAN if c != "hybrid target"])
def test_a_drafter_under_the_usual_prefix(tmp_path: Path, case: str) -> None:
    """Every drafter is the same under ``model.``."""
    name, shapes = CLEAN[case]
    assert told(config_of(name), checkpoint_of(tmp_path, {f"model.{n}": s for n, s in shapes.items()})) == []


@pytest.mark.parametrize("prefix", ["model.", "model.language_model.", "language_model.model.", ""])
def test_a_target_under_each_known_prefix(tmp_path: Path, prefix: str) -> None:
    """A hybrid target is the same model under every prefix that exports use, a tower beside it or not."""
    pieces = [*(piece for _, piece in hybrid_target(QWEN36_27B, prefix)), mtp_head(QWEN36_27B)]
    shapes = {n: s for piece in pieces for n, s in piece.items()}
    shapes["model.visual.blocks.0.attn.qkv.weight"] = (12, 4)
    assert told(config_of("qwen3.6-27b-target.json"), checkpoint_of(tmp_path, shapes)) == []


def test_a_tensor_nobody_reads_and_a_parameter_nothing_fills(tmp_path: Path) -> None:
    """A misspelt tensor is unread under its name and unfilled under the right one; five of a kind are one."""
    _, shapes = CLEAN["dflash 8B"]
    shapes = {n.replace("hidden_norm", "hiden_norm"): s for n, s in shapes.items()}
    shapes |= {f"layers.{i}.extra.weight": (4,) for i in range(5)}
    found = told(config_of("zlab-qwen3-8b-dflash-b16.json"), checkpoint_of(tmp_path, shapes))
    assert sorted(found) == [
        ("tensor-unfilled", "hidden_norm.weight"),
        ("tensor-unread", "hiden_norm.weight"),
        ("tensor-unread", "layers.*.extra.weight"),
    ]


def test_wrong_number_of_taps_in_fc(tmp_path: Path) -> None:
    """An fc trained for six taps does not fit a config with five."""
    shapes = CLEAN["dflash 8B"][1] | {"fc.weight": (4096, 6 * 4096)}
    found = told(config_of("zlab-qwen3-8b-dflash-b16.json"), checkpoint_of(tmp_path, shapes))
    assert found == [("tensor-misshapen", "fc.weight")]


def test_a_layer_missing_whole_is_one_defect(tmp_path: Path) -> None:
    """A config with more layers than the checkpoint names the layer, not its eleven tensors."""
    shapes = {n: s for n, s in CLEAN["dflash 8B"][1].items() if not n.startswith("layers.4.")}
    found = told(config_of("zlab-qwen3-8b-dflash-b16.json"), checkpoint_of(tmp_path, shapes))
    assert found == [("tensor-unfilled", "layers.4.*")]


def test_a_quantised_fc_has_no_source(tmp_path: Path) -> None:
    """Fc as weight_packed, weight_scale and weight_shape leaves fc.weight at its initial values."""
    shapes = dict(CLEAN["dflash 8B"][1])
    del shapes["fc.weight"]
    shapes |= {"fc.weight_packed": (4096, 2560), "fc.weight_scale": (4096, 160), "fc.weight_shape": (2,)}
    checkpoint = checkpoint_of(tmp_path, shapes)
    table = expected_tensors(config_of("zlab-qwen3-8b-dflash-b16.json"))
    defects = match_defects(table, match_tensors(table, checkpoint), checkpoint)
    assert [(d.id, d.subject) for d in defects] == [("tensor-quantised-leftover", "fc.weight")]
    assert defects[0].found == "fc.weight_packed, fc.weight_scale, fc.weight_shape in its place"


def test_quantised_layers_are_one_note_each_kind(tmp_path: Path) -> None:
    """Linear layers quantised in every layer are told once per kind, and norms stay plain."""
    shapes: Shapes = {}
    for name, shape in CLEAN["dflash 8B"][1].items():
        if "_proj.weight" in name:
            stem = name.removesuffix("weight")
            shapes |= {
                f"{stem}weight_packed": (shape[0], shape[1] // 8),
                f"{stem}weight_scale": (shape[0], 1),
            }
        else:
            shapes[name] = shape
    found = told(config_of("zlab-qwen3-8b-dflash-b16.json"), checkpoint_of(tmp_path, shapes))
    assert {kind for kind, _ in found} == {"layer-quantised"}
    assert len(found) == 7


def test_a_scale_alone_fills_nothing(tmp_path: Path) -> None:
    """A scale without its numbers leaves the parameter unfilled."""
    shapes = dict(CLEAN["dflash 8B"][1])
    del shapes["fc.weight"]
    shapes["fc.weight_scale"] = (4096, 1)
    found = told(config_of("zlab-qwen3-8b-dflash-b16.json"), checkpoint_of(tmp_path, shapes))
    assert ("tensor-unfilled", "fc.weight") in found


def test_an_unknown_prefix_is_the_one_defect(tmp_path: Path) -> None:
    """Names under a prefix that no engine strips are told by the prefix, not 58 times."""
    shapes = {f"draft_model.{n}": s for n, s in CLEAN["dflash 8B"][1].items()}
    found = told(config_of("zlab-qwen3-8b-dflash-b16.json"), checkpoint_of(tmp_path, shapes))
    assert found == [("tensor-prefix-unknown", "draft_model.")]


def test_foreign_names_are_one_defect(tmp_path: Path) -> None:
    """Weights of something else entirely are named once."""
    shapes: Shapes = {"wte": (8, 4), "h.0.attn.c_attn": (4, 12)}
    found = told(config_of("zlab-qwen3-8b-dflash-b16.json"), checkpoint_of(tmp_path, shapes))
    assert found == [("tensor-names-foreign", "dflash")]


def test_a_promised_mtp_head_is_absent(tmp_path: Path) -> None:
    """A config that advertises an MTP layer and a checkpoint without one tensor of it."""
    shapes = {n: s for n, s in CLEAN["hybrid target"][1].items() if not n.startswith("mtp.")}
    checkpoint = checkpoint_of(tmp_path, shapes)
    table = expected_tensors(config_of("qwen3.6-27b-target.json"))
    defects = match_defects(table, match_tensors(table, checkpoint), checkpoint)
    assert [(d.id, d.subject, d.found) for d in defects] == [("mtp-missing", "mtp.*", "0 of its 15 tensors")]


def test_an_mtp_head_nobody_advertises_is_unread(tmp_path: Path) -> None:
    """mtp.* tensors beside a config that says nothing of a head are read by nobody."""
    config = config_of(
        "qwen3.6-27b-target.json", ('"mtp_num_hidden_layers": 1', '"mtp_num_hidden_layers": 0')
    )
    found = told(config, checkpoint_of(tmp_path, CLEAN["hybrid target"][1]))
    assert {kind for kind, _ in found} == {"tensor-unread"}
    assert len(found) == 15


def test_reduced_vocabulary_needs_its_map_and_head(tmp_path: Path) -> None:
    """draft_vocab_size below vocab_size without d2t, t2d and a head of its own."""
    shapes = {
        n: s for n, s in CLEAN["eagle3 official"][1].items() if n not in {"d2t", "t2d", "lm_head.weight"}
    }
    found = told(config_of("specforge-llama3-8b-eagle3.json"), checkpoint_of(tmp_path, shapes))
    assert sorted(found) == [("tensor-unfilled", "d2t"), ("tensor-unfilled", "lm_head.weight")]


def test_a_flag_and_its_norm_go_together(tmp_path: Path) -> None:
    """input_norm.weight without norm_before_fc has no consumer; the flag without the tensor has no source."""
    name = "specforge-llama3-8b-eagle3.json"
    shapes = CLEAN["eagle3 official"][1]
    with_norm = checkpoint_of(tmp_path, shapes | {"input_norm.weight": (3 * 4096,)})
    assert told(config_of(name), with_norm) == [("tensor-unread", "input_norm.weight")]
    flagged = config_of(name, ("{\n", '{\n  "norm_before_fc": true,\n'))
    assert told(flagged, with_norm) == []
    assert told(flagged, checkpoint_of(tmp_path, shapes)) == [("tensor-unfilled", "input_norm.weight")]


def test_a_missing_shard_is_not_told_twice(tmp_path: Path) -> None:
    """What a missing shard would hold is not called unfilled again; it is said not to be judged."""
    shapes = {n: ("BF16", s, b"") for n, s in CLEAN["dflash 8B"][1].items()}
    lost = {n: t for n, t in shapes.items() if n.startswith("layers.4.")}
    kept = {n: s for n, (_, s, _) in shapes.items() if n not in lost}
    write_sparse(tmp_path / "model-00001-of-00002.safetensors", [(n, "BF16", s) for n, s in kept.items()])
    write_index(
        tmp_path,
        {
            "model-00001-of-00002.safetensors": {n: shapes[n] for n in kept},
            "model-00002-of-00002.safetensors": lost,
        },
    )
    checkpoint = read_checkpoint(tmp_path)
    assert isinstance(checkpoint, Checkpoint)
    assert [d.id for d in checkpoint.defects] == ["shard-missing"]
    config = config_of("zlab-qwen3-8b-dflash-b16.json")
    match = match_tensors(expected_tensors(config), checkpoint)
    assert told(config, checkpoint) == []
    assert "11 parameters" in match.not_judged[0]


def test_no_table_is_said(tmp_path: Path) -> None:
    """An architecture without a published table is unknown, never clean."""
    table = expected_tensors(config_of("specforge-qwen3-8b-domino.json"))
    checkpoint = checkpoint_of(tmp_path, {"fc.weight": (4, 4)})
    assert table.unknown is not None
    assert match_tensors(table, checkpoint).not_judged == (table.unknown,)


def test_every_config_gives_a_table_or_a_reason() -> None:
    """Each real config has a table with unique names, or says why not."""
    count = 0
    for path in sorted(CONFIGS.glob("*.json")):
        config = parse_config(read_raw(path)).config
        assert isinstance(config, DrafterConfig | TargetConfig)
        table = expected_tensors(config)
        assert (table.unknown is None) == bool(table.entries)
        spelt = [n for e in table.entries for n in (e.name, *e.alternatives)]
        assert len(spelt) == len(set(spelt)), path.name
        count += 1
    assert count > 35


@pytest.mark.parametrize("dtype", ["BOOL", "U8", "I64"])
def test_a_weight_without_a_fraction_needs_its_scales(tmp_path: Path, dtype: str) -> None:
    """Ids or a mask where a weight is due; beside any other tensor of the module it is a quantiser's."""
    _, shapes = CLEAN["dflash 8B"]
    config = config_of("zlab-qwen3-8b-dflash-b16.json")
    plain = [(n, "BF16", s) for n, s in shapes.items() if n != "fc.weight"]
    fc = ("fc.weight", dtype, shapes["fc.weight"])
    for directory, beside, expected in (
        ("alone", [], [("tensor-not-float", "fc.weight")]),
        ("scaled", [("fc.weight_scale", "F32", (1,))], []),
        ("packed", [("fc.weight.absmax", "F32", (1,))], [("tensor-unread", "fc.weight.absmax")]),
    ):
        root = tmp_path / directory
        root.mkdir()
        write_sparse(root / "model.safetensors", [*plain, fc, *beside])
        checkpoint = read_checkpoint(root)
        assert isinstance(checkpoint, Checkpoint)
        assert told(config, checkpoint) == expected


def test_an_unreadable_index_is_not_a_foreign_model(tmp_path: Path) -> None:
    """No tensor is known, and why is told once: nothing is said of whose weights they are."""
    (tmp_path / "model.safetensors.index.json").write_text("[1]", encoding="utf-8")
    checkpoint = read_checkpoint(tmp_path)
    assert isinstance(checkpoint, Checkpoint)
    assert [d.id for d in checkpoint.defects] == ["index-refused"]
    assert "json-not-an-object" in checkpoint.defects[0].found
    assert told(config_of("zlab-qwen3-8b-dflash-b16.json"), checkpoint) == []
