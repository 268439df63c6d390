"""``draftproof bench``: drafting methods side by side on one target."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from draftproof.cli.device_option import Device, Dtype
from draftproof.cli.engine_extra import require_engine
from draftproof.cli.output import emit_json, line
from draftproof.errors import CouldNotLook, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from draftproof.engine.bench.bench import Bench
    from draftproof.engine.bench.prompts import BenchPrompt
    from draftproof.engine.bench.report import TargetReport

__all__ = ["bench"]

_DEFAULT_COUNT = 8
_DEFAULT_TARGET, _DEFAULT_SET = "hybrid", "procedural"
_NO_PLOT = "no PNG was drawn: pip install 'draftproof[plot]'"


def bench(
    *,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR|GGUF|hybrid|dense", help="A target, or a shipped one; the shipped hybrid otherwise."
        ),
    ] = None,
    drafter: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="A drafter of that target; repeatable.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,..", help="ar, ngram, mtp, eagle3, draft, dflash, ddtree, auto; all that can run."
        ),
    ] = None,
    prompts: Annotated[
        str, typer.Option(metavar="FILE|N", help="JSON lines with prompt or prompt_ids, or how many shipped.")
    ] = str(_DEFAULT_COUNT),
    prompt_set: Annotated[
        str | None,
        typer.Option("--set", metavar="procedural|real", help="Which shipped prompts; procedural otherwise."),
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(metavar="N", help="Tokens of each answer at most.")] = 128,
    rounds: Annotated[int, typer.Option(metavar="R", help="How often each prompt is asked.")] = 3,
    budget: Annotated[
        int | None, typer.Option(metavar="N", help="Nodes of ddtree's trees; its controller's otherwise.")
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Fix every size by a quarter of the prompts; measure on the rest.")
    ] = False,
    threads: Annotated[int, typer.Option(metavar="N", help="Threads of the CPU.")] = 1,
    device: Device = "cpu",
    dtype: Dtype = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write bench.json, runs.csv, bench.html and plots.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Measure what drafting is worth here, with the tokens compared to plain decoding's."""
    require_engine()
    import torch

    from draftproof.engine.bench.bench import Bench
    from draftproof.engine.bench.report import document

    _check(rounds=rounds, max_new_tokens=max_new_tokens, threads=threads)
    if tune and budget is not None:
        raise _usage("--tune", "no --budget beside it", f"--budget {budget}")
    torch.set_num_threads(threads)
    asked_prompts, source = _prompts(prompts, prompt_set)
    asked = Bench(
        asked_prompts,
        source,
        methods=None if methods is None else [name.strip() for name in methods.split(",")],
        max_new_tokens=max_new_tokens,
        rounds=rounds,
        budget=budget,
        tune=tune,
        dtype=dtype,
        device=device,
    )
    reports = _measured(target, drafter or [], asked, as_json=as_json)
    made = document(reports)
    if out is not None:
        _write(out, made, reports, as_json=as_json)
    if as_json:
        emit_json(made)
    else:
        _show(made)
    arms: list[Any] = made["arms"]  # type: ignore[assignment]  # a list by its schema
    return 1 if any(arm["divergences"]["others"] for arm in arms) else 0


def _measured(
    targets: "list[str] | None", drafters: list[Path], asked: "Bench", *, as_json: bool
) -> "list[TargetReport]":
    """Every target's arms, with a progress bar where somebody watches."""
    from draftproof.engine.bench.bench import bench_target
    from draftproof.engine.bench.shipped import SHIPPED, shipped_pair

    found = []
    for name in targets or (_DEFAULT_TARGET,):
        if name in SHIPPED:
            folder, own = shipped_pair(name)
            found.append((name, folder, [*own, *drafters]))
        else:
            found.append((name, Path(name), drafters))
    with _Bar(shown=not as_json and sys.stderr.isatty()) as bar:
        return [bench_target(name, folder, own, asked, bar.told) for name, folder, own in found]


class _Bar:
    """A progress bar on standard error, or nothing."""

    def __init__(self, *, shown: bool) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._progress = Progress(console=Console(stderr=True), disable=not shown, transient=True)
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @property
    def told(self) -> "Callable[[str, int, int], None]":
        """Shows what is running."""
        from rich.markup import escape

        return lambda what, done, total: self._progress.update(
            self._task, description=escape(what), completed=done, total=total
        )


def _prompts(source: str, prompt_set: str | None) -> "tuple[Sequence[BenchPrompt], str]":
    from draftproof.engine.bench.prompts import read_prompts, shipped_prompts

    if source.isascii() and source.isdigit():
        name = _DEFAULT_SET if prompt_set is None else prompt_set
        return shipped_prompts(name, int(source)), f"shipped, {name}"
    if prompt_set is not None:
        raise _usage("--set", "--prompts N beside it, how many of them", f"--prompts {source}")
    return read_prompts(Path(source)), Path(source).name


def _write(folder: Path, made: "dict[str, Any]", reports: "Sequence[TargetReport]", *, as_json: bool) -> None:
    """All files of a bench; what is not drawn is said."""
    from draftproof.engine.bench.page import page
    from draftproof.engine.bench.report import write_csv, write_json

    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "bench.json", made)
        write_csv(folder / "runs.csv", reports)
        (folder / "bench.html").write_text(page(made), encoding="utf-8")
        if find_spec("matplotlib") is None:
            line(_NO_PLOT, style="warning", to_stderr=True)
        else:
            from draftproof.engine.bench.plots import write_plots

            write_plots(folder, made)
    except OSError as error:
        raise CouldNotLook(
            "--out",
            expected="a directory that can be written",
            found=error.strerror or type(error).__name__,
            where=str(folder),
            means="the bench ran; its numbers are not kept",
            next_step="name another directory",
        ) from error
    if not as_json:
        line(f"written: {folder / 'bench.html'}, and beside it bench.json, runs.csv", style="dim")


def _show(made: "dict[str, Any]") -> None:
    """The table of a bench."""
    line(_row("target", "method", "tokens/s", "speedup", "tau", "same text", "draft", "verify", "rest"))
    for arm in made["arms"]:
        off, cost = arm["divergences"], arm["cost"]
        rest = sum(cost.values()) - cost["draft"] - cost["verify"]
        row = _row(
            Path(arm["target"]).name,
            arm["method"],
            f"{arm['tokens_per_s']:.1f}",
            f"{arm['speedup']:.2f} {_between(arm['speedup_interval'])}",
            f"{arm['tau']:.2f} {_between(arm['tau_interval'])}",
            "yes" if arm["lossless"] else f"ties {off['near_ties']}" if not off["others"] else "NO",
            *(f"{1e3 * seconds:.2f}" for seconds in (cost["draft"], cost["verify"], rest)),
        )
        line(row, style="error" if off["others"] else None)
    line(f"{made['arms'][0]['prompts']}; medians (95 % over prompts)", style="dim")
    line("tau: tokens a step; draft, verify, rest: milliseconds of a step", style="dim")


def _row(*cells: str) -> str:
    target, method, pace, speedup, tau, same, *costs = cells
    numbers = " ".join(f"{each:>7}" for each in costs)
    return f"{target:<12} {method:<10} {pace:>9}  {speedup:<20} {tau:<20} {same:<9} {numbers}"


def _between(interval: "Sequence[float]") -> str:
    """Nothing where there is none: the baseline, or a single prompt."""
    low, high = interval
    return "" if low == high else f"({low:.2f} to {high:.2f})"


def _check(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise _usage(f"--{name.replace('_', '-')}", "1 or more", str(count))


def _usage(subject: str, expected: str, found: str) -> UsageError:
    return UsageError(
        subject,
        expected=expected,
        found=found,
        where="command line",
        means="nothing was loaded and nothing was measured",
        next_step="draftproof bench --help",
    )
