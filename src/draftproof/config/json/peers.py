"""What other JSON readers make of a fault, so that a user learns which engine would have swallowed it.

Readers, as called by those who load configs:

- ``json``: ``json.loads`` of text read as UTF-8 (transformers, SGLang, vLLM's own config reading);
- ``orjson`` and ``msgspec``: ``loads``/``decode`` of the bytes (API servers, message passing);
- ``pydantic-core``: ``from_json`` of the bytes (request models of vLLM and SGLang).

Each statement is about one fault alone: a reader that survives it may still stop at another.
Source: each statement is held against CPython 3.11 json, orjson 3.13, msgspec 0.23 and pydantic-core
2.50 by tests/config/test_json_peers.py.
"""

import re

from draftproof.config.json.value import JsonValue, json_type

__all__ = [
    "MAX_INT_DIGITS",
    "PEERS",
    "all_read",
    "all_refuse",
    "depth_readers",
    "infinite_readers",
    "integer_readers",
    "json_alone_reads",
    "nesting_depth",
    "not_an_object_readers",
]

PEERS = ("json", "orjson", "msgspec", "pydantic-core")

MAX_INT_DIGITS = 4300
"""CPython's default limit on text to int; json, msgspec and pydantic-core all stop there too."""

_INT64_MIN = -(2**63)
_UINT64_MAX = 2**64 - 1

# Measured: pydantic-core stops at 202 nested containers, orjson at 1025; json and msgspec stop where the
# caller's Python stack (1000 frames by default) has no room left.
_PYDANTIC_DEPTH = 201
_ORJSON_DEPTH = 1024
_STACK_SAFE = 900
_STACK_SURELY_GONE = 5000

_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}


def all_refuse(why: str = "refuses") -> dict[str, str]:
    """None of the readers takes it."""
    return dict.fromkeys(PEERS, why)


def all_read(what: str) -> dict[str, str]:
    """Every reader takes it, in the same way."""
    return dict.fromkeys(PEERS, what)


def json_alone_reads(what: str) -> dict[str, str]:
    """Only the standard library takes it."""
    return all_refuse() | {"json": what}


def infinite_readers(shown: str) -> dict[str, str]:
    """NaN, Infinity and floats beyond the double range: a float in json and pydantic-core."""
    return all_refuse() | {"json": f"reads {shown}", "pydantic-core": f"reads {shown}"}


def integer_readers(number: int) -> dict[str, str] | None:
    """How an integer outside 64 bits is read; None where every reader keeps it exactly."""
    if _INT64_MIN <= number <= _UINT64_MAX:
        return None
    try:
        orjson = f"reads the float {float(number)!r}"
    except OverflowError:  # it rounds to no finite double
        orjson = "refuses"
    return all_read("reads it exactly") | {"orjson": orjson}


def nesting_depth(text: str) -> int:
    """How many containers stand inside one another at the deepest place; brackets in strings do not count."""
    depth = deepest = 0
    for match in _STRUCTURE.finditer(text):
        depth += _STEPS.get(match.group(), 0)
        deepest = max(deepest, depth)
    return deepest


def depth_readers(depth: int) -> dict[str, str]:
    """How ``depth`` nested containers are read."""
    if depth <= _STACK_SAFE:
        stack = "reads it"
    elif depth < _STACK_SURELY_GONE:
        stack = "depends on the caller's stack: reads it or stops with RecursionError"
    else:
        stack = "refuses with RecursionError"
    return {
        "json": stack,
        "orjson": "reads it" if depth <= _ORJSON_DEPTH else "refuses",
        "msgspec": stack,
        "pydantic-core": "reads it" if depth <= _PYDANTIC_DEPTH else "refuses",
    }


def not_an_object_readers(value: JsonValue) -> dict[str, str]:
    """A top level that is no object is still JSON; who expects keys fails later, elsewhere."""
    return all_read(f"reads the {json_type(value)}")
