"""The bench as one HTML file that needs nothing else: a table, and bars drawn in it."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from draftproof.engine.bench.measure import PARTS

__all__ = ["page"]

_COLOURS = ("#4c78a8", "#54a24b", "#eeca3b", "#e45756", "#b7b7b7")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } th, td { padding: .3rem .6rem; text-align: right; }
th { border-bottom: 2px solid; } td { border-bottom: 1px solid #ccc; } td:first-child, th:first-child,
td:nth-child(2), th:nth-child(2) { text-align: left; } svg { width: 100%; height: auto; } .no { color: #c00; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } svg text { fill: #ddd; } }
"""
_HEADS = (
    "target",
    "method",
    "tokens/s",
    "95 % interval",
    "speedup",
    "tau",
    "95 % interval",
    "lossless",
    "outside forwards",
)
Arm = Mapping[str, Any]


def page(made: Mapping[str, Any]) -> str:
    """The whole file; made of a bench's document."""
    arms: Sequence[Arm] = made["arms"]
    machine = ", ".join(f"{name} {value}" for name, value in made["machine"].items())
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>draftproof bench</title><style>{_STYLE}</style><h1>draftproof bench</h1>",
        f"<p>{escape(machine)}</p>",
        _table(arms),
    ]
    for target in dict.fromkeys(arm["target"] for arm in arms):
        mine = [arm for arm in arms if arm["target"] == target]
        parts += [
            f"<h2>{escape(target)}</h2><p>{escape(mine[0]['prompts'])}, {escape(mine[0]['dtype'])}</p>",
            "<h3>Tokens a second</h3>",
            _bars([(arm["method"], [arm["tokens_per_s"]], f"{arm['tokens_per_s']:.0f}") for arm in mine]),
            "<h3>Milliseconds of a step: " + ", ".join(PARTS) + "</h3>",
            _bars([(arm["method"], *_stack(arm)) for arm in mine]),
            "<h3>Share of steps that kept more than i drafted tokens</h3>",
            _curves([arm for arm in mine if arm["per_position"]]),
        ]
    return "\n".join(parts) + "</html>\n"


def _table(arms: Sequence[Arm]) -> str:
    rows = ["<table><tr>" + "".join(f"<th>{head}</th>" for head in _HEADS) + "</tr>"]
    for arm in arms:
        cells = (
            escape(arm["target"]),
            escape(arm["method"]),
            f"{arm['tokens_per_s']:.1f}",
            _between(arm["tokens_per_s_interval"], 1),
            f"{arm['speedup']:.2f}",
            f"{arm['tau']:.2f}",
            _between(arm["tau_interval"], 2),
            _verdict(arm),
            f"{arm['outside_forwards']:.0%}",
        )
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return "".join(rows) + "</table>"


def _verdict(arm: Arm) -> str:
    found = arm["divergences"]
    if arm["lossless"]:
        return "yes"
    if not found["others"]:
        return f"near ties: {found['near_ties']}"
    return f'<b class="no">no: {found["others"]}</b>'


def _between(interval: Sequence[float], digits: int) -> str:
    return f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def _stack(arm: Arm) -> tuple[list[float], str]:
    values = [1e3 * arm["cost"][part] for part in PARTS]
    return values, f"{sum(values):.2f}"


def _bars(rows: Sequence[tuple[str, Sequence[float], str]]) -> str:
    """A bar for each row, its parts in turn, its number behind it."""
    most = max(sum(values) for _, values, _ in rows)
    drawn = [f'<svg viewBox="0 0 900 {26 * len(rows) + 4}" role="img">']
    for line, (name, values, label) in enumerate(rows):
        x, y = 160.0, 26 * line
        drawn.append(f'<text x="150" y="{y + 17}" text-anchor="end" font-size="14">{escape(name)}</text>')
        for value, colour in zip(values, _COLOURS, strict=False):
            width = 640 * value / most
            drawn.append(f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="19" fill="{colour}"/>')
            x += width
        drawn.append(f'<text x="{x + 8:.1f}" y="{y + 17}" font-size="14">{escape(label)}</text>')
    return "".join(drawn) + "</svg>"


def _curves(arms: Sequence[Arm]) -> str:
    """Acceptance by position, a line for each arm."""
    if not arms:
        return "<p>Nothing was drafted.</p>"
    longest = max(len(arm["per_position"]) for arm in arms)
    step = 640 / max(longest - 1, 1)
    drawn = ['<svg viewBox="0 0 900 250" role="img">']
    for share in (0.0, 0.5, 1.0):
        y = 220 - 200 * share
        drawn.append(f'<line x1="60" x2="700" y1="{y}" y2="{y}" stroke="#bbb"/>')
        drawn.append(f'<text x="50" y="{y + 5}" text-anchor="end" font-size="13">{share:.0%}</text>')
    for number, arm in enumerate(arms):
        colour = _COLOURS[number % len(_COLOURS)]
        dash = "" if number < len(_COLOURS) else ' stroke-dasharray="6 3"'
        points = " ".join(
            f"{60 + step * i:.1f},{220 - 200 * share:.1f}" for i, share in enumerate(arm["per_position"])
        )
        drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2.5"{dash} points="{points}"/>')
        x, y = 720, 24 + 20 * number
        drawn.append(f'<line x1="{x}" x2="{x + 22}" y1="{y - 5}" y2="{y - 5}" stroke="{colour}"{dash}/>')
        drawn.append(f'<text x="{x + 28}" y="{y}" font-size="14">{escape(arm["method"])}</text>')
    return "".join(drawn) + "</svg>"
