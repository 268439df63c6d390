"""The one training loop: targets and drafters differ only in their ``Task``.

A task names its parameters and makes the loss of a step. Whatever it draws, it draws from the generator of
that step, which depends on seed and step alone; so a run that was cut goes on to the same bits.

The run's directory holds ``metrics.jsonl`` and ``snapshots/``; what is served is written by the task itself.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from draftproof.training.machine import Machine
from draftproof.training.optimiser import Optimiser, Schedule
from draftproof.training.snapshots import Snapshot, newest_snapshot, write_snapshot

__all__ = ["Figures", "Outcome", "Report", "Task", "Training", "run"]

Figures = Mapping[str, float]
"""Numbers of a step by name, as a task gives them: ``loss``, ``accuracy``, ``tau``, whatever it measures."""


class Task(Protocol):
    """What is trained, and on what."""

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """The leaves that are trained, by name; a run sets them in place when it goes on."""
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of everything that decides the outcome: recipe, data, starting weights."""
        ...

    def loss(self, step: int, generator: torch.Generator) -> tuple[Tensor, Figures]:
        """The loss to go down on, a scalar, and the figures of this step.

        Args:
            step: counted from 0.
            generator: of this step; every random draw comes from it.
        """
        ...

    def by_muon(self, name: str, parameter: Tensor) -> bool:
        """Whether Muon moves this parameter instead of AdamW."""
        ...


@dataclass(frozen=True, slots=True)
class Training:
    """How a run goes, apart from what it trains."""

    schedule: Schedule
    seed: int
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.1
    clip: float = 1.0
    muon_rate: float = 1.0
    """Rate of what Muon moves, as a multiple of the schedule's."""

    save_every: int = 100
    """Steps between snapshots; the last step always has one."""

    report_every: int = 10
    """Steps between lines of metrics; figures are means over them."""

    machine: Machine = field(default_factory=Machine)


@dataclass(frozen=True, slots=True)
class Report:
    """One line of metrics."""

    step: int
    """Steps done."""

    steps: int
    rate: float
    gradient: float
    seconds: float
    """Of one step, in the mean."""

    figures: Figures


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    step: int
    resumed_at: int
    """Steps that an earlier process had done already."""

    last: Report | None
    """None when there was nothing left to do."""


def run(
    task: Task,
    training: Training,
    directory: Path,
    *,
    on_report: Callable[[Report], None] = lambda _: None,
    on_snapshot: Callable[[int], None] = lambda _: None,
    stop_at: int | None = None,
) -> Outcome:
    """Train to the end of the schedule, from the newest snapshot in ``directory`` if there is one.

    Args:
        task: what is trained.
        training: how.
        directory: of the run; made if it is not there.
        on_report: called with every line of metrics.
        on_snapshot: called with the steps done whenever a snapshot has been written.
        stop_at: end after so many steps, with a snapshot, as if cut there.

    Raises:
        RefusedInput: the directory holds a run of another recipe, or only damaged snapshots.
    """
    directory.mkdir(parents=True, exist_ok=True)
    optimiser = Optimiser(
        task.parameters,
        betas=training.betas,
        weight_decay=training.weight_decay,
        clip=training.clip,
        by_muon=task.by_muon,
        muon_rate=training.muon_rate,
    )
    begin = _resume(task, optimiser, directory)
    end = training.schedule.steps if stop_at is None else min(stop_at, training.schedule.steps)
    metrics = _Metrics(directory / "metrics.jsonl", begin)
    last = None
    window = _Window()
    for step in range(begin, end):
        began = time.monotonic()
        generator = torch.Generator().manual_seed(_mixed(training.seed, step))
        with training.machine.arithmetic():
            loss, figures = task.loss(step, generator)
        loss.backward()  # type: ignore[no-untyped-call]
        rate = training.schedule.rate(step)
        gradient = optimiser.step(step, rate)
        window.add(figures, gradient, time.monotonic() - began)
        done = step + 1
        if done % training.report_every == 0 or done == end:
            last = window.report(done, training.schedule.steps, rate)
            metrics.write(last)
            on_report(last)
            window = _Window()
        if done % training.save_every == 0 or done == end:
            _save(task, optimiser, directory, done)
            on_snapshot(done)
    return Outcome(max(begin, end), begin, last)


def _resume(task: Task, optimiser: Optimiser, directory: Path) -> int:
    """Steps already done; parameters and state are then as they were after them."""
    found = newest_snapshot(directory / "snapshots", task.fingerprint)
    if found is None:
        return 0
    with torch.no_grad():
        for name, parameter in task.parameters.items():
            parameter.copy_(found.weights[name])
        for name, tensor in optimiser.state.items():
            tensor.copy_(found.optimiser[name])
    torch.set_rng_state(found.random)
    return found.step


def _save(task: Task, optimiser: Optimiser, directory: Path, step: int) -> None:
    state = Snapshot(step, task.fingerprint, task.parameters, optimiser.state, torch.get_rng_state())
    write_snapshot(directory / "snapshots", state)


def _mixed(seed: int, step: int) -> int:
    """One number for both: neighbouring seeds and steps share no draws."""
    return (seed << 32) + step


class _Window:
    """Sums since the last line of metrics."""

    def __init__(self) -> None:
        self._sums: dict[str, list[float]] = {}

    def add(self, figures: Figures, gradient: float, seconds: float) -> None:
        for name, value in {**figures, "#gradient": gradient, "#seconds": seconds}.items():
            self._sums.setdefault(name, []).append(value)

    def report(self, step: int, steps: int, rate: float) -> Report:
        means = {name: sum(values) / len(values) for name, values in self._sums.items()}
        gradient, seconds = means.pop("#gradient"), means.pop("#seconds")
        return Report(step, steps, rate, gradient, seconds, means)


class _Metrics:
    """JSON lines; those of steps that are done again are dropped when a run goes on."""

    def __init__(self, path: Path, begin: int) -> None:
        self._path = path
        lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
        kept = [line for line in lines if _step_of(line) <= begin]
        if len(kept) != len(lines):
            path.write_text("".join(f"{line}\n" for line in kept), encoding="ascii")

    def write(self, report: Report) -> None:
        fields = {name: getattr(report, name) for name in ("step", "rate", "gradient", "seconds")}
        rounded = {name: round(value, 6) for name, value in {**fields, **report.figures}.items()}
        with self._path.open("a", encoding="ascii") as file:
            file.write(json.dumps(rounded | {"step": report.step}) + "\n")


def _step_of(line: str) -> float:
    """The step of a line; one torn by a kill is beyond every step."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
