"""One target on the bench: arms chosen, checked, loaded beside it, run in turns and measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from draftproof.engine.bench.arms import Arm, Wanted, choose_arms
from draftproof.engine.bench.lossless import divergences, noise_bound
from draftproof.engine.bench.measure import measure
from draftproof.engine.bench.prompts import BenchPrompt
from draftproof.engine.bench.report import TargetReport
from draftproof.engine.bench.run import run_all
from draftproof.engine.bench.tune import held_out, tuned
from draftproof.engine.engine import Engine

__all__ = ["Bench", "Progress", "bench_target"]

Progress = Callable[[str, int, int], None]
"""Told what is running, how many runs are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What is asked, and how often."""

    prompts: Sequence[BenchPrompt]
    source: str
    """Where the prompts came from, for the report."""

    methods: Sequence[str] | None = None
    """None for all that can run."""

    max_new_tokens: int = 128
    rounds: int = 3
    budget: int | None = None
    tune: bool = False
    """Choose the size of every arm's drafts on a quarter of the prompts, and measure on the others."""

    dtype: str | None = None
    device: str = "cpu"


def bench_target(
    name: str, target: Path, drafters: Sequence[Path], asked: Bench, progress: Progress
) -> TargetReport:
    """Measure every arm on one target.

    Args:
        name: of the target, for the report.
        target: its directory or GGUF file.
        drafters: directories of drafters.
        asked: prompts and rounds.
        progress: told after every run.

    Raises:
        CouldNotLook, RefusedInput: a file is not there or not what it must be; nothing large is loaded then.
        UsageError: a method without a drafter, or too few prompts to tune on.
    """
    wanted = choose_arms(target, drafters, asked.methods, budget=asked.budget)
    choosing, measuring = held_out(asked.prompts) if asked.tune else ([], list(asked.prompts))
    with_text = any(prompt.text is not None for prompt in asked.prompts)
    engine = Engine.load(target, device=asked.device, dtype=asked.dtype, with_text=with_text)
    arms, sizing = [], {}
    for number, each in enumerate(wanted):
        progress(f"{name}: {'tuning' if asked.tune else 'loading'} {each.name}", number, len(wanted))
        arm = _loaded(each, engine, choosing, asked)
        sizing[arm.name] = "tuned" if arm.options != each.options else arm.sizing
        arms.append(arm)
    runs, total = [], len(arms) * len(measuring) * asked.rounds
    for run in run_all(arms, measuring, rounds=asked.rounds, max_new_tokens=asked.max_new_tokens):
        runs.append(run)
        progress(f"{name}: {run.arm}", len(runs), total)
    bound = noise_bound(engine.target, runs)
    return TargetReport(
        target=name,
        arms=arms,
        runs=runs,
        measured=measure(runs),
        divergences=divergences(engine.target, runs, bound),
        noise_bound=bound,
        prompts=f"{_counted(len(measuring), 'prompt')} ({asked.source}), {asked.max_new_tokens} new tokens "
        f"at most, {_counted(asked.rounds, 'round')}",
        sizing=sizing,
    )


def _loaded(wanted: Wanted, engine: Engine, choosing: Sequence[BenchPrompt], asked: Bench) -> Arm:
    if asked.tune:
        wanted = tuned(wanted, engine, choosing, max_new_tokens=asked.max_new_tokens)
    return wanted.beside(engine)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
