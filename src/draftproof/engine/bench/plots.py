"""The bench as pictures for papers and slides; needs the extra ``plot``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from draftproof.engine.bench.measure import PARTS

__all__ = ["write_plots"]

Arm = Mapping[str, Any]


def write_plots(folder: Path, made: Mapping[str, Any]) -> list[Path]:
    """A PNG for tokens a second, one for what a step is spent on, one for acceptance by position.

    Args:
        folder: where they are written, with the target's name in theirs where there are several.
        made: a bench's document.
    """
    arms: Sequence[Arm] = made["arms"]
    targets = list(dict.fromkeys(arm["target"] for arm in arms))
    written = []
    for number, target in enumerate(targets):
        mine = [arm for arm in arms if arm["target"] == target]
        tail = "" if len(targets) == 1 else f"-{number}"
        for name, draw in (("speed", _speed), ("cost", _cost), ("acceptance", _acceptance)):
            figure = Figure(figsize=(8, 4.5), layout="constrained")
            FigureCanvasAgg(figure)
            axes = figure.add_subplot()
            draw(axes, mine)
            axes.set_title(target, fontsize="medium")
            written.append(folder / f"{name}{tail}.png")
            figure.savefig(written[-1], dpi=150)
    return written


def _speed(axes: Any, arms: Sequence[Arm]) -> None:
    names, values = [arm["method"] for arm in arms], [arm["tokens_per_s"] for arm in arms]
    spread = [
        [arm["tokens_per_s"] - arm["tokens_per_s_interval"][0] for arm in arms],
        [arm["tokens_per_s_interval"][1] - arm["tokens_per_s"] for arm in arms],
    ]
    axes.barh(names, values, xerr=[[max(0.0, value) for value in side] for side in spread], capsize=3)
    axes.invert_yaxis()
    axes.set_xlabel("tokens a second, 95 % interval over prompts")


def _cost(axes: Any, arms: Sequence[Arm]) -> None:
    names, left = [arm["method"] for arm in arms], [0.0] * len(arms)
    for part in PARTS:
        widths = [1e3 * arm["cost"][part] for arm in arms]
        axes.barh(names, widths, left=left, label=part)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds of a step")
    axes.legend()


def _acceptance(axes: Any, arms: Sequence[Arm]) -> None:
    for arm in arms:
        if arm["per_position"]:
            axes.plot(arm["per_position"], marker="o", label=arm["method"])
    axes.set_ylim(0, 1)
    axes.set_xlabel("drafted position")
    axes.set_ylabel("share of steps that kept it")
    if axes.lines:
        axes.legend()
