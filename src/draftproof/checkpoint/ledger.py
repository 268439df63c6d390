"""The tensor ledger: every tensor of a directory, where it stands, what is odd about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ArtefactDefect", "Checkpoint", "Shard", "TensorEntry"]


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
    """A finding id, e.g. ``shard-truncated``."""

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
    metadata: Mapping[str, str]
    tensors: tuple[TensorEntry, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything the files of a directory say about its weights."""

    root: Path
    shards: tuple[Shard, ...]
    index_name: str | None
    """``model.safetensors.index.json`` where there is one."""

    tensors: Mapping[str, TensorEntry]
    """By name. A name that stands in two shards is a defect; the first is kept here."""

    defects: tuple[ArtefactDefect, ...]
    others: tuple[str, ...]
    """Weight-like files that are not safetensors (pickle, GGUF, side files): never opened, always named."""
