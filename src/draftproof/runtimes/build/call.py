"""Call: one use of a native operator in the package's own source."""

from dataclasses import dataclass

from draftproof.config.raw import JsonValue
from draftproof.runtimes.agreed import a_count, a_text, objects, texts

__all__ = ["Call", "read_calls"]


@dataclass(frozen=True, slots=True)
class Call:
    """What is called, where, and what is passed."""

    operator: str
    """``SPACE::NAME``."""

    file: str
    line: int
    positional: int
    """How many arguments by position."""

    keywords: tuple[str, ...]


def read_calls(value: JsonValue) -> tuple[Call, ...]:
    """The calls of an answer. Raises KeyError or TypeError where it is not of the agreed form."""
    return tuple(
        Call(
            a_text(one["operator"]),
            a_text(one["file"]),
            a_count(one["line"]),
            a_count(one["positional"]),
            texts(one["keywords"]),
        )
        for one in objects(value)
    )
