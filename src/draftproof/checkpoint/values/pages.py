"""A few pages of every tensor, looked at for what no trained weight has: nothing but zeros, NaN, infinity.

The sample is a function of names and sizes alone: the same file gives the same answer. It is a sample:
a clean answer says that the pages read were clean, and how many they were.
"""

import os
import zlib
from dataclasses import dataclass

from draftproof.checkpoint.files.members import Member, follow, open_member
from draftproof.checkpoint.files.shard import ArtefactDefect, Shard, TensorEntry
from draftproof.checkpoint.ledger import Checkpoint
from draftproof.checkpoint.values.holes import find_holes, hole_defect
from draftproof.checkpoint.values.nonfinite import NONFINITE, count_nonfinite
from draftproof.checkpoint.values.zero_tail import zero_tail
from draftproof.errors import CouldNotLook

__all__ = ["PAGE_BYTES", "PageScan", "scan_pages"]

PAGE_BYTES = 4096
_PAGES_PER_TENSOR = 3
_MAX_PAGES = 12_000
"""Reads in one scan, some 10 microseconds each from memory, 100 from a fast disk."""

_MATRIX = 2


@dataclass(frozen=True, slots=True)
class PageScan:
    """What was looked at, and what was odd about it."""

    num_pages: int
    num_tensors: int
    """Tensors of which at least one page was read."""

    skipped: tuple[str, ...]
    """Tensors of which no page was read: they lie in a hole, or the number of reads is spent."""

    defects: tuple[ArtefactDefect, ...]


def scan_pages(checkpoint: Checkpoint) -> PageScan:
    """Look for sparse holes in every shard, and sample the pages of every tensor that is on disk."""
    total = sum(len(shard.tensors) for shard in checkpoint.shards)
    each = max(1, min(_PAGES_PER_TENSOR, _MAX_PAGES // max(total, 1)))
    scan = _Scan(each)
    for shard in checkpoint.shards:
        member = follow(checkpoint.root, shard.name)
        try:
            descriptor = open_member(member)
        except CouldNotLook as error:
            place = str(member.path)
            scan.defects.append(
                ArtefactDefect("shard-unreadable", shard.name, error.expected, error.found, place)
            )
            continue
        try:
            scan.shard(descriptor, shard, member)
        finally:
            os.close(descriptor)
    return PageScan(scan.num_pages, scan.num_tensors, tuple(scan.skipped), tuple(scan.defects))


class _Scan:
    """Counts while shards go by."""

    def __init__(self, pages_per_tensor: int) -> None:
        self.each = pages_per_tensor
        self.num_pages = 0
        self.num_tensors = 0
        self.skipped: list[str] = []
        self.defects: list[ArtefactDefect] = []

    def shard(self, descriptor: int, shard: Shard, member: Member) -> None:
        """One open shard."""
        size = os.fstat(descriptor).st_size
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead behind single pages
        if holes := find_holes(descriptor, size):
            self.defects.append(hole_defect(shard, holes, member.path))
        i = 0
        for tensor in sorted(shard.tensors, key=lambda t: t.begin):
            while i < len(holes) and holes[i][1] <= tensor.begin:
                i += 1
            in_hole = i < len(holes) and holes[i][0] < tensor.end
            if in_hole or tensor.end > size or tensor.begin == tensor.end or self.num_pages >= _MAX_PAGES:
                self.skipped.append(tensor.name)
            else:
                self.tensor(descriptor, tensor, member)

        if not holes and (tail := zero_tail(descriptor, size, shard)) is not None:
            begin, cut = tail
            found = f"only zeros from byte {begin} on, {size - begin} bytes; they begin inside {cut.name}"
            self.defects.append(
                ArtefactDefect(
                    "shard-zero-tail", shard.name, "weights up to the end", found, str(member.path)
                )
            )

    def tensor(self, descriptor: int, tensor: TensorEntry, member: Member) -> None:
        """One tensor that is on disk."""
        pages = [(at, os.pread(descriptor, length, at)) for at, length in _sample(tensor, self.each)]
        self.num_pages += len(pages)
        self.num_tensors += 1
        place = f"{member.path} tensor {tensor.name}"
        if len(tensor.shape) >= _MATRIX and not any(any(page) for _, page in pages):
            found = f"only zeros in {_counted(pages)}"
            expected = "a matrix with something in it"
            self.defects.append(ArtefactDefect("tensor-zero-pages", tensor.name, expected, found, place))
        if tensor.dtype in NONFINITE and (
            bad := [(at, n) for at, p in pages if (n := count_nonfinite(p, tensor.dtype))]
        ):
            total = sum(n for _, n in bad)
            found = f"{total} NaN or infinite in {_counted(pages)}, first page at byte {bad[0][0]}"
            self.defects.append(
                ArtefactDefect("tensor-nonfinite", tensor.name, "finite numbers", found, place)
            )


def _counted(pages: list[tuple[int, bytes]]) -> str:
    return f"{len(pages)} sampled page(s), {sum(len(p) for _, p in pages)} bytes"


def _sample(tensor: TensorEntry, count: int) -> list[tuple[int, int]]:
    """(position, length) of the pages to read: the whole of a small tensor, else one page of each equal part.

    Positions keep to whole elements, counted from the tensor's first byte.
    """
    size = tensor.end - tensor.begin
    if size <= count * PAGE_BYTES:
        return [(tensor.begin, size)]
    part = size // count
    spread = zlib.crc32(tensor.name.encode("utf-8"))
    offsets = [i * part + spread % max(1, part - PAGE_BYTES) for i in range(count)]
    return [(tensor.begin + offset // 16 * 16, PAGE_BYTES) for offset in offsets]
