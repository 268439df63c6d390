"""Digests of many files, each read once: sha256 always, blake3 where it is installed.

One worker a file, up to the cores: one sha256 is sequential, and both hashes leave the interpreter free.
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Protocol

from draftproof.checkpoint.files.members import Member, MemberKind, open_member
from draftproof.errors import UsageError

try:
    from blake3 import blake3
except ImportError:
    HAS_BLAKE3 = False
else:
    HAS_BLAKE3 = True

__all__ = ["HAS_BLAKE3", "FileDigest", "default_algorithms", "digest_files"]

_BUFFER_BYTES = 4 * 1024 * 1024


class _Hash(Protocol):
    """What hashlib and blake3 have in common."""

    def update(self, data: memoryview, /) -> object:
        """Feed bytes."""

    def hexdigest(self) -> str:
        """Lower-case hex."""


@dataclass(frozen=True, slots=True)
class FileDigest:
    """The digests of one file and the identity it had."""

    path: Path
    size_bytes: int
    digests: Mapping[str, str]
    """Algorithm -> hex digits."""

    identity: tuple[int, int, int, int, int]
    """(device, inode, size, mtime_ns, ctime_ns) when it was opened: no user can set the last back."""

    is_stable: bool
    """Whether the identity was still the same after the last byte; otherwise the digests mean nothing."""


def default_algorithms() -> tuple[str, ...]:
    """``sha256``, and ``blake3`` where it is installed."""
    return ("sha256", "blake3") if HAS_BLAKE3 else ("sha256",)


def digest_files(
    paths: Sequence[Path],
    algorithms: Sequence[str] | None = None,
    progress: Callable[[int], None] | None = None,
    num_workers: int | None = None,
) -> tuple[FileDigest, ...]:
    """Digest regular files, in the order given; links are not followed (resolve them by name first).

    Pages that were not in the page cache before are dropped from it after: a server's pages stay.

    Args:
        paths: the files.
        algorithms: of ``sha256`` and ``blake3``; None for all there are.
        progress: called with the bytes just read, by one thread at a time.
        num_workers: files read at once; None for the cores this process may use.

    Raises:
        CouldNotLook: a file cannot be opened or is not regular.
        UsageError: an algorithm that is not there.
    """
    chosen = tuple(algorithms) if algorithms is not None else default_algorithms()
    for name in chosen:
        _new(name)
    report = _serial(progress)
    cores = len(os.sched_getaffinity(0)) if num_workers is None else num_workers
    # The largest first, so that no long file is left to run alone at the end.
    order = sorted(range(len(paths)), key=lambda i: -_size(paths[i]))
    with ThreadPoolExecutor(max_workers=max(1, min(cores, len(paths)))) as pool:
        digests = pool.map(lambda i: _digest(paths[i], chosen, report), order)
        done = dict(zip(order, digests, strict=True))
    return tuple(done[i] for i in range(len(paths)))


def _size(path: Path) -> int:
    """Size for ordering alone; a missing file is reported when it is opened."""
    return path.lstat().st_size if os.path.lexists(path) else 0


def _digest(path: Path, algorithms: Sequence[str], report: Callable[[int], None]) -> FileDigest:
    descriptor = open_member(Member(path.name, MemberKind.FILE, path, ()))
    try:
        before = _identity(descriptor)
        hashes = {name: _new(name) for name in algorithms}
        size = _feed(descriptor, before[2], list(hashes.values()), report)
        after = _identity(descriptor)
    finally:
        os.close(descriptor)
    digests = {name: state.hexdigest() for name, state in hashes.items()}
    return FileDigest(path, size, digests, before, is_stable=before == after and size == before[2])


def _feed(descriptor: int, size: int, hashes: Sequence[_Hash], report: Callable[[int], None]) -> int:
    """Read ``size`` bytes once; how many there were. A file that grows meanwhile is not followed."""
    buffer = memoryview(bytearray(_BUFFER_BYTES))
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    position, was_cached = 0, _is_cached(descriptor, 0)
    while position < size:
        count = os.preadv(descriptor, [buffer[: size - position]], position)
        if not count:
            break
        # The next piece is asked for before this one is hashed: disk and core work at the same time.
        ahead = position + count
        next_cached = _is_cached(descriptor, ahead)
        if not next_cached:
            os.posix_fadvise(descriptor, ahead, _BUFFER_BYTES, os.POSIX_FADV_WILLNEED)
        for state in hashes:
            state.update(buffer[:count])
        if not was_cached:
            os.posix_fadvise(descriptor, position, count, os.POSIX_FADV_DONTNEED)
        position, was_cached = ahead, next_cached
        report(count)
    return position


def _is_cached(descriptor: int, position: int) -> bool:
    """Whether the byte at ``position`` is in memory already; True also where the kernel cannot tell."""
    try:
        os.preadv(descriptor, [bytearray(1)], position, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError:  # not supported by this file system: nothing is dropped
        return True
    return True


def _identity(descriptor: int) -> tuple[int, int, int, int, int]:
    stat = os.fstat(descriptor)
    return (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def _new(name: str) -> _Hash:
    if name == "sha256":
        return hashlib.sha256()
    if name == "blake3" and HAS_BLAKE3:
        return blake3()
    raise UsageError(
        name,
        expected=" or ".join(default_algorithms()),
        found=name,
        where="digest algorithms",
        means="nothing was read",
        next_step="pip install 'draftproof[blake3]'" if name == "blake3" else "choose sha256 or blake3",
    )


def _serial(progress: Callable[[int], None] | None) -> Callable[[int], None]:
    """The callback behind a lock; nothing to call without one."""
    if progress is None:
        return lambda _count: None
    lock = Lock()

    def report(count: int) -> None:
        with lock:
            progress(count)

    return report
