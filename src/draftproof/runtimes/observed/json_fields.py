"""Fields of a server's answer, taken only as what they must be."""

import json
import math
from collections.abc import Mapping

from draftproof.config.raw import JsonValue
from draftproof.errors import CouldNotLook

__all__ = ["MOST", "count_of", "counts_of", "json_of", "number_of"]

MOST = 1_000_000
"""Entries of a list of counts."""

_EXACT = 2**53
_SHOWN = 80


def json_of(text: str, where: str) -> JsonValue:
    """The one JSON value of a text.

    Raises:
        CouldNotLook: it is none, or nested too deeply to be an answer.
    """
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CouldNotLook(
            "answer",
            expected="one JSON value",
            found=f"{text[:_SHOWN]!r}",
            where=where,
            means="the answer is not one of the API; nothing of it is used",
            next_step="look at the address with a browser",
        ) from error
    return value


def count_of(said: Mapping[str, JsonValue], key: str, where: str) -> int:
    """A whole number, 0 or more. Raises CouldNotLook for anything else."""
    value = said.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _EXACT:
        raise _unfit(key, "a whole number, 0 or more", value, where)
    return value


def number_of(said: Mapping[str, JsonValue], key: str, where: str) -> float:
    """A finite number. Raises CouldNotLook for anything else."""
    value = said.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _unfit(key, "a finite number", value, where)
    return float(value)


def counts_of(said: Mapping[str, JsonValue], key: str, where: str) -> list[int]:
    """A list of whole numbers, 0 or more. Raises CouldNotLook for anything else."""
    value = said.get(key)
    if not isinstance(value, list) or len(value) > MOST:
        raise _unfit(key, f"a list of at most {MOST} counts", value, where)
    counts = []
    for number in value:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _EXACT:
            raise _unfit(key, "whole numbers, 0 or more", number, where)
        counts.append(number)
    return counts


def _unfit(key: str, expected: str, value: JsonValue, where: str) -> CouldNotLook:
    return CouldNotLook(
        key,
        expected=expected,
        found="nothing" if value is None else json.dumps(value)[:_SHOWN],
        where=where,
        means="the figure cannot be used, and none is put in its place",
        next_step="report it to the engine, with the answer",
    )
