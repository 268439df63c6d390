"""How long the command line takes to import, as whole processes, beside a bare interpreter.

Run: python bench/cli_import.py [--runs N]. Goal: import of the CLI under 150 ms.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

CASES = {
    "bare interpreter": "pass",
    "draftproof.cli.main": "import draftproof.cli.main",
}


def main() -> int:
    """Interleave the cases and print medians with their spread, in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    samples: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(runs):
        for name, code in CASES.items():
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            samples[name].append((time.perf_counter() - begin) * 1e3)
    report = {
        name: {"median_ms": statistics.median(v), "min_ms": min(v), "max_ms": max(v)}
        for name, v in samples.items()
    }
    medians = [r["median_ms"] for r in report.values()]
    report["cli over bare"] = {"median_ms": medians[1] - medians[0]}
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
