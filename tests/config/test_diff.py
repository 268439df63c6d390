"""The laws of the typed diff, and every single change of a real config found at exactly its place."""

import json
import string
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from draftproof.config.diff import (
    BytesVerdict,
    Difference,
    Kind,
    apply,
    canonical,
    compare_bytes,
    diff,
    formatting_differences,
    invert,
    patch,
)
from draftproof.config.json.pointer import pointer_of, resolve
from draftproof.config.json.shown import holds_secret, mask_secrets, ranges, value_line
from draftproof.config.json.value import JsonValue, json_type
from draftproof.config.raw import RefusedConfig, parse_raw
from draftproof.printable import MASKED

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.json"))

_SCALARS: st.SearchStrategy[JsonValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 1e-6, 1e300]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=4),
    st.sampled_from(["1", "true", "null", "", "a/b", "~"]),
)
_KEYS = st.one_of(
    st.sampled_from(["a", "b", "", "a/b", "m~n", "0", "hf_token"]), st.text(string.printable, max_size=3)
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(_KEYS, VALUES, max_size=5)
LAWS = settings(max_examples=200, derandomize=True, deadline=None)


def in_order(differences: tuple[Difference, ...]) -> list[Difference]:
    """By pointer, since the order of the differences follows their first document."""
    return sorted(differences, key=lambda difference: difference.pointer)


@pytest.mark.property
@LAWS
@given(OBJECTS)
def test_reading_the_canonical_text_gives_the_value(value: dict[str, JsonValue]) -> None:
    """parse(print) is the identity, types included, and printing again changes nothing."""
    raw = parse_raw(canonical(value).encode(), "printed")
    assert canonical(raw.value) == canonical(value)
    assert diff(raw.value, value) == ()
    assert [json_type(v) for v in raw.value.values()] == [json_type(value[k]) for k in raw.value]


@pytest.mark.property
@LAWS
@given(VALUES, VALUES)
@example({"a": 1}, {"a": True})
@example({"a": 0.0}, {"a": -0.0})
@example([1, [2]], [1.0, [2]])
def test_no_difference_exactly_where_the_canonical_texts_agree(a: JsonValue, b: JsonValue) -> None:
    """The diff is empty if and only if the typed canonical texts are equal."""
    assert (diff(a, b) == ()) == (canonical(a) == canonical(b))


@pytest.mark.property
@LAWS
@given(VALUES)
def test_nothing_differs_from_itself(value: JsonValue) -> None:
    """A value agrees with itself and with its copy whose keys stand in another order."""
    reordered: JsonValue = json.loads(json.dumps(value, sort_keys=True))
    assert diff(value, value) == diff(value, reordered) == ()


@pytest.mark.property
@LAWS
@given(VALUES, VALUES)
def test_the_patch_leads_from_one_to_the_other(a: JsonValue, b: JsonValue) -> None:
    """apply(patch(diff(a, b)), a) is b by type and value, and ``a`` itself is left alone."""
    before = canonical(a)
    assert canonical(apply(patch(diff(a, b)), a)) == canonical(b)
    assert canonical(a) == before


@pytest.mark.property
@LAWS
@given(VALUES, VALUES)
def test_the_way_back_is_the_inversion(a: JsonValue, b: JsonValue) -> None:
    """diff(b, a) is diff(a, b) inverted, and its patch leads back."""
    assert in_order(diff(b, a)) == in_order(invert(diff(a, b)))
    assert canonical(apply(patch(invert(diff(a, b))), b)) == canonical(a)


@pytest.mark.property
@LAWS
@given(VALUES, VALUES)
def test_each_difference_is_where_it_says(a: JsonValue, b: JsonValue) -> None:
    """At its pointer each side holds the value and the type that the difference tells."""
    for difference in diff(a, b):
        for document, value, kind in (
            (a, difference.a, difference.a_type),
            (b, difference.b, difference.b_type),
        ):
            if kind == "absent":
                with pytest.raises(KeyError):
                    resolve(document, difference.pointer)
            else:
                assert canonical(resolve(document, difference.pointer)) == canonical(value)
                assert json_type(value) == kind


@pytest.mark.property
@LAWS
@given(OBJECTS, OBJECTS)
def test_masking_never_changes_the_verdict(a: dict[str, JsonValue], b: dict[str, JsonValue]) -> None:
    """Differences are found on the true values; only what is shown is masked, and then wholly."""
    for key in ("api_key", "HF_TOKEN"):
        with_a, with_b = {**a, key: "s3cret-a"}, {**b, key: "s3cret-b"}
        found = [d for d in diff(with_a, with_b) if d.pointer == f"/{key}"]
        assert [d.kind for d in found] == [Kind.VALUE]
        assert all(holds_secret(d.b, d.pointer) for d in found)
        for difference in diff(with_a, with_b):
            shown = canonical(mask_secrets(difference.a, difference.pointer))
            assert "s3cret" not in shown


def test_secrets_are_masked_at_any_depth() -> None:
    """A secret under a secret key is masked whatever its shape; null and token ids are not secrets."""
    value: JsonValue = {
        "auth": {"api_key": ["x", {"y": 1}], "hf_token": None},
        "mask_token": "<m>",
        "token_id": 5,
    }
    assert mask_secrets(value, "") == {
        "auth": {"api_key": [MASKED, {"y": MASKED}], "hf_token": None},
        "mask_token": "<m>",
        "token_id": 5,
    }
    assert mask_secrets("x", "/api_key/0") == MASKED


@pytest.mark.parametrize(
    ("a", "b", "kind", "indexes"),
    [
        ({"k": 1}, {}, Kind.REMOVED, ()),
        ({}, {"k": None}, Kind.ADDED, ()),
        ({"k": None}, {"k": 0}, Kind.NULL, ()),
        ({"k": False}, {"k": None}, Kind.NULL, ()),
        ({"k": 1}, {"k": 1.0}, Kind.TYPE, ()),
        ({"k": 1}, {"k": True}, Kind.TYPE, ()),
        ({"k": 1}, {"k": "1"}, Kind.TYPE, ()),
        ({"k": 0.0}, {"k": False}, Kind.TYPE, ()),
        ({"k": []}, {"k": {}}, Kind.TYPE, ()),
        ({"k": 0.0}, {"k": -0.0}, Kind.VALUE, ()),
        ({"k": "a"}, {"k": "A"}, Kind.VALUE, ()),
        ({"k": [1, 2, 3]}, {"k": [1, 5, 3]}, Kind.VALUE, (1,)),
        ({"k": [1, 2]}, {"k": [1, True]}, Kind.VALUE, (1,)),
        ({"k": [1, 2, 3]}, {"k": [3, 2, 1]}, Kind.REORDERED, (0, 2)),
        ({"k": [{"a": 1}, {"a": 2}]}, {"k": [{"a": 2}, {"a": 1}]}, Kind.REORDERED, (0, 1)),
        ({"k": [1, 2]}, {"k": [1, 2, 3]}, Kind.LENGTH, (2,)),
        ({"k": [1, 2, 3]}, {"k": [9]}, Kind.LENGTH, (0, 1, 2)),
        ({"k": []}, {"k": [{}]}, Kind.LENGTH, (0,)),
        ({"k": [1]}, {"k": [[1]]}, Kind.VALUE, (0,)),
        ({"k": [{"a": 1}, 2]}, {"k": [{"a": 1}, {}]}, Kind.VALUE, (1,)),
    ],
)
def test_each_difference_has_its_kind(
    a: JsonValue, b: JsonValue, kind: Kind, indexes: tuple[int, ...]
) -> None:
    """One change gives one difference of exactly its kind, with the indexes that differ."""
    (difference,) = diff(a, b)
    assert (difference.pointer, difference.kind, difference.indexes) == ("/k", kind, indexes)


@pytest.mark.parametrize(
    ("a", "b", "pointer"),
    [
        ({"k": [{"x": 1, "y": 2}, {"x": 3}]}, {"k": [{"x": 1, "y": 5}, {"x": 3}]}, "/k/0/y"),
        ({"k": [{"x": 1}, 7]}, {"k": [{"x": 1}, 8]}, "/k/1"),
        ({"k": [[1, 2], [3]]}, {"k": [[1, 2], [4]]}, "/k/1"),
        ({"k": [{"x": [{"y": 1}]}]}, {"k": [{"x": [{"y": 1.0}]}]}, "/k/0/x/0/y"),
        (1, "1", ""),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, "/a~1b/~0"),
        ({"": {"": 1}}, {"": {"": 2}}, "//"),
    ],
)
def test_a_change_inside_an_array_is_told_inside(a: JsonValue, b: JsonValue, pointer: str) -> None:
    """Where two arrays have the same shape the change is told at its own pointer."""
    assert [d.pointer for d in diff(a, b)] == [pointer]


def test_the_case_study_differs_in_five_fields() -> None:
    """The intended and the stale drafter config differ in exactly the five known fields."""
    intended, stale = (
        parse_raw((CONFIGS[0].parent / name).read_bytes(), name)
        for name in ("zlab-qwen3.6-27b-dflash.json", "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json")
    )
    assert [(d.pointer, d.kind) for d in diff(intended.value, stale.value)] == [
        ("/bos_token_id", Kind.NULL),
        ("/dflash_config/mask_token_id", Kind.VALUE),
        ("/dflash_config/target_layer_ids", Kind.VALUE),
        ("/layer_types", Kind.VALUE),
        ("/sliding_window", Kind.NULL),
    ]


# --- every single change of every real config

Mutation = tuple[str, str, JsonValue, Kind]
"""What was done, the pointer that must be told, the changed document, the kind that must be told."""


def _number_mutations(value: JsonValue) -> Iterator[tuple[str, JsonValue, Kind]]:
    if isinstance(value, bool):
        yield "to integer", int(value), Kind.TYPE
        yield "flipped", not value, Kind.VALUE
    elif isinstance(value, int):
        yield "+1", value + 1, Kind.VALUE
        yield "to float", float(value), Kind.TYPE
        yield "to bool", bool(value), Kind.TYPE
    elif isinstance(value, float):
        yield "doubled", value * 2 + 1, Kind.VALUE
        yield "to integer", int(value), Kind.TYPE


def _value_mutations(value: JsonValue) -> Iterator[tuple[str, JsonValue, Kind]]:
    """Changes of one value in its place."""
    yield "to null" if value is not None else "to zero", None if value is not None else 0, Kind.NULL
    yield from _number_mutations(value)
    if isinstance(value, str):
        yield "letter added", value + "x", Kind.VALUE
        yield "emptied", "", Kind.VALUE
    elif value is not None:
        yield "to string", json.dumps(value), Kind.TYPE
    if isinstance(value, list) and value:
        yield "last item twice", [*value, value[-1]], Kind.LENGTH
        yield "emptied", [], Kind.LENGTH
        if canonical(value) != canonical(value[::-1]):
            yield "reversed", value[::-1], Kind.REORDERED
        yield "wrapped", [value], Kind.LENGTH if len(value) > 1 else Kind.VALUE


def _changed(
    document: JsonValue, path: tuple[str | int, ...], change: Callable[[JsonValue], None]
) -> JsonValue:
    """A copy of the document after ``change`` was applied to the container at ``path``."""
    copied: JsonValue = json.loads(json.dumps(document))
    change(resolve(copied, pointer_of(path)))
    return copied


def _put(key: str | int, value: JsonValue) -> Callable[[JsonValue], None]:
    def change(holder: JsonValue) -> None:
        if isinstance(holder, dict):
            holder[str(key)] = value
        elif isinstance(holder, list):
            holder[int(key)] = value

    return change


def _drop(key: str) -> Callable[[JsonValue], None]:
    def change(holder: JsonValue) -> None:
        assert isinstance(holder, dict)
        del holder[key]

    return change


def mutations(document: JsonValue, value: JsonValue, path: tuple[str | int, ...]) -> Iterator[Mutation]:
    """Every single-key change below ``path``."""
    if not isinstance(value, dict):
        return
    yield "key added", pointer_of((*path, "new~/")), _changed(document, path, _put("new~/", None)), Kind.ADDED
    for key, item in value.items():
        pointer = pointer_of((*path, key))
        yield "removed", pointer, _changed(document, path, _drop(key)), Kind.REMOVED
        for name, changed, kind in _value_mutations(item):
            yield name, pointer, _changed(document, path, _put(key, changed)), kind
        if isinstance(item, dict) and len(item) > 1:
            yield "emptied", pointer, _changed(document, path, _put(key, {})), Kind.VALUE
        if isinstance(item, dict) and item:
            yield "to array", pointer, _changed(document, path, _put(key, [1])), Kind.TYPE
        yield from mutations(document, item, (*path, key))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_single_change_is_found_at_its_place(
    path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Each change of each key, at any depth, is one difference, at exactly its pointer, of its kind."""
    original = parse_raw(path.read_bytes(), path.name).value
    num_changes = 0
    for name, pointer, changed, kind in mutations(original, original, ()):
        found = diff(original, changed)
        assert [(d.pointer, d.kind) for d in found] == [(pointer, kind)], (name, pointer)
        assert canonical(apply(patch(found), original)) == canonical(changed)
        num_changes += 1
    record_property("n", num_changes)
    assert num_changes > 3 * len(original)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_renamed_key_is_one_removed_and_one_added(path: Path) -> None:
    """Renaming names both the key that is gone and the key that is new."""
    original = parse_raw(path.read_bytes(), path.name).value
    for key in original:
        renamed: dict[str, JsonValue] = {(k + "_x" if k == key else k): v for k, v in original.items()}
        told = {(d.pointer, d.kind) for d in diff(original, renamed)}
        assert told == {(f"/{key}", Kind.REMOVED), (f"/{key}_x", Kind.ADDED)}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_duplicated_key_is_refused_at_its_place(path: Path) -> None:
    """The twelfth change, a key written twice, is not for the diff: reading refuses it at its pointer."""
    text = path.read_text(encoding="utf-8")
    for key, value in parse_raw(path.read_bytes(), path.name).value.items():
        twice = text.rstrip()[:-1].rstrip() + f",{json.dumps(key)}:{json.dumps(value)}}}\n"
        with pytest.raises(RefusedConfig) as caught:
            parse_raw(twice.encode(), "twice")
        assert [(d.id, d.pointer) for d in caught.value.defects] == [("json-duplicate-key", f"/{key}")]


# --- bytes

_LF = b'{\n "a": 1,\n "b": "\xc3\xa9"\n}\n'


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        (_LF, BytesVerdict.IDENTICAL),
        (_LF.replace(b"\n", b"\r\n"), BytesVerdict.LINE_ENDINGS),
        (_LF.replace(b"\n", b"\r"), BytesVerdict.LINE_ENDINGS),
        (b"\xef\xbb\xbf" + _LF, BytesVerdict.BOM),
        (b"\xef\xbb\xbf" + _LF.replace(b"\n", b"\r\n"), BytesVerdict.BOM),
        (b'\xef\xbb\xbf{"a":1,"b":"\xc3\xa9"}', BytesVerdict.BOM),
        (_LF[:-1], BytesVerdict.FORMATTING),
        (b'{"b":"\\u00e9","a":1}', BytesVerdict.FORMATTING),
        (_LF.replace(b"1", b"1.0"), BytesVerdict.DIFFERS),
        (_LF.replace(b"1", b"2"), BytesVerdict.DIFFERS),
        (_LF[:-3], BytesVerdict.DIFFERS),
        (_LF.replace(b"\xc3\xa9", b"\xe9"), BytesVerdict.DIFFERS),
        (b"", BytesVerdict.DIFFERS),
    ],
)
def test_bytes_are_as_far_apart_as_they_are(other: bytes, verdict: BytesVerdict) -> None:
    """The least that explains the difference, the same both ways round."""
    assert compare_bytes(_LF, other) == compare_bytes(other, _LF) == verdict
    assert compare_bytes(parse_raw(_LF, "a"), other) == verdict


def test_a_refused_file_is_compared_too() -> None:
    """A file refused for its byte order mark alone is still told apart from one that differs."""
    with pytest.raises(RefusedConfig) as caught:
        parse_raw(b"\xef\xbb\xbf" + _LF, "bom")
    assert compare_bytes(parse_raw(_LF, "a"), caught.value) == BytesVerdict.BOM


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (b'{\n "b": "\xc3\xa9",\n "a": 1\n}\n', ("key order",)),
        (b'{"a":1,"b":"\xc3\xa9"}\n', ("blanks",)),
        (b'{\n "a": 1,\n "b": "\\u00e9"\n}\n', ("spelling of numbers or strings",)),
        (b'{"b":"\\u00e9","a":1}', ("key order", "spelling of numbers or strings", "blanks")),
    ],
)
def test_the_kind_of_formatting_is_told(other: bytes, told: tuple[str, ...]) -> None:
    """Key order, blanks and spelling are told apart."""
    assert formatting_differences(parse_raw(_LF, "a"), parse_raw(other, "b")) == told


# --- patches from elsewhere, and how values are shown


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "move", "path": "/a", "from": "/b"},
        {"op": "add", "path": "/a"},
        {"op": "replace", "path": 5, "value": 1},
    ],
)
def test_what_is_no_operation_of_ours_is_refused(operation: dict[str, JsonValue]) -> None:
    """Other operations and incomplete ones are errors, not silence."""
    with pytest.raises(ValueError, match="expected"):
        apply([operation], {"a": 1, "b": 2})


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/c"},
        {"op": "replace", "path": "/c", "value": 1},
        {"op": "replace", "path": "/a/7", "value": 1},
        {"op": "add", "path": "/a/7", "value": 1},
        {"op": "add", "path": "/b/x", "value": 1},
        {"op": "remove", "path": "/a/-"},
    ],
)
def test_an_operation_without_its_place_is_refused(operation: dict[str, JsonValue]) -> None:
    """A patch for another document does not half apply without a word."""
    with pytest.raises(KeyError):
        apply([operation], {"a": [1], "b": 2})


def test_array_operations_follow_the_standard() -> None:
    """Adding inserts before the index, ``-`` appends, removing closes the gap."""
    document: JsonValue = {"a": [1, 2]}
    added = apply(
        [{"op": "add", "path": "/a/0", "value": 0}, {"op": "add", "path": "/a/-", "value": 3}], document
    )
    assert added == {"a": [0, 1, 2, 3]}
    assert apply([{"op": "remove", "path": "/a/0"}], added) == {"a": [1, 2, 3]}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([1, 17, 33], "[1, 17, 33]"),
        (["full_attention"] * 60 + ["x"], '[60 x "full_attention", "x"]'),
        ("x" * 300, '"' + "x" * 96 + "... (300 characters)"),
        (None, "null"),
        ({"a": 1.0}, '{"a": 1.0}'),
    ],
)
def test_values_are_shown_on_one_line(value: JsonValue, shown: str) -> None:
    """Runs are counted and long values cut, with their size."""
    assert value_line(value) == shown


@pytest.mark.parametrize(
    ("indexes", "shown"), [((), ""), ((3,), "3"), ((0, 1, 2, 5), "0-2, 5"), ((1, 3, 4), "1, 3-4")]
)
def test_indexes_are_shown_as_ranges(indexes: tuple[int, ...], shown: str) -> None:
    """Neighbours become a range."""
    assert ranges(indexes) == shown
