"""runtimes.judge: a library is blamed for what a consumer loses, and for nothing else."""

from dataclasses import replace

import pytest

from draftproof.config.json.value import JsonValue
from draftproof.findings.finding import Finding
from draftproof.names import Layer
from draftproof.runtimes.hf.compare import compare
from draftproof.runtimes.hf.judge import judge
from draftproof.runtimes.hf.reading import HfReading
from environments import NEW, OLD, VERSIONS
from runtimes.cases import CASES, raw_of, reading_of


def judged(case: str, reading: HfReading, vocab_size: int | None = None) -> tuple[Finding, ...]:
    """The findings on one reading of a case."""
    raw = raw_of(case)
    return judge(raw, compare(raw.value, reading), reading, target_vocab_size=vocab_size)


def found(case: str, version: str) -> "Found":
    """(severity, id, pointer) of each finding."""
    return [(f.severity.value, f.id, f.pointer) for f in judged(case, reading_of(case, version))]


Found = list[tuple[str, str, str | None]]

NULLED: Found = [("warning", "parsed-window-nulled", "/sliding_window")]
CONTRADICTION: Found = [("error", "parsed-window-nulled", "/sliding_window")]

ON_BOTH: dict[str, Found] = {
    "A window alone": NULLED,
    "B window and switch": [("warning", "parsed-window-unused", "/layer_types")],
    "C types without switch": CONTRADICTION,
    "D types and switch": [],
    "E all full": [],
    "flat rope": [],
    "both ropes agree": [],
    "flat yarn": [],
    "no rope": [],
    "types, switch false": CONTRADICTION,
    "starts at 0": [],
    "starts at 4": [],
    "starts at its depth": [("note", "parsed-window-unused", "/layer_types")],
    "nulls": [],
    "types, no window": [("warning", "parsed-hole-filled", "/sliding_window")],
    "types, null window": [],
    "full types, stray window": [],
    "window switched off": [],
    "old dtype": [],
    "vocabulary missing": [("warning", "parsed-hole-filled", "/vocab_size")],
    "generation settings": [],
    "no model_type": [("error", "parsed-refused", "")],
    "unknown model_type": [("error", "parsed-refused", "/model_type")],
    "code in auto_map": [],
    "class in auto_map": [("note", "parsed-no-class", "/auto_map/AutoConfig")],
    "speculators": [("note", "parsed-no-class", "/speculators_model_type")],
    "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json": [],
    "specforge-llama3-8b-eagle3.json": [],
    "zlab-gpt-oss-20b-dflash.json": [],
    "zlab-qwen3.6-27b-dflash.json": [],
}

IGNORED = ("error", "parsed-rope-ignored")
BY_VERSION: dict[tuple[str, str], Found] = {
    ("nested rope", OLD): [(*IGNORED, "/rope_parameters/rope_theta")],
    ("nested rope", NEW): [],
    ("zlab-qwen3.6-35b-a3b-dflash.json", OLD): [(*IGNORED, "/rope_parameters/rope_theta")],
    ("zlab-qwen3.6-35b-a3b-dflash.json", NEW): [],
    ("both ropes", OLD): [(*IGNORED, "/rope_parameters/rope_theta")],
    ("both ropes", NEW): [(*IGNORED, "/rope_theta")],
    ("nested yarn", OLD): [
        (*IGNORED, f"/rope_parameters/{name}")
        for name in ("rope_theta", "rope_type", "factor", "original_max_position_embeddings")
    ],
    ("nested yarn", NEW): [],
    ("three types", OLD): [("error", "parsed-refused", "/num_hidden_layers")],
    ("three types", NEW): [("error", "parsed-refused", "/num_hidden_layers")],
    ("unknown label", OLD): [("error", "parsed-refused", "/layer_types")],
    ("unknown label", NEW): [("error", "parsed-refused", "/layer_types")],
    ("legacy labels", OLD): [("error", "parsed-refused", "/layer_types")],
    ("legacy labels", NEW): [],
    ("float count", OLD): [],
    ("float count", NEW): [("error", "parsed-refused", "/initializer_range")],
    ("null head_dim", OLD): [],
    ("null head_dim", NEW): [("error", "parsed-refused", "/head_dim")],
    ("qwen3.6-27b-target.json", OLD): [("error", "parsed-refused", "/model_type")],
    ("qwen3.6-27b-target.json", NEW): [],
}


def test_every_case_has_its_verdict() -> None:
    """No recorded case goes unjudged."""
    assert set(ON_BOTH) | {case for case, _ in BY_VERSION} == set(CASES)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ON_BOTH)
def test_what_both_versions_do(case: str, version: str) -> None:
    """The findings of cases on which 4.57.6 and 5.24.0 agree."""
    assert found(case, version) == ON_BOTH[case]


@pytest.mark.parametrize(("case", "version"), BY_VERSION)
def test_what_one_version_does(case: str, version: str) -> None:
    """The findings of cases on which the versions differ."""
    assert found(case, version) == BY_VERSION[case, version]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_every_finding_is_at_parsed_and_names_the_library(case: str, version: str) -> None:
    """A finding says which version of which library did it, at which layer."""
    for finding in judged(case, reading_of(case, version)):
        assert finding.layer is Layer.PARSED
        assert f"transformers {version}" in finding.means


@pytest.mark.parametrize("version", VERSIONS)
def test_the_two_gates_and_the_contradiction_are_named(version: str) -> None:
    """A names the switch and the depth at which windows start; C names the contradiction."""
    (alone,) = judged("A window alone", reading_of("A window alone", version))
    assert (alone.expected, alone.found) == (2048, None)
    for words in ("/use_sliding_window is absent", "max_window_layers is 28 (the class default)"):
        assert words in alone.means
    (contradiction,) = judged("C types without switch", reading_of("C types without switch", version))
    assert "a contradiction: layer_types still say sliding on 4 layers" in contradiction.means


def test_the_base_is_10000_in_exactly_one_of_four_cells() -> None:
    """Of flat and nested, 4.57.6 and 5.24.0, only nested under 4.57.6 shows another rotary base."""
    cells: dict[tuple[str, str], JsonValue] = {}
    for case, pointer in (("flat rope", ("rope_theta",)), ("nested rope", ("rope_parameters", "rope_theta"))):
        for version in VERSIONS:
            fields = compare(raw_of(case).value, reading_of(case, version))
            thetas = [field.value for field in fields if field.path[-1] == "rope_theta"]
            assert [field.path for field in fields if field.path[-1] == "rope_theta"] == [pointer]
            cells[case, version] = thetas[0]
    assert [cell for cell, theta in cells.items() if theta == 10000.0] == [("nested rope", OLD)]
    assert sorted(map(str, cells.values())) == ["10000.0", *["10000000"] * 3]


@pytest.mark.parametrize(
    ("vocab_size", "severity", "words"),
    [(202048, "error", "the target has 202048"), (151936, "warning", "class default"), (None, "warning", "")],
)
def test_a_filled_hole_is_an_error_where_the_target_says_otherwise(
    vocab_size: int | None, severity: str, words: str
) -> None:
    """A vocabulary that is the library's constant is held against the target where there is one."""
    (hole,) = judged("vocabulary missing", reading_of("vocabulary missing", NEW), vocab_size)
    assert (hole.severity.value, hole.found) == (severity, 151936)
    assert words in hole.means


def altered(**values: JsonValue) -> "Found":
    """Findings on the clean case D where the library is made to hold other values; None removes a key."""
    reading = reading_of("D types and switch", OLD)
    held = {key: value for key, value in {**reading.values, **values}.items() if value is not None}
    findings = judged("D types and switch", replace(reading, values=held))
    return [(f.severity.value, f.id, f.pointer) for f in findings]


def test_a_changed_value_is_an_error() -> None:
    """A library that holds another head width than the file states is named."""
    assert altered(head_dim=64) == [("error", "parsed-value-changed", "/head_dim")]


def test_a_dropped_value_is_a_warning() -> None:
    """A field that readers of drafters take must arrive."""
    assert altered(block_size=None) == [("warning", "parsed-value-dropped", "/block_size")]


def test_layers_that_slide_otherwise_are_an_error() -> None:
    """Word-for-word renaming is legal only while the same layers slide."""
    types: list[JsonValue] = [*["full_attention"] * 4, "sliding_attention"]
    assert altered(layer_types=types) == [("error", "parsed-layers-changed", "/layer_types")]


def test_a_lost_fingerprint_is_nobodys_loss() -> None:
    """No engine reads these while drafting, so losing them is shown and not blamed."""
    assert altered(architectures=None) == []
