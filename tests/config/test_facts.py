"""config.facts: the JSON contract, and a source for every field of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from draftproof.config.facts import facts
from draftproof.config.parse import parse_config
from draftproof.config.raw import JsonValue, parse_raw

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.json"))
FIELDS = {
    "schema",
    "role",
    "method",
    "format",
    "taps",
    "block_size",
    "num_draft_tokens",
    "mask_token_id",
    "layers",
    "rope",
    "vocab_size",
    "draft_vocab_size",
    "hidden_size",
    "target_hidden_size",
    "norms",
    "mtp",
    "sources",
    "unparsed",
}


def _facts(path: Path) -> dict[str, JsonValue]:
    return facts(parse_config(parse_raw(path.read_bytes(), path.name)))


def _object(value: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(value, dict)
    return value


def _names(value: JsonValue, name: str, sources: dict[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Every dotted name with its value; a name with a source of its own and no sourced parts is a leaf."""
    has_parts = any(other.startswith(f"{name}.") for other in sources)
    yield name, value
    if isinstance(value, dict) and has_parts:
        for key, child in value.items():
            yield from _names(child, f"{name}.{key}", sources)
    elif isinstance(value, list) and has_parts:
        for i, child in enumerate(value):
            yield from _names(child, f"{name}.{i}", sources)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_every_field_of_the_contract_is_there(path: Path) -> None:
    """The named fields stand in every document, and all of it is plain JSON."""
    document = _facts(path)
    assert set(document) >= FIELDS
    assert document["schema"] == "draftproof.facts/1"
    assert json.loads(json.dumps(document, allow_nan=False)) == document


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_every_field_has_a_source_and_every_null_a_reason(path: Path) -> None:
    """Each name, dotted ones included, has pointer and line, default, derivation, or why it is unknown."""
    document = _facts(path)
    sources = _object(document["sources"])
    raw = parse_raw(path.read_bytes(), path.name)
    skipped = {"schema", "sources", "unparsed", "superseded", "problems"}
    names = [pair for key in document if key not in skipped for pair in _names(document[key], key, sources)]
    assert {name for name, _ in names} == set(sources)
    for name, value in names:
        source = _object(sources[name])
        assert set(source) in ({"pointer", "line"}, {"default"}, {"derived"}, {"unknown"})
        if "unknown" in source and not isinstance(value, dict):
            assert value is None, name
        if "pointer" in source:
            assert raw.line(str(source["pointer"])) == source["line"]


def test_drafter_document_says_what_the_file_says() -> None:
    """The Qwen3.6-27B drafter, field by field."""
    document = _facts(next(p for p in CONFIGS if p.name == "zlab-qwen3.6-27b-dflash.json"))
    assert (document["role"], document["method"], document["format"]) == ("drafter", "dflash", "native")
    assert document["taps"] == {"layer_ids": [1, 16, 31, 46, 61], "hidden_indexes": [2, 17, 32, 47, 62]}
    assert document["layers"] == [{"kind": "sliding_attention", "window": 2048, "causal": True}] * 4 + [
        {"kind": "full_attention", "window": None, "causal": False}
    ]
    rope = _object(document["rope"])
    assert (rope["theta"], rope["type"], rope["partial_rotary_factor"]) == (10000000, "default", 1.0)
    assert document["mtp"] is None
    sources = _object(document["sources"])
    assert sources["taps"] == {"pointer": "/dflash_config/target_layer_ids", "line": 14}
    assert sources["layers"] == {"pointer": "/layer_types", "line": 29}
    assert sources["layers.0.window"] == {"pointer": "/sliding_window", "line": 45}
    assert document["unparsed"] == []


def test_target_document_has_no_method_and_a_head() -> None:
    """A target: method and taps null with a reason, causal layers, the head as an object."""
    document = _facts(next(p for p in CONFIGS if p.name == "qwen3.6-27b-target.json"))
    assert (document["role"], document["method"], document["taps"]) == ("target", None, None)
    head = _object(document["mtp"])
    assert (head["style"], head["num_layers"]) == ("qwen", 1)
    assert head["taps"] == {"layer_ids": [63], "hidden_indexes": [64]}
    layers = document["layers"]
    assert isinstance(layers, list)
    assert {_object(layer)["causal"] for layer in layers} == {True}
    assert "/vision_config" in json.dumps(document["unparsed"])


def test_target_without_a_head_says_why() -> None:
    """No count, no head: null, with the keys that were looked for."""
    document = _facts(next(p for p in CONFIGS if p.name == "qwen3.5-35b-a3b-target-text-partial.json"))
    assert document["mtp"] is None
    assert "mtp_num_hidden_layers" in str(_object(document["sources"])["mtp"])


def test_layers_of_unknown_number_are_null_with_a_reason() -> None:
    """A partial file without num_hidden_layers has no list of layers, not an empty one."""
    document = _facts(next(p for p in CONFIGS if p.name.startswith("incoai")))
    assert document["layers"] is None
    assert "unknown" in _object(_object(document["sources"])["layers"])


def test_unrecognised_config_has_every_field_null() -> None:
    """Something else altogether: the same fields, all null, all with the reason."""
    document = facts(parse_config(parse_raw(b'{"a": 1}', "test")))
    assert document["role"] is None
    assert document["unparsed"] == ["/a"]
    assert set(document) >= FIELDS


def test_problems_are_part_of_the_document() -> None:
    """A mistyped value is null, its reason in the sources, itself among the problems."""
    config = {"architectures": ["DFlashDraftModel"], "dflash_config": {"mask_token_id": "248070"}}
    document = facts(parse_config(parse_raw(json.dumps(config).encode(), "test")))
    assert document["mask_token_id"] is None
    assert document["problems"] == [
        {
            "kind": "mistyped",
            "pointer": "/dflash_config/mask_token_id",
            "line": 1,
            "expected": "an integer",
            "found": '"248070"',
        }
    ]
