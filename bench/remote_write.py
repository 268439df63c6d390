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


def median_ms(work: Callable[[int], object], runs: int) -> float:
    """The median duration in milliseconds."""
    samples = []
    for number in range(runs):
        start = time.perf_counter()
        work(number)
        samples.append(time.perf_counter() - start)
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

        bare = median_ms(lambda _: host.run(["true"], timeout_s=30), runs)
        verified = median_ms(write, runs)
    limit = round(2 * bare + ROOM_MS, 1)
    report = {"runs": runs, "ssh_true_ms": bare, "verified_write_ms": verified, "limit_ms": limit}
    report |= {"times_ssh_true": round(verified / bare, 2)}
    sys.stdout.write(json.dumps(report) + "\n")
    return 0 if verified <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
