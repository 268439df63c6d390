"""errors: every error says five things and leaves with a documented status."""

import inspect
import re

from draftproof import errors
from draftproof.errors import EXIT_CODES, CouldNotLook, DraftproofError


def tree() -> list[type[DraftproofError]]:
    """Every error class of the module."""
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, DraftproofError)]
    return [c for c in classes if c is not DraftproofError]


def test_every_error_leaves_with_a_documented_status() -> None:
    """No class invents an exit code, and no two share an id."""
    assert tree()
    assert {c.exit_code for c in tree()} <= set(EXIT_CODES)
    assert len({c.id for c in tree()}) == len(tree())


def test_the_drawn_tree_is_the_real_one() -> None:
    """The drawing at the top of the module names every class with its id and status."""
    drawn = dict(re.findall(r"-- (\w+)\s+(\S+\s+\d+)", errors.__doc__ or ""))
    assert {c.__name__: f"{c.id} {c.exit_code}" for c in tree()} == {
        name: re.sub(r"\s+", " ", rest) for name, rest in drawn.items()
    }


def test_text_and_json_say_the_same() -> None:
    """The dictionary holds every part the message is made of."""
    error = CouldNotLook("x", expected="a file", found="none", where="/x", means="m", next_step="n")
    assert error.as_dict() == {
        "id": "could-not-look",
        "exit": 3,
        "subject": "x",
        "expected": "a file",
        "found": "none",
        "where": "/x",
        "means": "m",
        "next": "n",
    }
    assert str(error) == "could-not-look x: expected a file, found none"
