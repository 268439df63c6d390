"""A verified write of a 3 kB file against its own syncs: the overhead must stay below 40 ms at the median.

Run: python bench/verified_write.py [RUNS]. Two programs start and end within it, the writer and the
reader; its own syncs are measured as the same number of fsyncs in the same directory.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.host.local import LocalHost

LIMIT_MS = 40.0
SYNCS = 9
"""Two of the target; of the ledger two entries, two contents, and the directories of these."""


def median_ms(samples: list[float]) -> float:
    """The median in milliseconds."""
    return round(1000 * statistics.median(samples), 1)


def write_once(directory: Path, number: int) -> float:
    """Seconds that one verified write takes."""
    content = json.dumps({"number": number, "pad": "x" * 2900}).encode()
    order = WriteOrder(Place("", str(directory / "model" / "config.json")), content, "bench")
    start = time.perf_counter()
    verified_write(LocalHost(sys.executable), order, Ledger(directory / "ledger"))
    return time.perf_counter() - start


def sync_once(directory: Path, number: int) -> float:
    """Seconds that as many small synced writes take without anything else."""
    start = time.perf_counter()
    for each in range(SYNCS):
        descriptor = os.open(directory / f"sync{each}", os.O_WRONLY | os.O_CREAT, 0o600)
        os.pwrite(descriptor, b"%d" % number * 100, 0)
        os.fsync(descriptor)
        os.close(descriptor)
    return time.perf_counter() - start


def start_once() -> float:
    """Seconds that two bare interpreters take to start and end."""
    start = time.perf_counter()
    for _ in range(2):
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
    return time.perf_counter() - start


def main() -> int:
    """Print the medians as JSON; exit 1 above the limit."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "model").mkdir()
        writes = [write_once(directory, number) for number in range(runs)]
        syncs = [sync_once(directory, number) for number in range(runs)]
    starts = [start_once() for _ in range(runs)]
    over = round(median_ms(writes) - median_ms(syncs), 1)
    print(
        json.dumps(
            {
                "runs": runs,
                "write_ms": median_ms(writes),
                "own_syncs_ms": median_ms(syncs),
                "two_bare_interpreters_ms": median_ms(starts),
                "overhead_ms": over,
                "times_own_syncs": round(median_ms(writes) / median_ms(syncs), 2),
                "limit_ms": LIMIT_MS,
            }
        )
    )
    return 0 if over <= LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
