"""config.view: values at one layer, each with its source."""

import json

import pytest

from draftproof.config.json.value import JsonValue
from draftproof.config.raw import parse_raw
from draftproof.config.source import Written
from draftproof.config.view import leaves, same_json, view_of_raw
from draftproof.names import Layer

TEXT = '{\n "a": 1,\n "b": {"c": [1, 2], "d/e": null},\n "f": {}\n}\n'


def test_objects_are_opened_and_lists_are_leaves() -> None:
    """Every value has one path; a list and an empty object are values of their own."""
    assert list(leaves(json.loads(TEXT))) == [
        (("a",), 1),
        (("b", "c"), [1, 2]),
        (("b", "d/e"), None),
        (("f",), {}),
    ]


def test_a_raw_file_is_a_view_with_lines() -> None:
    """Each entry says where in the file it stands, by escaped pointer and line."""
    view = view_of_raw(parse_raw(TEXT.encode(), "x.json"), Layer.BYTES)
    assert {pointer: entry.source for pointer, entry in view.entries.items()} == {
        "/a": Written("/a", 2),
        "/b/c": Written("/b/c", 3),
        "/b/d~1e": Written("/b/d~1e", 3),
        "/f": Written("/f", 4),
    }
    assert (view.layer, view.subject) == (Layer.BYTES, "x.json")


@pytest.mark.parametrize("other", [1.0, True, "1", [1], None, {"1": 1}])
def test_a_value_of_another_type_is_another_value(other: JsonValue) -> None:
    """1 is neither 1.0 nor true nor "1", alone or inside a list."""
    assert same_json(1, 1)
    assert not same_json(1, other)
    assert not same_json([[1]], [[other]])
