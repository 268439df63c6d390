"""RFC 6901 pointers: written, split and followed."""

import re
from collections.abc import Sequence

from draftproof.config.json.value import JsonValue

__all__ = ["below", "pointer_of", "resolve", "split_pointer"]

_INDEX = re.compile(r"0|[1-9][0-9]*")
_BARE_TILDE = re.compile(r"~(?![01])")


def pointer_of(parts: Sequence[str | int]) -> str:
    """The pointer of keys and indexes from the root down; ``""`` is the root itself."""
    return "".join(below("", part) for part in parts)


def below(pointer: str, part: str | int) -> str:
    """The pointer one step down from ``pointer``."""
    return f"{pointer}/{str(part).replace('~', '~0').replace('/', '~1')}"


def split_pointer(pointer: str) -> tuple[str, ...]:
    """The unescaped parts of a pointer; an index stays text, since ``/0`` may also be a key.

    Raises:
        ValueError: the text is not a pointer (no leading slash, a tilde that escapes nothing).
    """
    if not pointer:
        return ()
    if not pointer.startswith("/") or _BARE_TILDE.search(pointer):
        raise ValueError(f"expected an RFC 6901 pointer, found {pointer!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def resolve(value: JsonValue, pointer: str) -> JsonValue:
    """The value at ``pointer``; a written null is a value. Raises KeyError where there is none."""
    here = value
    for part in split_pointer(pointer):
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and _INDEX.fullmatch(part) and int(part) < len(here):
            here = here[int(part)]
        else:
            raise KeyError(pointer)
    return here
