"""Digest speed against its physical limit: 90 % of min(disk, cores x hash) is the goal.

Run: ``python bench/digest_speed.py [GIB] [FOLDER]``. Writes one file a core, then measures on the same bytes:
the hash alone from memory on all cores, reading alone from the page cache and from the disk, and
``digest_files``. Each as wall time and as time of this process's cores; where other work loads the machine
beyond its cores, wall time is that work's and the core time decides. Exit 1 below the goal.
"""

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from draftproof.checkpoint.digest import digest_files

BUFFER = 4 * 1024 * 1024
GOAL = 0.9
ALGORITHMS = (("sha256",), ("sha256", "blake3"))


class Rate(NamedTuple):
    """GB a second."""

    wall: float
    core: float
    """For each second of one core."""


def rate(size: int, work: Callable[[], object]) -> Rate:
    """The best of three."""
    wall, core = [], []
    for _ in range(3):
        begin, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - begin)
        core.append(time.process_time() - used)
    return Rate(size / min(wall) / 1e9, size / min(core) / 1e9)


def hash_rate(algorithms: tuple[str, ...], cores: int) -> Rate:
    """Hashing alone, on all cores at once, from memory."""
    data = os.urandom(BUFFER)
    rounds = 128

    def one(_worker: int) -> None:
        states = [hashlib.sha256() if name == "sha256" else blake3() for name in algorithms]
        for _ in range(rounds):
            for state in states:
                state.update(data)

    def all_cores() -> None:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(one, range(cores)))

    return rate(cores * rounds * BUFFER, all_cores)


def read_rate(paths: list[Path], *, cold: bool) -> Rate:
    """Reading alone, one thread a file."""

    def one(path: Path) -> None:
        buffer = bytearray(BUFFER)
        with path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            while file.readinto(buffer):
                pass

    def all_files() -> None:
        if cold:
            drop(paths)
        with ThreadPoolExecutor(len(paths)) as pool:
            list(pool.map(one, paths))

    return rate(sum(p.stat().st_size for p in paths), all_files)


def drop(paths: list[Path]) -> None:
    """Put the files out of the page cache."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def digest_rate(paths: list[Path], algorithms: tuple[str, ...], *, cold: bool) -> Rate:
    """What ``digest_files`` does in a second."""

    def all_files() -> None:
        if cold:
            drop(paths)
        digest_files(paths, algorithms)

    return rate(sum(p.stat().st_size for p in paths), all_files)


def main() -> int:
    """Measure and compare."""
    gib = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    folder = sys.argv[2] if len(sys.argv) > 2 else None  # noqa: PLR2004 - the second argument
    cores = len(os.sched_getaffinity(0))
    good = True
    with tempfile.TemporaryDirectory(dir=folder) as place:
        paths = [Path(place) / f"{i}.bin" for i in range(cores)]
        for path in paths:
            with path.open("wb") as file:
                for _ in range(int(gib * 2**30 / cores / BUFFER)):
                    file.write(os.urandom(BUFFER))
        print(f"{cores} files, {gib} GiB, {cores} cores, load {os.getloadavg()[0]:.1f}; GB/s")
        is_loaded = os.getloadavg()[0] > cores
        for cold in (False, True):
            reading = read_rate(paths, cold=cold)
            for algorithms in ALGORITHMS:
                hashing = hash_rate(algorithms, cores)
                ours = digest_rate(paths, algorithms, cold=cold)
                limit = min(reading.wall, hashing.wall)
                share, core_share = ours.wall / limit, ours.core / hashing.core
                good &= share >= GOAL or (is_loaded and core_share >= GOAL)
                print(
                    f"  {'+'.join(algorithms):<14} from {'disk' if cold else 'cache':<5}: "
                    f"read {reading.wall:.2f}, hash {hashing.wall:.2f}, digest_files {ours.wall:.2f}: "
                    f"{share:.0%}; of a core {ours.core:.2f} of {hashing.core:.2f}: {core_share:.0%}"
                )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
