"""The words of a checkpoint: a tensor where it stands, a shard, and one thing wrong with either."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ArtefactDefect", "Shard", "TensorEntry", "listed"]


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor as its shard's header describes it."""

    name: str
    dtype: str
    """As written: ``BF16``, ``F32``, ``I64``, ``BOOL``, ..."""

    shape: tuple[int, ...]
    shard: str
    """File name inside the checkpoint directory."""

    begin: int
    """First byte, counted from the start of the file."""

    end: int
    """One past the last byte, counted from the start of the file."""


@dataclass(frozen=True, slots=True)
class ArtefactDefect:
    """One thing wrong with a file of the checkpoint, by name."""

    id: str
    """A finding id, e.g. ``shard-truncated``; its meaning stands in ``checkpoint.catalogue.ARTEFACTS``."""

    subject: str
    """File or tensor."""

    expected: str
    found: str
    where: str


@dataclass(frozen=True, slots=True)
class Shard:
    """One safetensors file whose header could be read."""

    name: str
    size_bytes: int
    header_bytes: int
    """The 8 bytes of length and the JSON: where the data begins."""

    metadata: Mapping[str, str]
    tensors: tuple[TensorEntry, ...]


def listed(names: list[str], limit: int = 8) -> str:
    """Names in their order, the rest as a count: ``a, b and 3 more``."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
