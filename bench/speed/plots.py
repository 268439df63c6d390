"""The plots of the page; needs the extra ``plot``."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from speed.summary import Record, Row, curve_of, rows_of

__all__ = ["write_plots"]


def write_plots(folder: Path, kept: Record) -> list[Path]:
    """A PNG for each part that was measured: tokens a second, forwards, growth."""
    drawn = {"tokens": _tokens, "forwards": _forwards, "growth": _growth}
    written = []
    for part, draw in drawn.items():
        if not kept.get(part):
            continue
        canvas = Canvas(figsize=(9, 4.8), layout="constrained")
        FigureCanvasAgg(canvas)
        draw(canvas, kept)
        written.append(folder / f"speed-{part}.png")
        # No dates or versions in the file: the same records give the same bytes.
        canvas.savefig(written[-1], dpi=110, metadata={"Software": None})
    return written


def _tokens(canvas: Canvas, kept: Record) -> None:
    """Bars of tokens a second, one group for each model and data type, by the clock rows are compared by."""
    rows = [row for row in rows_of(kept) if row.pace is not None]
    threads = sorted({row.threads for row in rows})
    panes = canvas.subplots(1, len(threads), squeeze=False)[0]
    for number, axes in zip(threads, panes, strict=True):
        _bars(axes, [row for row in rows if row.threads == number])
        clock = "CPU second, one thread" if number == 1 else f"second, {number} threads"
        axes.set_xlabel(f"tokens per {clock}; 95 % interval")
    panes[-1].legend(fontsize="small")


def _bars(axes: Any, rows: Sequence[Row]) -> None:
    groups = list(dict.fromkeys(f"{row.model}\n{row.dtype}" for row in rows))
    arms = list(dict.fromkeys(row.arm for row in rows))
    height = 0.8 / len(arms)
    for place, arm in enumerate(arms):
        mine = [row for row in rows if row.arm == arm]
        at = [groups.index(f"{row.model}\n{row.dtype}") + place * height for row in mine]
        figures = [(row.per_cpu_s if row.threads == 1 else row.per_s) for row in mine]
        shown = [figure for figure in figures if figure is not None]
        widths = [figure.value for figure in shown]
        spread = [[f.value - f.low for f in shown], [f.high - f.value for f in shown]]
        axes.barh(at, widths, height, xerr=spread, label=arm, capsize=2)
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(groups))], groups, fontsize="small")
    axes.invert_yaxis()


def _forwards(canvas: Canvas, kept: Record) -> None:
    """Cost in units of a forward over one token: a jump is a step of the line."""
    keys = list(dict.fromkeys((r["model"], r["dtype"], r["arm"], r["threads"]) for r in kept["forwards"]))
    arms = list(dict.fromkeys(arm for _, _, arm, _ in keys))
    panes = canvas.subplots(1, len(arms), sharey=True, squeeze=False)[0]
    for arm, axes in zip(arms, panes, strict=True):
        for model, dtype, _, threads in (key for key in keys if key[2] == arm):
            curve = curve_of(kept, model, dtype, arm, threads)
            name = f"{model} {dtype}" if threads == 1 else f"{model} {dtype}, {threads} threads"
            axes.plot(list(curve), [cost / curve[1] for cost in curve.values()], marker="o", label=name)
        axes.set_title(arm, fontsize="medium")
        axes.set_xlabel("tokens of a forward")
        axes.legend(fontsize="small")
    panes[0].set_ylabel("cost, a forward over one token = 1")


def _growth(canvas: Canvas, kept: Record) -> None:
    """Time and memory of one more token by context, both axes by factors."""
    time_axes, memory_axes = canvas.subplots(1, 2)
    records = kept["growth"]
    for model, dtype in dict.fromkeys((r["model"], r["dtype"]) for r in records):
        mine = [r for r in records if (r["model"], r["dtype"]) == (model, dtype)]
        contexts = [r["context"] for r in mine]
        held = [
            r["bytes_of_state"] + (r["bytes_held"] - r["bytes_of_state"]) / r["room"] * r["context"]
            for r in mine
        ]
        name = f"{model} {dtype}"
        time_axes.plot(contexts, [1e3 * median(r["cpu_s"]) for r in mine], marker="o", label=name)
        memory_axes.plot(contexts, [size / 2**20 for size in held], marker="o", label=name)
    for axes, said in ((time_axes, "CPU ms of one more token"), (memory_axes, "MiB held")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("context, tokens")
        axes.set_ylabel(said)
        axes.legend(fontsize="small")
