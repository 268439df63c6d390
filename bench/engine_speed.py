"""Tokens a second of this engine, transformers, vLLM and llama.cpp: same weights, data type and threads.

Each engine runs in a process of its own that stays, and they take turns, so that a busy moment of the machine
falls on all of them. Wall and CPU time are both kept: on a shared machine the second is the one to trust.

    python bench/engine_speed.py plan [--minutes 8]
    python bench/engine_speed.py tokens|forwards|growth [--models ..] [--dtypes ..] [--arms ..] [--threads 1]
                                                        [--rounds 7] [--tokens 128]
    python bench/engine_speed.py page

``plan`` measures what ``speed.plan`` lists, the most telling first, and begins nothing after so many minutes.
Records go to ``docs/reference/speed.json``, in place of older ones of the same model, data type, threads and
engine; ``speed.md``, ``speed.csv`` and the plots are written from it each time, by ``page`` alone without a
measurement. Environments of the peers are made by ``tests/environments.py``: 4 GB, ten minutes, once.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # for ``environments``

from speed.arms import ARMS, gguf_of_smollm2  # noqa: E402 - behind the path
from speed.growth import measure_growth  # noqa: E402 - the same
from speed.models import MODELS, write_model  # noqa: E402 - the same
from speed.page import write_page  # noqa: E402 - the same
from speed.plan import PLAN, Entry, entries_of  # noqa: E402 - the same
from speed.roofline import bandwidth, weight_bytes  # noqa: E402 - the same
from speed.tokens import Case, run_forwards, run_tokens  # noqa: E402 - the same

REFERENCE = ROOT / "docs" / "reference"
WORK = ROOT / "out" / "speed"
NAMED_BY = ("model", "dtype", "threads", "arm", "rows", "context")
"""What tells records apart; rounds of one arm are replaced together."""


def main() -> int:
    """Measure, or write the page alone."""
    options = _options()
    stored = REFERENCE / "speed.json"
    kept: dict[str, Any] = json.loads(stored.read_text()) if stored.exists() else {}
    begun = time.monotonic()
    for entry in _entries(options):
        spent = time.monotonic() - begun
        if spent > 60 * options.minutes:
            _say(f"{spent:.0f} s: left out {entry.part} {entry.model} {entry.dtype}, {entry.threads} threads")
            continue
        kept["machine"] = _machine()
        records = _measured(entry, kept)
        stamp = {"date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "load": round(os.getloadavg()[0], 1)}
        _put(kept, entry.part, [{**record, **stamp} for record in records])
        lines = json.dumps(kept, separators=(",", ":")).replace("},{", "},\n{")
        stored.write_text(lines + "\n", encoding="ascii")
    _say(f"{time.monotonic() - begun:.0f} s")
    for written in write_page(REFERENCE, kept):
        _say(str(written.relative_to(ROOT)))
    return 0


def _options() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("part", choices=("plan", "tokens", "forwards", "growth", "page"))
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--dtypes", nargs="+", default=("float32", "bfloat16"))
    parser.add_argument("--arms", nargs="+", choices=[arm.name for arm in ARMS])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=128)
    return parser.parse_args()


def _entries(options: argparse.Namespace) -> Sequence[Entry]:
    if options.part in {"plan", "page"}:
        return PLAN if options.part == "plan" else ()
    return entries_of(
        options.part,
        options.models,
        options.dtypes,
        threads=options.threads,
        arms=options.arms,
        rounds=options.rounds,
        tokens=options.tokens,
    )


def _measured(entry: Entry, kept: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of one entry; what the roofline needs is measured on the way."""
    _say(f"== {entry.part} {entry.model} {entry.dtype}, {entry.threads} threads")
    WORK.mkdir(parents=True, exist_ok=True)
    path = write_model(WORK / "models", entry.model, gguf_of_smollm2)
    case = Case(entry.model, path, entry.dtype, entry.threads)
    arms = [arm for arm in ARMS if arm.name in entry.arms]
    if entry.part == "growth":
        return measure_growth(path, entry.dtype, rounds=entry.rounds, say=_say)
    if entry.part == "forwards":
        return run_forwards(case, arms, rounds=entry.rounds, logs=WORK, say=_say)
    kept.setdefault("weight_bytes", {})[f"{case.model} {case.dtype}"] = weight_bytes(path, case.dtype)
    # What a machine can do is the best it was seen to do.
    seen = [known for known in kept.get("bandwidth", []) if known["threads"] == case.threads]
    _put(kept, "bandwidth", [max([*seen, bandwidth(case.threads)], key=lambda one: one["bytes_per_s"])])
    return run_tokens(case, arms, rounds=entry.rounds, tokens=entry.tokens, logs=WORK, say=_say)


def _put(kept: dict[str, Any], part: str, records: list[dict[str, Any]]) -> None:
    """Records in place of those that bear the same names."""
    new = {_name(record) for record in records}
    kept[part] = [record for record in kept.get(part, []) if _name(record) not in new] + records


def _name(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record.get(key) for key in NAMED_BY)


def _machine() -> dict[str, Any]:
    """The processor and what of its instructions matters here."""
    lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    wanted = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    flags = set(said.get("flags", "").split())
    return {
        "processor": said.get("model name", platform.processor()),
        "cores": os.cpu_count(),
        "has": [flag for flag in wanted if flag in flags],
        "has_not": [flag for flag in wanted if flag not in flags],
    }


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
