"""The second half of docs/reference/reliability.md: what the suites of writing injected, and what came of it.

The numbers are those of one run of each suite, kept in docs/reference/deploy_totals.jsonl, one JSON
object a line:
DRAFTPROOF_TOTALS=docs/reference/deploy_totals.jsonl pytest tests/deploy
(root, strace, openssh-server, xfsprogs, btrfs-progs and rsync; a suite that lacks one says which).
"""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TOTALS = ROOT / "docs" / "reference" / "deploy_totals.jsonl"
HEADING = "## Writing"
SIDE_BY_SIDE = "side by side: cut links"
MUTANTS = "S11 mutants"


@dataclass(frozen=True, slots=True)
class Suite:
    """One file of tests and what it holds."""

    what: str
    file: str
    totals: str = ""
    """How its lines of the totals begin; empty where it only passes or fails."""


SUITES = (
    Suite(
        "S1 every system call fails, lies or kills", "tests/deploy/faults/test_syscalls.py", "S1 system calls"
    ),
    Suite("S2 power cut after a receipt", "tests/deploy/faults/test_power_cut.py", "S2 power cuts"),
    Suite("S3 fsync fails once, then lies", "tests/deploy/faults/test_fsyncgate.py", "S3 fsync"),
    Suite("S4 ssh links cut or stalled", "tests/deploy/ssh/test_cuts.py", "S4 ssh cuts"),
    Suite(
        "S5 writers at once, foreign writers, changes after the write",
        "tests/deploy/faults/test_concurrency.py",
        "S5 concurrency",
    ),
    Suite("S10 writers, readers and kills at once: one order", "tests/deploy/faults/test_history.py", "S10"),
    Suite("S6 mounts and namespaces", "tests/deploy/faults/test_mounts.py", "S6"),
    Suite("S7 what a serving process sees", "tests/deploy/test_consumer_view.py", "S7"),
    Suite(
        "S11 every protocol step removed or altered in turn", "tests/deploy/faults/test_mutants.py", MUTANTS
    ),
    Suite(
        "S11 the same of the programs for hosts without Python",
        "tests/deploy/ssh/test_mutants_elsewhere.py",
        MUTANTS,
    ),
    Suite("other tools under the same cut links", "tests/deploy/ssh/test_rivals.py", SIDE_BY_SIDE),
    Suite("S7 a real serving process", "tests/deploy/faults/test_consumer.py", "S7"),
    Suite("S7 a port's process and its shards", "tests/deploy/test_consumer_shards.py", "S7"),
    Suite("hosts without Python: the shell's write, cut and raced", "tests/host/test_shell.py"),
    Suite(
        "hosts without Python: every step under faults, lies and races",
        "tests/deploy/faults/test_shell_steps.py",
    ),
    Suite("hosts without Python, over ssh", "tests/deploy/ssh/test_bare.py"),
    Suite("accounts that serve SFTP only, server faults", "tests/deploy/ssh/test_sftp.py"),
    Suite(
        "accounts that serve SFTP only: every step under faults, lies and races",
        "tests/deploy/ssh/test_sftp_steps.py",
    ),
    Suite(
        "the reader's connection beside the writer's, one that reads early among them",
        "tests/deploy/ssh/test_standby.py",
    ),
    Suite("many hosts, some dead or refusing", "tests/deploy/ssh/test_fleet.py"),
    Suite("causes of a wrong file, each produced for real", "tests/deploy/test_diagnose.py", "causes"),
)


def totals() -> list[dict[str, Any]]:
    """The lines of the run that was kept."""
    return [json.loads(line) for line in TOTALS.read_text(encoding="utf-8").splitlines()]


def counted() -> dict[str, list[int]]:
    """The tests behind each suite, by collecting them: as faults, and none on clean input."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *(suite.file for suite in SUITES)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stdout + run.stderr)
    numbers = Counter(line.partition("::")[0] for line in run.stdout.splitlines() if "::" in line)
    return {suite.what: [numbers[suite.file], 0] for suite in SUITES}


def section(counts: dict[str, list[int]]) -> str:
    """Everything from the heading on."""
    lines = totals()
    return "\n".join([
        HEADING,
        "",
        "The numbers are those of one run of each suite, kept in [deploy_totals.jsonl](deploy_totals.jsonl);",
        "how to repeat it stands in `docs/reliability_writes.py`. At each point one fault is injected into",
        "one whole verified write. *told*: the write said what it left behind, and a reading agreed;",
        "*acknowledged*: the fault did not matter, the receipt was given, and the new file was there; *not",
        "done*: told so, and the old file was there; *lost*: acknowledged and not in the image of the disk.",
        "A file that was neither old nor new would be *torn*; an answer belied by a reading fails its suite.",
        "",
        *_faults(lines),
        "",
        *_mutants(lines),
        "",
        "The same cut links under other tools (the link ends after a part of the session; *false success*:",
        "exit 0 and the old file):",
        "",
        *_side_by_side(lines),
        "",
        *_suites(lines, counts),
        "",
    ])  # fmt: skip


_NAMES = {"suite", "fault", "points", "date"}


def _faults(lines: list[dict[str, Any]]) -> list[str]:
    rows = ["| suite | fault | points | what became of them | run |", "|---|---|---:|---|---|"]
    for line in lines:
        if line["suite"] not in {SIDE_BY_SIDE, MUTANTS}:
            kinds = {name: n for name, n in line.items() if name not in _NAMES}
            became = ", ".join(f"{n} {name}" for name, n in kinds.items())
            rows.append(
                f"| {line['suite']} | {line['fault']} | {line['points']} | {became} | {line['date']} |"
            )
    return rows


def _mutants(lines: list[dict[str, Any]]) -> list[str]:
    return [_mutants_of(line) for line in lines if line["suite"] == MUTANTS]


def _mutants_of(line: dict[str, Any]) -> str:
    told = f"- {MUTANTS}, {line['fault']}: {line['caught']} of {line['mutants']} caught."
    if line["equivalent"]:
        told += " Not caught, because a second net holds alone or nothing is weakened: "
        told += "; ".join(line["equivalent"]) + "."
    return f"{told} Run of {line['date']}."


def _side_by_side(lines: list[dict[str, Any]]) -> list[str]:
    rows = [
        "| tool | cuts | torn file | false success | old file | new file | run |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for line in lines:
        if line["suite"] == SIDE_BY_SIDE:
            cells = [line[name] for name in ("points", "torn", "false success", "old", "new", "date")]
            rows.append(f"| `{line['fault']}` | " + " | ".join(map(str, cells)) + " |")
    return rows


def _suites(lines: list[dict[str, Any]], counts: dict[str, list[int]]) -> list[str]:
    rows = ["| suite | file | numbers | tests |", "|---|---|---|---:|"]
    for suite in SUITES:
        is_counted = suite.totals and any(line["suite"].startswith(suite.totals) for line in lines)
        numbers = "above" if is_counted else "passes or fails as a whole"
        rows.append(f"| {suite.what} | `{suite.file}` | {numbers} | {counts[suite.what][0]} |")
    return rows
