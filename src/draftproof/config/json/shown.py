"""JSON values for people: runs counted, long things cut, secrets never shown."""

import json
from collections.abc import Sequence
from itertools import groupby

from draftproof.config.json.diff import canonical
from draftproof.config.json.pointer import split_pointer
from draftproof.config.json.value import JsonValue, json_type
from draftproof.printable import MASKED, is_secret_key

__all__ = ["holds_secret", "mask_secrets", "ranges", "value_line"]

_WIDTH = 100
_FEW_ITEMS = 8


def holds_secret(value: JsonValue, pointer: str) -> bool:
    """Whether the pointer runs through a secret key, or the value holds one."""
    return canonical(mask_secrets(value, pointer)) != canonical(value)


def mask_secrets(value: JsonValue, pointer: str) -> JsonValue:
    """The value with every secret replaced, at any depth; containers keep their shape."""
    return _masked(value, is_secret=any(is_secret_key(part) for part in split_pointer(pointer)))


def _masked(value: JsonValue, *, is_secret: bool) -> JsonValue:
    if isinstance(value, dict):
        return {k: _masked(v, is_secret=is_secret or is_secret_key(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_masked(item, is_secret=is_secret) for item in value]
    # A null is no secret: that a credential is missing is worth seeing.
    return MASKED if is_secret and value is not None else value


def value_line(value: JsonValue) -> str:
    """The value on one line; runs of equal items counted, cut at about 100 characters."""
    if isinstance(value, list) and len(value) > 1:
        text = _array_line(value)
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}... ({_size(value)})"


def _array_line(items: list[JsonValue]) -> str:
    plain = json.dumps(items, ensure_ascii=False)
    runs = [(len(list(group)), text) for text, group in groupby(items, key=canonical)]
    if len(items) <= _FEW_ITEMS and len(plain) < _WIDTH // 2:
        return plain
    if len(runs) == len(items):
        return plain
    told = (f"{count} x {text}" if count > 1 else text for count, text in runs)
    return f"[{', '.join(told)}]"


def _size(value: JsonValue) -> str:
    if isinstance(value, str):
        return f"{len(value)} characters"
    return f"{json_type(value)} of {len(value)}" if isinstance(value, list | dict) else json_type(value)


def ranges(indexes: Sequence[int]) -> str:
    """Rising indexes as ranges: ``0-3, 7``."""
    told: list[str] = []
    start = previous = None
    for index in [*indexes, None]:
        if previous is not None and index == previous + 1:
            previous = index
            continue
        if start is not None:
            told.append(f"{start}" if start == previous else f"{start}-{previous}")
        start = previous = index
    return ", ".join(told)
