"""Safetensors files as a source of tensors, memory-mapped: no tensor is read before it is asked for."""

import mmap
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from draftproof.checkpoint.files.shard import TensorEntry
from draftproof.checkpoint.ledger import Checkpoint, NoWeights, read_checkpoint
from draftproof.errors import CouldNotLook, RefusedInput

__all__ = ["ShardSource"]

_DTYPES: Mapping[str, torch.dtype] = {
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "F32": torch.float32,
    "F64": torch.float64,
}
"""The float dtypes a model is loaded from; anything else is quantised or no weight."""

_INTEGERS: Mapping[str, torch.dtype] = {
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "U16": torch.uint16,
}
"""The integer dtypes that maps between vocabularies are stored in."""


class ShardSource:
    """The tensors of a checkpoint directory.

    Attributes:
        where: the directory, as shown to people.
    """

    def __init__(self, root: Path) -> None:
        """Read the headers of all shards and hold them against the index.

        Raises:
            CouldNotLook: there is no directory, or no safetensors file in it.
            RefusedInput: a shard is missing, cut short or not what its header says, or a tensor stands twice.
        """
        self.where = str(root)
        ledger = read_checkpoint(root)
        if isinstance(ledger, NoWeights):
            raise CouldNotLook(
                str(root),
                expected="safetensors files, or one GGUF file named itself",
                found=ledger.reason,
                where=str(root),
                means="there are no weights to run",
                next_step=f"ls -l {root}",
            )
        _refuse_defects(ledger)
        self._entries = ledger.tensors
        self._maps = {shard.name: _mapped(ledger.root / shard.name) for shard in ledger.shards}

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Every tensor's shape by name."""
        return {name: entry.shape for name, entry in self._entries.items()}

    def dtype(self, name: str) -> torch.dtype:
        """The dtype a tensor is stored in.

        Raises:
            RefusedInput: it is not one of the float dtypes models are loaded from.
        """
        entry = self._entries[name]
        if entry.dtype not in _DTYPES:
            raise RefusedInput(
                name,
                expected=f"one of {', '.join(_DTYPES)}",
                found=entry.dtype,
                where=f"{self.where}/{entry.shard}",
                means="quantised weights are not run here; converting them silently would change the model",
                next_step="use the unquantised checkpoint",
            )
        return _DTYPES[entry.dtype]

    def read(self, name: str) -> Tensor:
        """One tensor, a view of the mapped file."""
        entry, dtype = self._entries[name], self.dtype(name)
        return _view(self._maps[entry.shard], entry, dtype)

    def read_integers(self, name: str) -> Tensor:
        """A tensor of integers as int64.

        Raises:
            RefusedInput: it holds something else.
        """
        entry = self._entries[name]
        if entry.dtype not in _INTEGERS:
            raise RefusedInput(
                name,
                expected=f"one of {', '.join(_INTEGERS)}",
                found=entry.dtype,
                where=f"{self.where}/{entry.shard}",
                means="these are no ids",
                next_step=f"draftproof check {self.where}",
            )
        return _view(self._maps[entry.shard], entry, _INTEGERS[entry.dtype]).long()


def _refuse_defects(ledger: Checkpoint) -> None:
    if not ledger.defects:
        return
    listed = [f"{d.id} {d.subject}: expected {d.expected}, found {d.found}" for d in ledger.defects]
    raise RefusedInput(
        "checkpoint",
        expected="shards that are whole, complete and agree with their index",
        found="; ".join(listed),
        where=str(ledger.root),
        means="some weights are missing or cannot be trusted; nothing was loaded",
        next_step=f"draftproof check {ledger.root}",
    )


def _mapped(path: Path) -> mmap.mmap:
    """The file as private memory: pages come in when they are read, and a write could not reach the disk."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def _view(mapped: mmap.mmap, entry: TensorEntry, dtype: torch.dtype) -> Tensor:
    count = (entry.end - entry.begin) // dtype.itemsize
    if not count:
        return torch.empty(entry.shape, dtype=dtype)
    if entry.begin % dtype.itemsize:  # the format does not promise alignment; a misaligned tensor is copied
        raw = bytearray(mapped[entry.begin : entry.end])
        return torch.frombuffer(raw, dtype=dtype).reshape(entry.shape)
    return torch.frombuffer(mapped, dtype=dtype, count=count, offset=entry.begin).reshape(entry.shape)
