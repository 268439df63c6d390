"""config.reader: typed values with their place, nothing coerced, nothing dropped."""

import json

import pytest

from draftproof.config.problem import ProblemKind
from draftproof.config.raw import JsonValue, parse_raw
from draftproof.config.reader import Reader
from draftproof.config.source import Unknown, Written


def _reader(value: dict[str, JsonValue]) -> Reader:
    return Reader(parse_raw(json.dumps(value, indent=1).encode(), "test"))


@pytest.mark.parametrize("wrong", ["5120", 5120.0, True, [5120], {"a": 1}])
def test_integer_is_never_coerced(wrong: JsonValue) -> None:
    """Text, floats, booleans and containers are no integers, however much they look like one."""
    read = _reader({"a": 0, "hidden_size": wrong})
    said = read.integer("hidden_size")
    assert said.value is None
    assert isinstance(said.source, Unknown)
    [problem] = read.problems
    assert (problem.kind, problem.pointer, problem.line) == (ProblemKind.MISTYPED, "/hidden_size", 3)
    assert problem.expected == "an integer"


@pytest.mark.parametrize("right", [10000000, 1e7])
def test_number_takes_integers_and_floats_as_written(right: float) -> None:
    """A rope theta may be written either way, and keeps its type."""
    said = _reader({"rope_theta": right}).number("rope_theta")
    assert said.value == right
    assert type(said.value) is type(right)
    assert said.source == Written("/rope_theta", 2)


def test_boolean_is_not_a_number_and_one_is_not_true() -> None:
    """1 is no boolean and true no number."""
    read = _reader({"a": 1, "b": True})
    assert read.boolean("a").value is None
    assert read.number("b").value is None
    assert len(read.problems) == 2


def test_written_null_differs_from_absence() -> None:
    """A written null has a place; an absent key has a reason."""
    read = _reader({"a": None})
    assert read.integer("a").source == Written("/a", 2)
    assert read.integer("b").source == Unknown("the file does not say: no /b")


def test_first_path_that_is_not_null_wins() -> None:
    """A null gives way to the next place; the value keeps the place it came from."""
    read = _reader({"a": None, "b": {"c": 7}})
    assert read.integer("a", "b/c").source == Written("/b/c", 4)


def test_differing_places_are_a_conflict_at_the_one_that_loses() -> None:
    """Two places with different values are told; equal ones are not."""
    read = _reader({"a": 1, "b": 2, "c": 1})
    assert read.integer("a", "b", "c").value == 1
    [problem] = read.problems
    assert (problem.kind, problem.pointer, problem.expected, problem.found) == (
        ProblemKind.CONFLICT,
        "/b",
        "1",
        "2",
    )


def test_lists_are_typed_item_by_item() -> None:
    """One wrong item makes the whole list unknown, and is shown."""
    read = _reader({"ids": [1, True, 3], "words": ["a", 2]})
    assert read.integers("ids").value is None
    assert read.strings("words").value is None
    assert [p.pointer for p in read.problems] == ["/ids", "/words"]


def test_object_of_another_type_reads_as_empty_and_is_a_problem() -> None:
    """A string where an object belongs hides nothing: it is told, and its fields are absent."""
    read = _reader({"dflash_config": "oops"})
    assert read.within("dflash_config").integer("block_size").value is None
    assert [p.pointer for p in read.problems] == ["/dflash_config"]


def test_unread_names_subtrees_by_their_root() -> None:
    """What nobody asked for is listed in file order, a whole subtree once."""
    read = _reader({"a": {"b": 1, "c": {"d": 2}}, "e": [], "f": None, "g/h~": 1})
    read.integer("a/b")
    assert read.unread() == ("/a/c", "/e", "/f", "/g~1h~0")


def test_collect_prefers_the_first_home_and_names_a_difference() -> None:
    """The same key in two homes is read twice, told where it differs."""
    read = _reader({"x": {"emb_dim": 1}, "emb_dim": 2})
    assert read.collect(("emb_dim",), ("x", ""))["emb_dim"].value == 1
    assert [(p.kind, p.pointer) for p in read.problems] == [(ProblemKind.CONFLICT, "/emb_dim")]
    assert read.unread() == ()
