"""What is said of other readers is true: held against the readers themselves."""

import json
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import orjson
import pydantic_core
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from draftproof.config.json.peers import depth_readers
from draftproof.config.json.pointer import resolve
from draftproof.config.json.value import Defect, JsonValue, value_shown
from draftproof.config.raw import DEFECTS, RefusedConfig, parse_raw

Case = tuple[str, bytes, tuple[str, ...]]
Reader = Callable[[bytes], JsonValue]

_HERE = Path(__file__)
CASES: Sequence[Case] = runpy.run_path(str(_HERE.with_name("torture_corpus.py")))["CASES"]
CONFIGS = sorted((_HERE.parents[1] / "configs").glob("*.json"))


def _json(data: bytes) -> JsonValue:
    value: JsonValue = json.loads(data.decode("utf-8"))
    return value


PEERS: dict[str, Reader] = {
    "json": _json,
    "orjson": orjson.loads,
    "msgspec": msgspec.json.decode,
    "pydantic-core": pydantic_core.from_json,
}
REFUSALS = (ValueError, RecursionError, msgspec.MsgspecError)


def outcome(reader: Reader, data: bytes) -> tuple[bool, JsonValue]:
    """Whether the reader takes the bytes, and its value."""
    try:
        return True, reader(data)
    except REFUSALS:
        return False, None


def named(data: bytes) -> tuple[Defect, ...]:
    """Every defect or oddity of the bytes."""
    try:
        return parse_raw(data, "case").oddities
    except RefusedConfig as refused:
        return refused.defects


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize(("name", "data", "ids"), CASES, ids=[case[0] for case in CASES])
def test_each_statement_is_true(name: str, data: bytes, ids: tuple[str, ...], peer: str) -> None:
    """A reader takes the file exactly where no defect says it refuses, with the value that is told."""
    defects = named(data)
    statements = [(defect, defect.readers[peer]) for defect in defects]
    takes, value = outcome(PEERS[peer], data)
    if any("depends on the caller's stack" in told for _, told in statements):
        return
    assert takes == all(not told.startswith("refuses") for _, told in statements), (name, ids, statements)
    for defect, told in statements:
        for lead in ("keeps the last: ", "reads the float ", "reads nan", "reads inf", "reads -inf"):
            if takes and told.startswith(lead):
                shown = (
                    told.removeprefix("keeps the last: ")
                    .removeprefix("reads the float ")
                    .removeprefix("reads ")
                )
                assert shown in (value_shown(resolve(value, defect.pointer), defect.pointer), told)


@pytest.mark.parametrize("depth", [65, 201, 202, 500, 900, 1025, 5000, 100_000])
@pytest.mark.parametrize("peer", PEERS)
def test_depth_statements_are_true(peer: str, depth: int) -> None:
    """What is said of nested containers holds from 65 deep to 100000; the stack's own limit is left open."""
    told = depth_readers(depth)[peer]
    takes, _ = outcome(PEERS[peer], b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1))
    if "depends" not in told:
        assert takes == (told == "reads it")


def same(a: JsonValue, b: JsonValue) -> bool:
    """Equal in type and value."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def differential(data: bytes) -> None:
    """Ours takes what all take and nothing that one of them reads otherwise, big integers in orjson apart."""
    results = {name: outcome(reader, data) for name, reader in PEERS.items()}
    try:
        raw = parse_raw(data, "case")
    except RefusedConfig as refused:
        ids = {defect.id for defect in refused.defects}
        if all(takes for takes, _ in results.values()):
            # What every reader takes and we do not: silent loss, or no config, or our own limits.
            assert ids & {"json-duplicate-key", "json-not-an-object", "json-too-deep"}, ids
        assert all(DEFECTS[defect_id].severity == "error" for defect_id in ids)
        return
    big = {d.pointer for d in raw.oddities if d.id == "json-integer-beyond-64-bits"}
    for name, (takes, value) in results.items():
        if name == "orjson" and big:
            continue
        assert takes, name
        assert same(value, raw.value), name


_PUNCTUATION = ("{", "}", "[", "]", ",", ":", '"', "'", "-", "//", "#", "\\", "\n", "\r\n", " ", "\t")
_HIDDEN = ("\x00", "\x1b", "\ufeff", "\u00a0", "\u00e9", "\\u0041", "\\ud800")
_WORDS = (
    *('"a"', '"b":', "{}", "[]", '{"a":1}', "null", "true", "tru", "NaN", "Infinity", "EOF", "$x"),
    *("0", "1", "1.5", "1e9", "1e999", "1e-400", "01", "+1", "999999999999999999999"),
)
_SCRAPS = st.sampled_from([*_PUNCTUATION, *_HIDDEN, *_WORDS])


@pytest.mark.property
@settings(max_examples=1000, derandomize=True, deadline=None)
@given(st.lists(_SCRAPS, max_size=14).map("".join))
@example('{"a":1e-400}')
def test_scraps_of_json_are_judged_as_the_readers_judge(text: str) -> None:
    """On texts pasted from tokens ours never takes what a reader refuses, and never crashes."""
    differential(text.encode("utf-8"))
    differential(f'{{"a":{text}}}'.encode())


@pytest.mark.property
@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.sampled_from(CONFIGS), st.integers(0, 5000), st.binary(max_size=3), st.integers(0, 3))
def test_a_config_with_a_spliced_place_is_judged_as_the_readers_judge(
    path: Path, at: int, put: bytes, cut: int
) -> None:
    """Real configs with a few bytes replaced anywhere: same verdict, same values."""
    data = path.read_bytes()
    at %= len(data)
    differential(data[:at] + put + data[at + cut :])


@pytest.mark.parametrize(
    ("a", "b"), [({"a": 1}, {"a": 1.0}), ({"a": 1}, {"a": True}), ({"a": 1}, {}), ([1], [1, 1])]
)
def test_the_comparison_of_readers_can_fail(a: JsonValue, b: JsonValue) -> None:
    """Values that differ in type alone are not taken for the same."""
    assert not same(a, b)
