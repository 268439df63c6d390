"""What is compared: one arm for each method and drafter, all of them beside one loaded target."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from draftproof.config.drafter import Method
from draftproof.engine.engine import Engine
from draftproof.engine.methods import AUTO, METHODS, Attach, drafter_kind, prepare
from draftproof.engine.pairing import RefusedPair
from draftproof.engine.proposers.options import DraftOptions
from draftproof.errors import UsageError

__all__ = ["BASELINE", "Arm", "Wanted", "choose_arms"]

BASELINE = "ar"
"""The arm all others are held against: plain decoding by the same engine."""

_RUNS = {
    "dflash": Method.DFLASH,
    "ddtree": Method.DFLASH,
    "eagle3": Method.EAGLE3,
    "draft": Method.DRAFT_MODEL,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """An arm whose files and options have been checked; nothing large is loaded."""

    name: str
    method: str
    options: DraftOptions
    attach: Attach

    def beside(self, engine: Engine) -> "Arm":
        """Load the drafter beside the engine's target."""
        return Arm(self.name, engine.drafting(self.method, self.attach), self.options)


@dataclass(frozen=True, slots=True)
class Arm:
    """A method ready to run."""

    name: str
    engine: Engine
    options: DraftOptions

    @property
    def sizing(self) -> str:
        """Who says how much is drafted: ``given``, the ``controller``, or the ``method`` itself."""
        if self.options.is_sized:
            return "given"
        return "method" if self.engine.costs is None else "controller"


def choose_arms(
    target: Path, drafters: Sequence[Path], methods: Sequence[str] | None, *, budget: int | None = None
) -> list[Wanted]:
    """The arms, the baseline first; each method with every drafter it runs.

    Args:
        target: a directory or a GGUF file.
        drafters: their directories.
        methods: names of ``engine.methods.METHODS``, or ``auto``; None for all that can run here.
        budget: nodes of trees; None leaves sizes to the controller.

    Raises:
        UsageError: no such method, or none of the drafters is one it runs.
        CouldNotLook, RefusedInput: a drafter is not there, or does not go with the target.
    """
    kinds = [(drafter, drafter_kind(drafter)) for drafter in drafters]
    asked = [method for method in (METHODS if methods is None else methods) if method != BASELINE]
    arms = [_wanted(BASELINE, BASELINE, DraftOptions(target))]
    for method in dict.fromkeys(asked):
        if method not in METHODS and method != AUTO:
            raise _usage("--methods", ", ".join([*METHODS, AUTO]), repr(method))
        found = list(_arms_of(method, target, kinds, budget))
        if not found and methods is not None:
            raise _usage(f"method {method}", "a drafter it runs, with --drafter", "none")
        if methods is None and method == "mtp":
            arms += _if_there(found)
        else:
            arms += [_wanted(*each) for each in found]
    return arms


def _arms_of(
    method: str, target: Path, kinds: Sequence[tuple[Path, Method | None]], budget: int | None
) -> Iterator[tuple[str, str, DraftOptions]]:
    nodes = budget if method == "ddtree" else None
    if method in {"ngram", "mtp"}:
        yield method, method, DraftOptions(target)
        return
    runs = [drafter for drafter, kind in kinds if method == AUTO or kind is _RUNS[method]]
    for drafter in runs:
        name = method if len(runs) == 1 else f"{method}:{drafter.name}"
        yield name, method, DraftOptions(target, drafter, budget=nodes)


def _if_there(found: Sequence[tuple[str, str, DraftOptions]]) -> list[Wanted]:
    """The target's own head is tried without being asked for; most targets have none."""
    try:
        return [_wanted(*each) for each in found]
    except RefusedPair as refused:
        if refused.id != "mtp-missing":
            raise
        return []


def _wanted(name: str, method: str, options: DraftOptions) -> Wanted:
    chosen, attach = prepare(method, options)
    return Wanted(name, chosen, options, attach)


def _usage(subject: str, expected: str, found: str) -> UsageError:
    return UsageError(
        subject,
        expected=expected,
        found=found,
        where="command line",
        means="nothing was loaded and nothing was measured",
        next_step="draftproof bench --help",
    )
