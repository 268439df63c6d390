"""What the suites of writing count, for the reliability page: one JSON object a line, with its date."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["record"]

TOTALS = Path(os.environ.get("DRAFTPROOF_TOTALS", "/dev/null"))
"""Where they go; nowhere unless that is asked."""


def record(suite: str, fault: str, counts: Mapping[str, object]) -> None:
    """Add one line; ``counts`` begins with ``points``, the number of faults or cases."""
    line = {"suite": suite, "fault": fault, **counts, "date": datetime.now(UTC).date().isoformat()}
    with TOTALS.open("a") as stream:
        stream.write(json.dumps(line) + "\n")
