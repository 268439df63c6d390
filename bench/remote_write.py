"""A verified write over ssh against bare logins: at the median at most twice ``ssh true`` and 150 ms.

Run: python bench/remote_write.py [RUNS]. Starts a real sshd on loopback and stops it; needs openssh-server.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.writing.write import WriteOrder, verified_write
from loopback import running_sshd

ROOM_MS = 150.0


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median_ms(samples: list[float]) -> float:
    """The median in milliseconds."""
    return round(1000 * statistics.median(samples), 1)


def main() -> int:
    """Print the medians as JSON; exit 1 above the limit."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as name, running_sshd(Path(name)) as server:
        host, ledger = server.host(), Ledger(Path(name) / "ledger")
        target = Path(name) / "model" / "config.json"
        target.parent.mkdir()

        def write(number: int) -> None:
            content = json.dumps({"number": number, "pad": "x" * 2900}).encode()
            verified_write(host, WriteOrder(Place("loop", str(target)), content, "bench"), ledger)

        bare, verified = [], []
        for number in range(runs):  # by turns, so that other work on the machine falls on both
            bare.append(seconds(lambda: host.run(["true"], timeout_s=60)))
            verified.append(seconds(lambda: write(number)))  # noqa: B023 - called at once
    limit = round(2 * median_ms(bare) + ROOM_MS, 1)
    report = {
        "runs": runs,
        "ssh_true_ms": median_ms(bare),
        "verified_write_ms": median_ms(verified),
        "limit_ms": limit,
        "times_ssh_true": round(median_ms(verified) / median_ms(bare), 2),
        "least_ms": [round(1000 * min(bare), 1), round(1000 * min(verified), 1)],
    }
    sys.stdout.write(json.dumps(report) + "\n")
    return 0 if median_ms(verified) <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
