"""Where a value comes from. No value is shown without one of these beside it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["ClassDefault", "Derived", "Source", "Sourced", "Unknown", "Written"]

T_co = TypeVar("T_co", covariant=True)  # frozen: a Sourced[TokenId] is a Sourced[int]


@dataclass(frozen=True, slots=True)
class Written:
    """The file says so, at this place."""

    pointer: str
    """RFC 6901 pointer in the file as it stands, e.g. ``/dflash_config/mask_token_id``."""

    line: int
    """Counted from 1."""


@dataclass(frozen=True, slots=True)
class ClassDefault:
    """The file is silent; this library fills the hole."""

    library: str
    """Library, version and class, e.g. ``transformers 5.24.0 Qwen3Config``."""


@dataclass(frozen=True, slots=True)
class Derived:
    """Computed from other values by a named rule."""

    rule: str
    """The rule in words, with its source."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Not known. Never to be read as "fine"."""

    reason: str
    """Why it could not be known."""


Source = Written | ClassDefault | Derived | Unknown


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T_co]):
    """A value and where it comes from. ``value`` is None for a written null and for an unknown."""

    value: T_co | None
    source: Source

    @property
    def is_known(self) -> bool:
        """Whether there is anything to compare: a written null is known, an unknown is not."""
        return not isinstance(self.source, Unknown)

    @property
    def is_written(self) -> bool:
        """Whether the file itself says so."""
        return isinstance(self.source, Written)
