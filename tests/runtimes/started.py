"""vLLM started for real in a process of its own, one engine after the other; what each of them told."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from draftproof.config.drafter import DrafterConfig
from draftproof.names import Layer
from draftproof.runtimes.engine_views import Column
from draftproof.runtimes.observed.reading import read_text
from draftproof.runtimes.quantities import of_acceptance, of_drafter, of_parsed
from draftproof.runtimes.record import Told, parse_records
from environments import vllm_python
from runtimes.vllm_server import PATIENCE, environment

__all__ = ["held", "layers_of", "start_all"]

_PROGRAM = Path(__file__).with_name("serve_tiny.py")


def start_all(requests: Sequence[Mapping[str, object]], *path: Path) -> dict[str, dict[str, Any]]:
    """Name -> what that start told; ``path`` is added to what is imported from."""
    ran = subprocess.run(
        [vllm_python(), _PROGRAM],
        input=json.dumps([{"dtype": "float32", "more": {}, **one} for one in requests]),
        env=environment(*path),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    told = {one["name"]: one for one in map(json.loads, ran.stdout.splitlines())}
    assert len(told) == len(requests), ran.stderr[-4000:]
    return told


def held(told: Mapping[str, Any]) -> list[Told]:
    """The record of every rank. Raises AssertionError where a worker told none."""
    assert "refused" not in told, told
    found: list[Told] = []
    for record in told["records"]:
        one = parse_records(record, stage="running")
        assert isinstance(one, list), one
        found += one
    return found


def layers_of(drafter: DrafterConfig, resolved: Told, told: Mapping[str, Any]) -> list[Column]:
    """File, parsed, preflight, worker and counters of one start."""
    columns = [Column(Layer.BYTES, "file", of_drafter(drafter))]
    config = resolved.effective.config
    parsed = of_parsed(config, "vllm", drafter.method.value) if config else None
    if parsed is not None:
        columns.append(Column(Layer.PARSED, "parsed", parsed))
    columns.append(Column(Layer.EFFECTIVE, "preflight", resolved.effective.flat))
    columns.append(Column(Layer.EFFECTIVE, "worker", held(told)[0].effective.flat))
    reading = read_text(told["page"], "vllm")
    assert reading.acceptance is not None, told["page"][-2000:]
    assert [one.id for one in reading.findings if "identity" in one.id] == []
    return [*columns, Column(Layer.OBSERVED, "counters", of_acceptance(reading.acceptance))]
