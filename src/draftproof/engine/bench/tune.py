"""The size of an arm's drafts, chosen on prompts that are not measured afterwards."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from draftproof.engine.bench.arms import BASELINE, Arm, Wanted
from draftproof.engine.bench.measure import measure
from draftproof.engine.bench.prompts import BenchPrompt
from draftproof.engine.bench.run import run_all
from draftproof.engine.engine import Engine
from draftproof.engine.methods import prepare
from draftproof.errors import UsageError
from draftproof.speculation.pace import StepCosts

__all__ = ["held_out", "tuned"]

_NODES = (4, 8, 16, 32, 64)
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 15)
_SHARE = 4
"""One prompt in so many is held out."""


def held_out(prompts: Sequence[BenchPrompt]) -> tuple[list[BenchPrompt], list[BenchPrompt]]:
    """The prompts to choose on, and those to measure on.

    Raises:
        UsageError: fewer than two prompts.
    """
    if len(prompts) < 2:  # noqa: PLR2004 - one on each side
        raise UsageError(
            "--tune",
            expected="two prompts at least, one to choose on and one to measure",
            found=str(len(prompts)),
            where="command line",
            means="a size chosen on the measured prompts would flatter itself",
            next_step="give more prompts, or a --budget",
        )
    return list(prompts[::_SHARE]), [p for place, p in enumerate(prompts) if place % _SHARE]


def tuned(wanted: Wanted, engine: Engine, prompts: Sequence[BenchPrompt], *, max_new_tokens: int) -> Wanted:
    """The arm with the size of draft that wrote most tokens a second; itself where it has none to choose.

    Args:
        wanted: the arm; one whose size is given stays as it is.
        engine: holds the target.
        prompts: held out.
        max_new_tokens: of each request.
    """
    arm = wanted.beside(engine)
    if arm.engine.costs is None:
        return wanted
    rivals = {rival.name: rival for rival in _sizes(wanted, arm.engine.costs)}
    arms = [Arm(BASELINE, engine, wanted.options), *(rival.beside(engine) for rival in rivals.values())]
    found = measure(list(run_all(arms, prompts, rounds=1, max_new_tokens=max_new_tokens)))
    best = max(rivals, key=lambda name: found[name].tokens_per_s.value)
    return replace(rivals[best], name=wanted.name)


def _sizes(wanted: Wanted, costs: StepCosts) -> Iterator[Wanted]:
    is_tree = wanted.method == "ddtree"
    for size in _NODES if is_tree else _LENGTHS:
        if size <= costs.most:
            given = wanted.options
            options = replace(given, budget=size) if is_tree else replace(given, num_draft_tokens=size)
            yield Wanted(f"{wanted.name}-{size}", wanted.method, options, prepare(wanted.method, options)[1])
