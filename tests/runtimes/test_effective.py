"""runtimes: an engine's record, completed from the table, held against the file it was made of."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from draftproof.config.drafter import DrafterConfig, Method
from draftproof.findings.evidence import read_model
from draftproof.findings.semantics.row import Quantity
from draftproof.findings.semantics.table import SEMANTICS, semantic
from draftproof.findings.versions import Engine, Verdict
from draftproof.names import Layer
from draftproof.runtimes.effective import Effective, Fact, How, LayerFacts, unknown
from draftproof.runtimes.engine_views import Column, table
from draftproof.runtimes.interpreter import NoAnswer
from draftproof.runtimes.judge_effective import Meant, judge_effective
from draftproof.runtimes.quantities import of_drafter, of_parsed
from draftproof.runtimes.record import parse_records
from draftproof.runtimes.resolve import drafter_of, meant_of
from draftproof.runtimes.semantics import LAYER_RULES, RULES, complete, engine_of
from runtimes.tiny_checkpoints import DFLASH, DRAFT, HYBRID, TARGET, changed, write

SLIDING = changed(
    DFLASH,
    layer_types=["sliding_attention", "full_attention"],
    sliding_window=32,
    use_sliding_window=True,
    max_window_layers=2,
)


def drafter_in(folder: Path, config: dict[str, Any]) -> tuple[DrafterConfig, Meant]:
    """The canonical drafter of a config on disk, and what it means beside the tiny target."""
    subject = read_model(str(write(folder / "drafter", config)))
    target = read_model(str(write(folder / "target", TARGET)))
    meant = meant_of(subject, target)
    assert subject.drafter is not None
    assert meant is not None
    return subject.drafter, meant


def record(version: str, facts: Mapping[str, Fact] | None = None, **more: Any) -> Effective:
    """A record of vLLM that tells these facts and nothing else."""
    bare = Effective("vllm", version, "/opt/vllm", "preflight", None, facts or {}, None, None, None)
    return dataclasses.replace(bare, **more)


def asked(value: Any) -> Fact:
    """A fact as an engine's own function tells it."""
    return Fact(value, "a function", How.ASKED)


def completed(config: dict[str, Any], version: str, folder: Path, engine: str = "vllm") -> Effective:
    """What the table alone gives for a drafter."""
    drafter, _ = drafter_in(folder, config)
    bare = dataclasses.replace(record(version, {"runner": asked("v1")}), engine=engine)
    tensors = ("fc.weight", "layers.0.mlp.up_proj.weight")
    return complete(bare, drafter, tensors=tensors, num_draft_tokens=7, missing={})


def body(**one: Any) -> dict[str, object]:
    """An answer of a program in an engine."""
    engine = {"name": "vllm", "version": "0.32.0", "path": "/opt/vllm/__init__.py"}
    bare: dict[str, object] = {"facts": {}, "layers": None, "config": None, "refusal": None, "tensors": None}
    return {"engine": engine, "records": [{**bare, **one}]}


def test_an_answer_becomes_a_record() -> None:
    """Values keep their source; what raised is no value, and pydantic's quotation is cut off."""
    answer = body(
        facts={"k": {"value": 7, "source": "S"}, "mask_id": {"raised": "ValueError: none", "source": "M"}},
        layers=[{"window": {"value": 32, "source": "L"}, "causal": {"unknown": "no such method"}}],
        refusal="ValidationError: Value error, mixed [type=value_error, input_value=secret]",
    )
    told = parse_records(answer, stage="preflight")
    assert not isinstance(told, NoAnswer)
    effective = told[0].effective
    assert effective.fact("k") == Fact(7, "S", How.ASKED)
    assert effective.fact("mask_id").how is How.RAISED
    assert not effective.fact("mask_id").is_known
    assert effective.refusal == "ValidationError: Value error, mixed"
    assert effective.flat["layers/0/window"].value == 32
    assert not effective.flat["layers/0/causal"].is_known
    assert effective.as_dict()["schema"] == "draftproof.effective/1"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"engine": None, "reason": "ModuleNotFoundError: no vllm"}, "no engine that can be imported"),
        ({}, "another form"),
        ({"engine": {}, "records": [{}]}, "another form"),
        ({"engine": {"name": "vllm"}, "records": 1}, "another form"),
        (body(facts={"k": 7}), "another form"),
        (body(layers={}), "another form"),
        (body(rank="0"), "another form"),
        (body(rank=True), "another form"),
    ],
)
def test_any_other_form_is_no_answer(answer: dict[str, object], reason: str) -> None:
    """An engine that answers nonsense is not read as one without faults."""
    told = parse_records(answer, stage="preflight")
    assert isinstance(told, NoAnswer)
    assert reason in told.reason


def test_every_row_can_be_computed_and_names_its_source() -> None:
    """A row without a rule could never answer; last taps are a limit, not a value."""
    for row in SEMANTICS:
        rules = LAYER_RULES if row.quantity in (Quantity.WINDOW, Quantity.CAUSAL) else RULES
        assert row.id in rules or row.id == "last-tap-out-of-reach", row.id
        assert row.source
        assert row.versions.since is not None
        assert row.versions.until is not None


@pytest.mark.parametrize("quantity", list(Quantity))
def test_rows_for_one_dialect_do_not_contradict(quantity: Quantity) -> None:
    """Where two rows hold for a drafter, the first is the one for its very dialect."""
    versions = [Engine("vllm", (0, minor)) for minor in range(21, 34)]
    versions += [Engine("sglang", (0, 5, patch)) for patch in range(11, 24)]
    for engine in versions:
        for method in Method:
            for dialect in ("native", "speculators", "eagle", "modelopt"):
                holding = [
                    row
                    for row in SEMANTICS
                    if row.quantity is quantity
                    and row.concerns(method, dialect)
                    and row.versions.verdict(engine) is Verdict.HOLDS
                ]
                special = [row for row in holding if row.dialects]
                assert len(special) <= 1, (engine, method, dialect, special)
                assert len(holding) - len(special) <= 1, (engine, method, dialect, holding)
                if special:
                    assert holding[0] is special[0]


@pytest.mark.parametrize(
    ("engine", "version", "taps", "windows", "causal", "drop"),
    [
        ("vllm", "0.20.1", [1, 3, 5], [None, None], [False, False], True),
        ("vllm", "0.21.0", [1, 3, 5], [None, None], [False, False], True),
        ("vllm", "0.24.0", [2, 4, 6], [None, None], [False, False], True),
        ("vllm", "0.25.0", [2, 4, 6], [32, None], [True, False], True),
        ("vllm", "0.33.0", [2, 4, 6], [32, None], [True, False], False),
        ("sglang", "0.5.11", [2, 4, 6], [None, None], [False, False], False),
        ("sglang", "0.5.23", [2, 4, 6], [32, None], [True, False], False),
    ],
)
def test_the_table_tells_versions_apart(  # noqa: PLR0917 - one column per quantity
    engine: str,
    version: str,
    taps: list[int],
    windows: list[int | None],
    causal: list[bool],
    drop: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    """One file, seven engines: literal ids, no windows, dropped blocks are each where they were read."""
    effective = completed(SLIDING, version, tmp_path, engine)
    assert effective.fact("aux_layers").value == taps
    assert effective.layers is not None
    assert [layer.window.value for layer in effective.layers] == windows
    assert [layer.causal.value for layer in effective.layers] == causal
    assert effective.fact("block_drop").value is drop
    assert all(layer.window.how is How.DERIVED for layer in effective.layers)
    assert "(" in effective.fact("aux_layers").source


@pytest.mark.parametrize("version", ["0.34.0", "0.99", "0.8.5", "dev"])
def test_versions_nobody_read_stay_unknown(version: str, tmp_path: Path) -> None:
    """Neither the newest row nor the oldest speaks for a version outside."""
    effective = completed(SLIDING, version, tmp_path)
    for name in ("aux_layers", "mask_id", "block_drop"):
        assert not effective.fact(name).is_known, name
    assert effective.layers is not None
    assert not any(layer.window.is_known for layer in effective.layers)


def test_what_the_engine_tells_is_not_derived(tmp_path: Path) -> None:
    """A row never replaces an answer, be it one that the row denies."""
    drafter, _ = drafter_in(tmp_path, SLIDING)
    layers = (LayerFacts(asked(16), asked(value=True)),)
    told = record("0.20.1", {"aux_layers": asked([9])}, layers=layers)
    effective = complete(told, drafter, tensors=None, num_draft_tokens=7, missing={})
    assert effective.fact("aux_layers") == asked([9])
    assert effective.layers == layers
    assert not effective.fact("shared_head").is_known  # names of tensors were not at hand


def test_a_release_is_read_from_a_version_text() -> None:
    """Local and post parts do not matter; a text without numbers is no release."""
    assert engine_of("vllm", "0.20.1+cpu") == Engine("vllm", (0, 20, 1))
    assert engine_of("vllm", "0.26.0rc1") == Engine("vllm", (0, 26, 0))
    assert engine_of("vllm", "dev") is None
    assert semantic(Engine("vllm", (0, 20, 1)), Quantity.TAPS, Method.DFLASH, "native") is not None


HEALTHY: dict[str, Fact] = {
    "aux_layers": asked([2, 4, 6]),
    "fc_features": asked(3),
    "num_target_layers": asked(8),
    "mask_id": asked(3),
    "k": asked(7),
    "shared_embed": asked(value=True),
    "shared_head": asked(value=True),
    "block_drop": asked(value=False),
    "rejection_sample_method": asked("standard"),
}
FULL = (LayerFacts(asked(None), asked(value=False)), LayerFacts(asked(None), asked(value=False)))


def judged(folder: Path, facts: Mapping[str, Fact], **more: Any) -> dict[str, Any]:
    """Ids and what each found, of a healthy record with some facts replaced."""
    _, meant = drafter_in(folder, DFLASH)
    effective = record("0.32.0", {**HEALTHY, **facts}, **{"layers": FULL, **more})
    return {finding.id: finding.found for finding in judge_effective(effective, meant)}


def test_a_healthy_record_has_no_finding(tmp_path: Path) -> None:
    """Nothing is said where everything agrees; unknowns are no findings either."""
    assert judged(tmp_path, {}) == {}
    assert judged(tmp_path, dict.fromkeys(HEALTHY, unknown("not asked"))) == {}


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"aux_layers": asked([1, 3, 5])}, "taps-read-literally"),
        ({"aux_layers": asked([3, 5, 7])}, "effective-taps"),
        ({"aux_layers": asked([2, 4, 10])}, "effective-fails-at-first-draft"),
        ({"fc_features": asked(5)}, "effective-fails-at-first-draft"),
        ({"mask_id": asked(4)}, "effective-mask"),
        ({"mask_id": asked(512)}, "effective-fails-at-first-draft"),
        ({"mask_id": Fact(None, "ValueError: none (M)", How.RAISED)}, "effective-refused"),
        ({"k": asked(15)}, "effective-draft-tokens"),
        ({"shared_head": asked(value=False)}, "effective-sharing"),
        ({"block_drop": asked(value=True)}, "effective-block-drop"),
        ({"rejection_sample_method": asked("synthetic")}, "acceptance-faked"),
        ({"rejection_sample_method": asked("fly")}, "acceptance-lossy"),
    ],
)
def test_each_difference_is_named(facts: dict[str, Fact], kind: str, tmp_path: Path) -> None:
    """One fact changed, its finding there."""
    assert kind in judged(tmp_path, facts)


def test_fewer_draft_tokens_than_trained_are_a_choice(tmp_path: Path) -> None:
    """A shorter draft is no fault."""
    assert judged(tmp_path, {"k": asked(3)}) == {}


def test_layers_are_told_together(tmp_path: Path) -> None:
    """One finding for all layers that differ in one way."""
    wrong = LayerFacts(asked(32), asked(value=True))
    found = judged(tmp_path, {}, layers=(FULL[0], wrong))
    assert found == {"effective-window": [32], "effective-causality": [True]}


def test_a_refusal_is_a_finding(tmp_path: Path) -> None:
    """The engine's own words are quoted."""
    assert judged(tmp_path, {}, refusal="ValidationError: mixed") == {
        "effective-refused": "ValidationError: mixed"
    }


def test_the_first_wrong_column_is_marked(tmp_path: Path) -> None:
    """A value that a layer loses is told there, and not again above it."""
    drafter, _ = drafter_in(tmp_path, SLIDING)
    meant = of_drafter(drafter)
    parsed = of_parsed(
        changed(SLIDING, sliding_window=32, layer_types=["full_attention"] * 2), "parsed", None
    )
    assert parsed is not None
    effective = {**parsed, "aux_layers": asked([1, 3, 5]), "k": asked(3), "runner": asked("v1")}
    columns = (
        Column(Layer.BYTES, "file", meant),
        Column(Layer.PARSED, "parsed", parsed),
        Column(Layer.EFFECTIVE, "preflight", effective),
        Column(Layer.OBSERVED, "observed", {"k": asked(2)}),
    )
    wrong = {row.name: row.first_wrong for row in table(columns) if row.first_wrong is not None}
    assert wrong == {"layers/0/window": 1, "layers/0/causal": 1, "aux_layers": 2, "k": 3}


def test_what_is_no_drafter_has_no_quantities() -> None:
    """A library's dict that describes no drafter gives no column."""
    assert of_parsed({"model_type": "bert"}, "parsed", None) is None
    assert of_parsed(DRAFT, "parsed", None) is None
    whole = of_parsed(DRAFT, "parsed", Method.DRAFT_MODEL)
    assert whole is not None
    assert whole["layers/0/causal"].value is True


def test_a_model_drafts_for_another_and_a_head_for_its_own(tmp_path: Path) -> None:
    """An ordinary model beside another target is a draft model; its own MTP head is meant beside itself."""
    hybrid = read_model(str(write(tmp_path / "hybrid", HYBRID)))
    draft = read_model(str(write(tmp_path / "draft", DRAFT)))
    (tmp_path / "link").symlink_to("hybrid")
    for own in (None, hybrid, read_model(str(tmp_path / "link"))):
        head = drafter_of(hybrid, own)
        assert head is not None
        assert head.method.value is Method.MTP
    for subject, target in ((draft, hybrid), (hybrid, draft)):
        whole = drafter_of(subject, target)
        assert whole is not None
        assert whole.method.value is Method.DRAFT_MODEL
        assert len(whole.layers) == whole.geometry.num_hidden_layers.value
    assert drafter_of(draft, draft) is None
    assert drafter_of(draft, None) is None
