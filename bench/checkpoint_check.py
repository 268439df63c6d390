"""Time ``draftproof check`` as a whole process on 27B-sized directories: true sizes, true headers, no data.

Run: ``python bench/checkpoint_check.py [RUNS]``. Prints the median and slowest run, the core time, and
what was found; exit 1 if the median is a second or more, or if anything but the holes was found.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from checkpoint.bigdir import NUM_SHARDS, write_27b_drafter, write_27b_target

GOAL_S = 1.0
EXPECTED = {"drafter": 1, "target": NUM_SHARDS}


def timed(arguments: list[str]) -> tuple[float, float, dict[str, object]]:
    """Seconds of one whole process, seconds of its cores, and its JSON."""
    begin, used = time.perf_counter(), core_seconds()
    done = subprocess.run(
        [sys.executable, "-m", "draftproof", *arguments, "--json"], capture_output=True, check=False
    )
    return time.perf_counter() - begin, core_seconds() - used, json.loads(done.stdout)


def core_seconds() -> float:
    """Core time of all processes waited for so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(arguments: list[str], runs: int, holes: int) -> bool:
    """Whether a check is fast enough and finds the holes and nothing else."""
    results = [timed(arguments) for _ in range(runs)]
    seconds = [wall for wall, _, _ in results]
    findings = results[0][2]["findings"]
    if not isinstance(findings, list):
        sys.exit(f"check --json has no list of findings: {results[0][2]}")
    ids = [f["id"] for f in findings if f["severity"] != "note"]
    median, core = statistics.median(seconds), statistics.median(used for _, used, _ in results)
    print(f"  median {median:.3f} s (cores {core:.3f} s), slowest {max(seconds):.3f} s of {runs}")
    print(f"  {len(ids)} findings beside notes: {sorted(set(ids))}")
    return median < GOAL_S and ids == ["shard-hole"] * holes


def main() -> int:
    """Build the directories, run the checks."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        sizes = write_27b_target(root / "target"), write_27b_drafter(root / "drafter")
        print(
            f"target {sizes[0] / 1e9:.1f} GB in {NUM_SHARDS} shards, drafter {sizes[1] / 1e9:.2f} GB; "
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        )
        good = True
        for name, holes in EXPECTED.items():
            print(f"draftproof check {name}")
            good &= measure(["check", str(root / name)], runs, holes)
        print("draftproof check drafter --target target")
        pair = ["check", str(root / "drafter"), "--target", str(root / "target")]
        good &= measure(pair, runs, sum(EXPECTED.values()))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
