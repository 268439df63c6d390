"""Values of an answer that has an agreed form: each of its type, or TypeError with what was found."""

from draftproof.config.raw import JsonValue

__all__ = ["a_count", "a_flag", "a_text", "an_object", "objects", "texts"]


def objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    """A list of objects."""
    if not isinstance(value, list):
        raise TypeError(f"a list was agreed, not {value!r}")
    return [an_object(one) for one in value]


def an_object(value: object) -> dict[str, JsonValue]:
    """An object."""
    if not isinstance(value, dict):
        raise TypeError(f"an object was agreed, not {value!r}")
    return value


def texts(value: JsonValue) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise TypeError(f"a list was agreed, not {value!r}")
    return tuple(map(a_text, value))


def a_text(value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"a text was agreed, not {value!r}")
    return value


def a_count(value: JsonValue) -> int:
    """A whole number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a whole number was agreed, not {value!r}")
    return value


def a_flag(value: JsonValue) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise TypeError(f"true or false was agreed, not {value!r}")
    return value
