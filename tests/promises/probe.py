"""A run of every promise of a write, made to be run against mutants: prints the first promise that is broken.

Usage: ``python probe.py DIRECTORY [CHECK ...]``; exit 0 when all named (or all) checks hold, 1 at the first
that does not. It imports whichever draftproof is on the path.
"""

import sys
from pathlib import Path

from promises import calls, places, races, records
from promises.bench import CHECKS, Bench

__all__ = ["main"]

SUBJECTS = (calls, places, races, records)
"""Importing them registers their checks."""


def main(directory: str, names: list[str]) -> int:
    """Run the checks named, or all; the first broken promise is printed."""
    for name in names or CHECKS:
        place = Path(directory) / name
        try:
            CHECKS[name](Bench(place))
        except Exception as error:  # noqa: BLE001 - a mutant may break in any way; each is a kill
            sys.stdout.write(f"{name}: {error.__class__.__name__}: {error}\n")
            return 1
    sys.stdout.write(f"{len(names or CHECKS)} checks hold\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
