"""Sparse holes: ranges of a file that were never written to the disk and read as zeros.

``SEEK_HOLE`` finds them without reading a byte; a complete download has none.
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from draftproof.checkpoint.files.shard import ArtefactDefect, Shard, TensorEntry, listed

__all__ = ["find_holes", "hole_defect", "lies_in_holes"]

MAX_RANGES = 65_536
"""Ranges looked for in one file; a file of more is said to have at least these."""


def find_holes(descriptor: int, size: int) -> list[tuple[int, int]]:
    """Ranges [begin, end) of the file without bytes on disk; empty where the file system cannot tell."""
    holes: list[tuple[int, int]] = []
    position = 0
    while position < size and len(holes) < MAX_RANGES:
        try:
            begin = os.lseek(descriptor, position, os.SEEK_HOLE)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.ENOTSUP, errno.ENXIO}:
                break
            raise
        if begin >= size:  # the end of the file counts as a hole of its own
            break
        position = _data_after(descriptor, begin, size)
        holes.append((begin, position))
    return holes


def hole_defect(shard: Shard, holes: Sequence[tuple[int, int]], where: Path) -> ArtefactDefect:
    """One defect for all holes of a shard: the first range, the total, the tensors they cover."""
    total = sum(end - begin for begin, end in holes)
    touched = [t.name for t in _touched(shard.tensors, holes)]
    begin, end = holes[0]
    least = "at least " if len(holes) >= MAX_RANGES else ""
    found = (
        f"{least}{len(holes)} hole(s), {total} bytes never written; first [{begin}, {end}); "
        f"{len(touched)} of {len(shard.tensors)} tensors: {listed(touched, 4)}"
    )
    return ArtefactDefect("shard-hole", shard.name, "every byte on disk", found, str(where))


def lies_in_holes(begin: int, end: int, holes: Sequence[tuple[int, int]]) -> bool:
    """Whether [begin, end) touches a hole."""
    return any(b < end and begin < e for b, e in holes)


def _data_after(descriptor: int, begin: int, size: int) -> int:
    try:
        return os.lseek(descriptor, begin, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # no data up to the end
            return size
        raise


def _touched(tensors: Sequence[TensorEntry], holes: Sequence[tuple[int, int]]) -> list[TensorEntry]:
    """Tensors with a byte in a hole; both are walked once, in order of position."""
    ordered = sorted(tensors, key=lambda t: t.begin)
    touched, i = [], 0
    for tensor in ordered:
        while i < len(holes) and holes[i][1] <= tensor.begin:
            i += 1
        if i < len(holes) and holes[i][0] < tensor.end:
            touched.append(tensor)
    return touched
