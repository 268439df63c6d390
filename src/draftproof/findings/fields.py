"""Fields of a raw file by pointer: whether it says something, and what."""

from collections.abc import Sequence

from draftproof.config.drafter import DrafterConfig
from draftproof.config.json.pointer import resolve
from draftproof.config.raw import JsonValue, RawConfig

__all__ = ["first_written", "integer_at", "layer_base", "says", "text_at", "texts_at", "true_at", "value_at"]


def says(raw: RawConfig, pointer: str) -> bool:
    """Whether the file holds anything at ``pointer``, null included."""
    return pointer in raw.positions


def value_at(raw: RawConfig, pointer: str) -> JsonValue:
    """The value at ``pointer``. Raises KeyError where there is none."""
    return resolve(raw.value, pointer)


def first_written(raw: RawConfig, pointers: Sequence[str]) -> str | None:
    """The first of ``pointers`` that the file holds."""
    return next((pointer for pointer in pointers if says(raw, pointer)), None)


def integer_at(raw: RawConfig, pointer: str) -> int | None:
    """The integer at ``pointer``; None where there is none (``true`` is not an integer)."""
    value = value_at(raw, pointer) if says(raw, pointer) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text_at(raw: RawConfig, pointer: str) -> str | None:
    """The string at ``pointer``; None where there is none."""
    value = value_at(raw, pointer) if says(raw, pointer) else None
    return value if isinstance(value, str) else None


def texts_at(raw: RawConfig, pointer: str) -> list[str] | None:
    """The list of strings at ``pointer``; None where there is none or it holds anything else."""
    value = value_at(raw, pointer) if says(raw, pointer) else None
    if not isinstance(value, list):
        return None
    texts = [item for item in value if isinstance(item, str)]
    return texts if len(texts) == len(value) else None


def true_at(raw: RawConfig, pointer: str) -> bool:
    """Whether ``true`` itself stands at ``pointer``."""
    return says(raw, pointer) and value_at(raw, pointer) is True


def layer_base(drafter: DrafterConfig) -> str:
    """Where the fields of the drafter's layers stand in its file."""
    return "/transformer_layer_config" if drafter.dialect == "speculators" else ""
