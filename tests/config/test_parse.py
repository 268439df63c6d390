"""config.parse: every real file is recognised by its fields, and every one of its leaves is accounted for."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.config.coverage import covers, leaves, written_pointers
from draftproof.config.drafter import DrafterConfig
from draftproof.config.facts import facts
from draftproof.config.json.pointer import split_pointer
from draftproof.config.parse import (
    Parsed,
    UnrecognisedConfig,
    find_config,
    parse_config,
    require_recognised,
)
from draftproof.config.raw import JsonValue, RawConfig, parse_raw
from draftproof.config.target import TargetConfig
from draftproof.errors import CouldNotLook, RefusedInput
from unprivileged import without_privileges

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.json"))
GRADES = json.loads((Path(__file__).parents[1] / "config_grades.json").read_text())["grades"]

TYPES = ("qwen3", "qwen3_next", "gemma2", "gemma4_text", "gpt_oss", "deepseek_v3", "llama", "mistral")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.sampled_from([10**400, -(10**400), 2**63])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
KNOWN_KEYS = (
    "architectures",
    "model_type",
    "dflash_config",
    "dspark_config",
    "eagle_config",
    "text_config",
    "transformer_layer_config",
    "speculators_config",
    "speculators_model_type",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "layer_types",
    "target_layer_ids",
    "num_hidden_layers",
    "num_target_layers",
    "block_size",
    "sliding_window",
    "use_sliding_window",
    "num_experts",
    "hidden_size",
    "num_attention_heads",
    "mtp_num_hidden_layers",
    "proposal_methods",
)


def _raw(value: dict[str, JsonValue]) -> RawConfig:
    return parse_raw(json.dumps(value, indent=1).encode(), "test")


def _unaccounted(raw: RawConfig, parsed: Parsed) -> list[str]:
    told = written_pointers(parsed.config) | set(parsed.unparsed) | set(parsed.superseded)
    told |= {problem.pointer for problem in parsed.problems}
    return [leaf for leaf in leaves(raw.value) if not covers(frozenset(told), leaf)]


def test_there_are_as_many_files_as_grades() -> None:
    """No shared config is left out of these tests."""
    assert len(CONFIGS) == len(GRADES) == 42


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_real_file_is_recognised(path: Path) -> None:
    """Files of targets are targets, all others drafters."""
    config = parse_config(parse_raw(path.read_bytes(), str(path))).config
    assert isinstance(config, TargetConfig if "target" in path.name else DrafterConfig)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_every_leaf_of_a_real_file_is_accounted_for(path: Path) -> None:
    """A leaf is the source of a value, unparsed, superseded or a problem: nothing is dropped unnamed."""
    raw = parse_raw(path.read_bytes(), str(path))
    assert _unaccounted(raw, parse_config(raw)) == []


@pytest.mark.parametrize("path", [p for p in CONFIGS if GRADES[p.name] in "VN"], ids=lambda p: p.stem)
def test_clean_drafter_files_are_read_whole_and_without_problems(path: Path) -> None:
    """Nothing of a complete drafter file is unknown to its dialect, and nothing in it is in conflict."""
    parsed = parse_config(parse_raw(path.read_bytes(), str(path)))
    assert parsed.problems == ()
    if isinstance(parsed.config, DrafterConfig):
        assert parsed.unparsed == ()


@pytest.mark.property
@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.dictionaries(st.sampled_from(KNOWN_KEYS) | st.text(max_size=5), JSON, max_size=8),
    st.sampled_from(TYPES) | st.none(),
)
def test_any_object_is_parsed_and_accounted_for(value: dict[str, JsonValue], model_type: str | None) -> None:
    """No JSON object makes the parser fail or lose a leaf, however little sense it makes."""
    raw = _raw(value if model_type is None else value | {"model_type": model_type})
    parsed = parse_config(raw)
    assert _unaccounted(raw, parsed) == []
    json.dumps(facts(parsed), allow_nan=False)


@pytest.mark.property
@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.sampled_from(CONFIGS), st.integers(0, 10**6), JSON)
def test_any_leaf_of_a_real_file_may_hold_anything(path: Path, pick: int, value: JsonValue) -> None:
    """One value of a real file replaced by any other JSON: still parsed, still all accounted for."""
    config: dict[str, JsonValue] = json.loads(path.read_text())
    places = list(leaves(config))
    _replace(config, split_pointer(places[pick % len(places)]), value)
    raw = _raw(config)
    parsed = parse_config(raw)
    assert _unaccounted(raw, parsed) == []
    json.dumps(facts(parsed), allow_nan=False)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_unknown_keys_are_listed_as_unparsed(path: Path) -> None:
    """A key that nobody reads appears in ``unparsed`` with its pointer, and changes nothing else."""
    config: dict[str, JsonValue] = json.loads(path.read_text())
    before = parse_config(_raw(config))
    after = parse_config(_raw({**config, "zz_unheard_of": {"a": [1]}}))
    assert after.unparsed == (*before.unparsed, "/zz_unheard_of")
    assert after.config == before.config


def test_recognition_does_not_depend_on_the_name_of_the_file() -> None:
    """The same bytes under a misleading name are the same config."""
    data = next(p for p in CONFIGS if "domino" in p.name).read_bytes()
    assert parse_config(parse_raw(data, "eagle3.json")) == parse_config(parse_raw(data, "qwen-target.json"))


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": 1},
        {"architectures": ["BertForMaskedLM"], "hidden_size": 8, "num_hidden_layers": 2},
        {"version": "1.0", "model": {"type": "BPE"}},
    ],
)
def test_config_of_something_else_is_unrecognised(value: dict[str, JsonValue]) -> None:
    """Neither drafter nor target: said, and refused where one is needed."""
    parsed = parse_config(_raw(value))
    assert isinstance(parsed.config, UnrecognisedConfig)
    with pytest.raises(RefusedInput) as caught:
        require_recognised(parsed, "x")
    assert "dflash_config" in caught.value.means


def test_find_config_takes_a_directory_or_a_file(tmp_path: Path) -> None:
    """A directory stands for its config.json; a file for itself."""
    inside = tmp_path / "config.json"
    inside.write_text("{}")
    assert find_config(tmp_path) == find_config(inside) == inside


def test_find_config_says_what_is_missing(tmp_path: Path) -> None:
    """No such path, and a directory without config.json, could not be looked at."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(CouldNotLook) as caught:
            find_config(path)
        assert caught.value.exit_code == 3


@pytest.mark.parametrize("given", ["n" * 300, "d/" + "n" * 300, "nul\0", "loop", "loop/config.json", "link"])
def test_find_config_never_stumbles_over_a_path(given: str, tmp_path: Path) -> None:
    """Names too long, a NUL inside, links in a circle or to nothing: each could not be looked at."""
    (tmp_path / "d").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(CouldNotLook) as caught:
        find_config(tmp_path / given)
    assert (given == "link") == ("a link to nothing" in caught.value.found)


def test_find_config_where_one_may_not_go(tmp_path: Path) -> None:
    """A directory that may not be entered is not an empty one: the reason is told."""
    (tmp_path / "config.json").write_text("{}")
    tmp_path.chmod(0o600)
    with without_privileges(), pytest.raises(CouldNotLook, match="Permission denied"):
        find_config(tmp_path)
    tmp_path.chmod(0o700)


def _replace(config: JsonValue, parts: tuple[str, ...], value: JsonValue) -> None:
    here = config
    for part in parts[:-1]:
        here = here[part] if isinstance(here, dict) else _item(here, part)
    if isinstance(here, dict):
        here[parts[-1]] = value
    elif isinstance(here, list):
        here[int(parts[-1])] = value


def _item(here: JsonValue, part: str) -> JsonValue:
    assert isinstance(here, list)
    return here[int(part)]
