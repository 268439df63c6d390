"""A bench as one document, and as rows."""

import csv
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from draftproof.engine.bench.arms import Arm
from draftproof.engine.bench.lossless import Divergence
from draftproof.engine.bench.measure import PARTS, Measured, Pace
from draftproof.engine.bench.run import Run

__all__ = ["SCHEMA", "TargetReport", "document", "write_csv", "write_json"]

SCHEMA = "draftproof.bench/1"


@dataclass(frozen=True, slots=True)
class TargetReport:
    """All arms of one target."""

    target: str
    arms: Sequence[Arm]
    runs: Sequence[Run]
    measured: Mapping[str, Measured]
    divergences: Sequence[Divergence]
    noise_bound: float
    prompts: str
    """Where they came from, and how many."""

    sizing: Mapping[str, str]
    """By arm: who said how much is drafted."""


def document(reports: Sequence[TargetReport]) -> dict[str, object]:
    """Everything measured, in the schema's own words."""
    return {
        "schema": SCHEMA,
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
        },
        "arms": [_arm(report, arm) for report in reports for arm in report.arms],
    }


def _arm(report: TargetReport, arm: Arm) -> dict[str, object]:
    found = report.measured[arm.name]
    off = [each for each in report.divergences if each.arm == arm.name]
    kept = found.acceptance
    interval = kept.tau_interval
    return {
        "target": report.target,
        "method": arm.name,
        "drafts": arm.engine.method,
        "drafter": None if arm.options.drafter is None else str(arm.options.drafter),
        "tau": kept.tau,
        "tau_interval": [interval.low, interval.high],
        "tau_macro": kept.tau_macro,
        "rate": kept.rate,
        "per_position": list(kept.per_position),
        "tokens_per_s": found.tokens_per_s.value,
        "tokens_per_s_interval": _interval(found.tokens_per_s),
        "speedup": found.speedup.value,
        "speedup_interval": _interval(found.speedup),
        "lossless": not off,
        "divergences": {
            "near_ties": sum(each.is_near_tie for each in off),
            "others": sum(not each.is_near_tie for each in off),
            "noise_bound": report.noise_bound,
            "at": [_divergence(each) for each in off],
        },
        "cost": {part: found.cost[part] for part in PARTS},
        "outside_forwards": 1 - (found.cost["verify"] + found.cost["draft"]) / sum(found.cost.values()),
        "size": {
            "chosen_by": report.sizing[arm.name],
            "budget": arm.options.budget,
            "num_draft_tokens": arm.options.num_draft_tokens,
        },
        "costs_foretold": None if arm.engine.costs is None else asdict(arm.engine.costs),
        "prompts": report.prompts,
        "steps": kept.num_steps,
        "tokens": kept.num_emitted,
        "dtype": str(arm.engine.target.dtype).removeprefix("torch."),
    }


def _interval(pace: Pace) -> list[float]:
    return [pace.low, pace.high]


def _divergence(found: Divergence) -> dict[str, object]:
    ends = found.gap == float("inf")
    return {
        "prompt": found.prompt,
        "token": found.at,
        "gap": None if ends else found.gap,
        "near_tie": found.is_near_tie,
    }


def write_json(path: Path, made: Mapping[str, object]) -> None:
    """The document, readable."""
    path.write_text(json.dumps(made, indent=1, allow_nan=False) + "\n", encoding="ascii")


def write_csv(path: Path, reports: Sequence[TargetReport]) -> None:
    """Every run, a row each."""
    names = ("target", "arm", "round", "prompt", "tokens", "steps", "prefill", *PARTS)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for report in reports:
            for run in report.runs:
                made, seconds = run.generation, run.generation.seconds
                row = (report.target, run.arm, run.round, run.prompt, len(made.token_ids), len(made.steps))
                writer.writerow((*row, seconds.prefill, *(getattr(seconds, part) for part in PARTS)))
