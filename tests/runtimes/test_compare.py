"""runtimes.compare: what became of each field, on recorded answers of transformers 4.57.6 and 5.24.0."""

from dataclasses import replace

import pytest

from draftproof.config.json.value import JsonValue
from draftproof.config.view import leaves
from draftproof.runtimes.hf.compare import SHOWN_WHEN_SILENT, compare
from draftproof.runtimes.hf.fields import How
from environments import NEW, OLD, VERSIONS
from runtimes.cases import CASES, field_of, raw_of, reading_of

SSSSF = [*["sliding_attention"] * 4, "full_attention"]
FFFFS = [*["full_attention"] * 4, "sliding_attention"]
FFFFF, SSSSS = ["full_attention"] * 5, ["sliding_attention"] * 5

WINDOWS: list[tuple[str, int | None, list[str]]] = [
    ("C types without switch", None, SSSSF),
    ("types, switch false", None, SSSSF),
    ("D types and switch", 2048, SSSSF),
    ("B window and switch", 2048, FFFFF),
    ("starts at 0", 2048, SSSSS),
    ("starts at 4", 2048, FFFFS),
    ("starts at its depth", 2048, FFFFF),
    ("nulls", None, FFFFF),
    ("types, no window", 4096, SSSSF),
    ("types, null window", None, SSSSF),
    ("A window alone", None, FFFFF),
    ("E all full", None, FFFFF),
    ("full types, stray window", None, FFFFF),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("case", "window", "types"), WINDOWS)
def test_the_window_and_its_layers(case: str, window: int | None, types: list[str], version: str) -> None:
    """Qwen3Config's window and layer types, row by row; both versions agree."""
    values = reading_of(case, version).values
    assert (values["sliding_window"], values["layer_types"]) == (window, types)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("case", "pointer", "how", "value", "why"),
    [
        ("A window alone", "/sliding_window", How.NULLED, None, "/use_sliding_window is absent"),
        (
            "A window alone",
            "/sliding_window",
            How.NULLED,
            None,
            "tried: with use_sliding_window true it is kept",
        ),
        (
            "A window alone",
            "/layer_types",
            How.SYNTHESISED,
            FFFFF,
            "max_window_layers once use_sliding_window",
        ),
        ("B window and switch", "/sliding_window", How.KEPT, 2048, ""),
        (
            "B window and switch",
            "/layer_types",
            How.SYNTHESISED,
            FFFFF,
            "max_window_layers is 28 (the class default)",
        ),
        ("starts at its depth", "/layer_types", How.SYNTHESISED, FFFFF, "max_window_layers is 5"),
        ("C types without switch", "/sliding_window", How.NULLED, None, "/use_sliding_window is absent"),
        ("C types without switch", "/layer_types", How.KEPT, SSSSF, ""),
        ("types, switch false", "/sliding_window", How.NULLED, None, "is false in the file"),
        ("D types and switch", "/sliding_window", How.KEPT, 2048, ""),
        ("D types and switch", "/layer_types", How.KEPT, SSSSF, ""),
        ("types, no window", "/sliding_window", How.DEFAULTED, 4096, "constant of transformers"),
        ("nulls", "/layer_types", How.SYNTHESISED, FFFFF, "null in the file: made by"),
        ("vocabulary missing", "/vocab_size", How.DEFAULTED, 151936, "absent: class default of transformers"),
        ("old dtype", "/torch_dtype", How.RENAMED, "bfloat16", "holds it as /dtype"),
        ("both ropes agree", "/rope_parameters/rope_theta", How.KEPT, 10000000, ""),
        (
            "D types and switch",
            "/dflash_config/mask_token_id",
            How.KEPT,
            248070,
            "does not know /dflash_config",
        ),
        ("code in auto_map", "/auto_map/AutoConfig", How.KEPT, "configuration_evil.EvilConfig", ""),
    ],
)
def test_what_became_of_a_field(
    *, case: str, pointer: str, how: How, value: JsonValue, why: str, version: str
) -> None:
    """The word for what happened, the value a consumer sees, and the reason that was observed."""
    field = field_of(case, version, pointer)
    assert (field.how, field.value) == (how, value)
    assert why in field.why


@pytest.mark.parametrize(
    ("case", "version", "pointer", "how", "value", "why"),
    [
        ("flat rope", OLD, "/rope_theta", How.KEPT, 10000000, ""),
        ("flat rope", NEW, "/rope_theta", How.MOVED, 10000000, "as /rope_parameters/rope_theta"),
        (
            "nested rope",
            OLD,
            "/rope_parameters/rope_theta",
            How.IGNORED,
            10000.0,
            "an attribute nobody reads",
        ),
        (
            "nested rope",
            OLD,
            "/rope_parameters/rope_theta",
            How.IGNORED,
            10000.0,
            "written as /rope_theta the same",
        ),
        (
            "nested rope",
            OLD,
            "/rope_parameters/rope_type",
            How.KEPT,
            "default",
            "what the class holds agrees",
        ),
        ("nested rope", NEW, "/rope_parameters/rope_theta", How.KEPT, 10000000, ""),
        ("both ropes", OLD, "/rope_theta", How.KEPT, 5000000, ""),
        (
            "both ropes",
            OLD,
            "/rope_parameters/rope_theta",
            How.IGNORED,
            5000000,
            "from elsewhere in the file",
        ),
        (
            "both ropes",
            NEW,
            "/rope_theta",
            How.IGNORED,
            10000000,
            "reads /rope_parameters/rope_theta instead",
        ),
        ("flat yarn", OLD, "/rope_scaling/factor", How.KEPT, 4.0, ""),
        ("flat yarn", NEW, "/rope_scaling/factor", How.MOVED, 4.0, "as /rope_parameters/factor"),
        ("nested yarn", OLD, "/rope_parameters/rope_type", How.IGNORED, "default", "nobody reads"),
        ("nested yarn", OLD, "/rope_parameters/factor", How.IGNORED, None, "holds nothing in its place"),
        ("nested yarn", NEW, "/rope_parameters/factor", How.KEPT, 4.0, ""),
        ("no rope", OLD, "/rope_theta", How.DEFAULTED, 10000.0, "class default"),
        ("no rope", NEW, "/rope_parameters/rope_theta", How.DEFAULTED, 10000.0, "class default"),
        ("legacy labels", NEW, "/layer_types", How.REWRITTEN, FFFFF, "attention -> full_attention"),
        ("legacy labels", OLD, "/layer_types", How.REFUSED, None, "ValueError"),
        ("generation settings", OLD, "/temperature", How.KEPT, 0.7, ""),
        ("generation settings", NEW, "/temperature", How.DROPPED, None, "does not keep this key"),
        ("null head_dim", OLD, "/head_dim", How.KEPT, None, ""),
        ("null head_dim", NEW, "/head_dim", How.REFUSED, None, "expected int"),
        ("zlab-qwen3.6-27b-dflash.json", NEW, "/rope_scaling", How.DROPPED, None, "a null"),
        ("zlab-gpt-oss-20b-dflash.json", NEW, "/rope_scaling/factor", How.MOVED, 32.0, "the same value"),
    ],
)
def test_where_the_versions_differ(
    *, case: str, version: str, pointer: str, how: How, value: JsonValue, why: str
) -> None:
    """The two rope styles, and other keys that 4.x and 5.x treat otherwise."""
    field = field_of(case, version, pointer)
    assert (field.how, field.value) == (how, value)
    assert why in field.why


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_every_field_of_the_file_is_accounted_for(case: str, version: str) -> None:
    """Each leaf of the file has exactly one reading, in order; what follows is not in the file."""
    raw = raw_of(case)
    fields = compare(raw.value, reading_of(case, version))
    written = [path for path, _ in leaves(raw.value)]
    assert [field.path for field in fields[: len(written)]] == written
    assert all(field.written for field in fields[: len(written)])
    silent = fields[len(written) :]
    assert all(not field.written and field.bytes is None and field.why for field in silent)
    assert all(set(field.path) & set(SHOWN_WHEN_SILENT) for field in silent)
    assert len({field.path for field in fields}) == len(fields)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_only_kept_fields_need_no_reason(case: str, version: str) -> None:
    """Whatever is not simply kept says why."""
    for field in compare(raw_of(case).value, reading_of(case, version)):
        assert field.why or field.how is How.KEPT


def test_a_number_of_another_type_is_said_to_be() -> None:
    """An int that a library holds as a float is the same number, and named."""
    reading = reading_of("D types and switch", OLD)
    changed = replace(reading, values={**reading.values, "hidden_size": 5120.0, "head_dim": 129})
    fields = {f.path: f for f in compare(raw_of("D types and switch").value, changed)}
    assert fields["hidden_size",].how is How.TYPE_CHANGED
    assert fields["head_dim",].how is How.CHANGED


def test_a_reading_without_trials_gives_no_reason_it_has_not_seen() -> None:
    """Where nothing was tried, the loss is named and no gate is."""
    reading = replace(reading_of("C types without switch", NEW), trials=None)
    fields = {f.path: f for f in compare(raw_of("C types without switch").value, reading)}
    assert fields["sliding_window",].how is How.NULLED
    assert "no single setting tried" in fields["sliding_window",].why
