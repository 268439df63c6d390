"""``draftproof train``: a target, or a drafter for a target, from a recipe."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.engine_extra import require_engine
from draftproof.cli.output import emit_json, line
from draftproof.errors import UsageError

if TYPE_CHECKING:
    from draftproof.training.loop import Outcome, Report

__all__ = ["train"]

_WHAT = ("target", "dflash", "eagle3", "mtp")
_BAR = 24


def train(
    what: Annotated[str, typer.Argument(metavar="target|dflash|eagle3|mtp", help="What is trained.")],
    recipe: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="Everything the result depends on.")],
    *,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The run's directory; the result is DIR/model.")
    ] = Path("run"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that is in DIR.")] = False,
    stop_at: Annotated[
        int | None, typer.Option(metavar="N", help="End after N steps; --resume goes on from there.")
    ] = None,
    emit: Annotated[
        str | None,
        typer.Option(
            metavar="speculators|specforge",
            help="Train nothing: write configuration and data for that trainer into DIR.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Train from a recipe; a run that was cut goes on to the same bits."""
    require_engine()
    import torch

    if what not in _WHAT:
        raise _usage("WHAT", ", ".join(_WHAT), what)
    told = _Told(as_json=as_json)
    if emit is not None:
        return _emit(what, recipe, out, emit, told)
    if not resume and any((out / "snapshots").glob("step-*")):
        raise _usage("--out", "a directory without a run, or --resume", f"a run in {out}")
    torch.set_num_threads(1)  # small matrices: a second thread only waits for the first
    outcome = _trainer(what)(recipe, out, told, stop_at)
    figures = {} if outcome.last is None else dict(outcome.last.figures)
    if as_json:
        emit_json(
            {
                "schema": "draftproof.train/1",
                "what": what,
                "steps": outcome.step,
                "resumed_at": outcome.resumed_at,
                "figures": figures,
                "model": str(out / "model"),
            }
        )
    else:
        line(
            f"{outcome.step} steps, {outcome.resumed_at} of them before; the model is {out / 'model'}",
            style="good",
        )
    return 0


@dataclass(slots=True)
class _Told:
    """What is shown while it runs."""

    as_json: bool

    def report(self, report: "Report") -> None:
        """One line: how far, how good, how long still."""
        if self.as_json:
            return
        done = _BAR * report.step // report.steps
        figures = "  ".join(f"{name} {value:.3g}" for name, value in report.figures.items())
        left = (report.steps - report.step) * report.seconds
        bar = "#" * done + "." * (_BAR - done)
        line(f"[{bar}] {report.step}/{report.steps}  {figures}  {left / 60:.0f} min left")

    def answer(self, count: int) -> None:
        """How many answers the target has given."""
        if not self.as_json:
            line(f"{count} answers of the target")


def _trainer(what: str) -> "Callable[[Path, Path, _Told, int | None], Outcome]":
    from draftproof.training.drafters.train import Job, train_dflash, train_eagle3, train_mtp
    from draftproof.training.target_recipe import train_target

    def target(recipe: Path, out: Path, told: _Told, stop_at: int | None) -> "Outcome":
        return train_target(recipe, out, on_report=told.report, stop_at=stop_at)

    def drafter(run: Callable[[Job], "Outcome"]) -> "Callable[[Path, Path, _Told, int | None], Outcome]":
        return lambda recipe, out, told, stop_at: run(Job(recipe, out, told.report, told.answer, stop_at))

    known = {"target": target, "dflash": drafter(train_dflash), "eagle3": drafter(train_eagle3)}
    return {**known, "mtp": drafter(train_mtp)}[what]


def _emit(what: str, recipe: Path, out: Path, to: str, told: _Told) -> int:
    from draftproof.training.drafters.emit import FORMATS, emit

    if to not in FORMATS:
        raise _usage("--emit", ", ".join(FORMATS), to)
    if what not in {"dflash", "eagle3"}:
        raise _usage("--emit", "dflash or eagle3, which the other trainers make too", what)
    files = emit(what, recipe, out, to, on_answer=told.answer)
    if told.as_json:
        emit_json(
            {"schema": "draftproof.train/1", "what": what, "emitted": to, "files": [str(f) for f in files]}
        )
    else:
        for file in files:
            line(str(file))
    return 0


def _usage(subject: str, expected: str, found: str) -> UsageError:
    return UsageError(
        subject,
        expected=expected,
        found=found,
        where="command line",
        means="nothing was trained",
        next_step="draftproof train --help",
    )
