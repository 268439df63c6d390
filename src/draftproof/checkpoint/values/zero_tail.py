"""The end of a shard, looked at for a write that stopped: right size, zeros from some byte on.

Rows of zeros are ordinary at the end of an embedding (ids beyond the tokenizer). A write that stopped ends at
a block, and a block seldom ends with a row, so only zeros that begin inside a row are told. A block ends
within _SLACK bytes of a row of r bytes by chance about _SLACK / r of the time: such a tail is missed.
"""

import os

from draftproof.checkpoint.files.shard import Shard, TensorEntry

__all__ = ["zero_tail"]

_PAGE = 4096
_CHUNK = 1024 * 1024
_MAX_READ = 64 * 1024 * 1024
"""Bytes looked back; a longer tail covers whole tensors, whose pages are sampled anyway."""

_SLACK = 16
"""Zero bytes that the last numbers of an ordinary row may end with."""

_MATRIX = 2


def zero_tail(descriptor: int, size: int, shard: Shard) -> tuple[int, TensorEntry] | None:
    """(first byte, the tensor it lies in) of zeros that begin inside a row and reach the end of the file."""
    begin = _first_zero(descriptor, size, shard.header_bytes)
    if begin is None or size - begin < _PAGE:
        return None
    cut = next((t for t in shard.tensors if t.begin <= begin < t.end), None)
    if cut is None or len(cut.shape) < _MATRIX or begin == cut.begin:
        return None
    row = (cut.end - cut.begin) // cut.shape[0]
    to_next_row = -(begin - cut.begin) % row
    return None if to_next_row <= _SLACK else (begin, cut)


def _first_zero(descriptor: int, size: int, floor: int) -> int | None:
    """Where the zeros that reach the end begin; None where they go back further than is looked."""
    end, lowest = size, max(floor, size - _MAX_READ)
    length = _PAGE  # one page tells for every sound file
    while end > lowest:
        begin = max(lowest, end - length)
        kept = os.pread(descriptor, end - begin, begin).rstrip(b"\0")
        if kept:
            return begin + len(kept)
        end, length = begin, _CHUNK
    return None
