"""docs/reference/speed.md, its rows as CSV and its plots, from the records."""

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from speed.arms import BASELINE, OURS
from speed.figures import Figure
from speed.plots import write_plots
from speed.summary import Goal, Record, Row, curve_of, goals, rows_of

__all__ = ["page", "write_page"]

_FIELDS = ("model", "dtype", "threads", "arm", "round", "tokens", "wall_s", "cpu_s", "outside_forwards")
_FIELDS_AFTER = ("shared", "refused", "date", "load")

_HEADS = ("model", "data", "engine", "tokens/s", "per CPU second")

_HEAD = """# Speed beside other engines

`python bench/engine_speed.py page` writes this page, its plots and `speed.csv` from `speed.json`, which the
other parts of that script measure. Every engine has a process of its own, gets the same weights, data type
and threads, and they take turns; the first round warms up. Greedy, a prompt of 32 random tokens, 128 new ones
unless the CSV says otherwise, prompt included in the time. Figures are medians over rounds with 95 %
percentile bootstrap intervals. The machine is shared: on one thread engines are compared by CPU time, on two
by the wall, and each row says what the load was. "Its tokens" counts the first tokens that are the same as
transformers': engines that run the same weights part only where two logits lie closer than rounding.
"""
_GROWTH = """
Attention reads every key and value again for each token, so on the dense model both time and memory grow in
proportion to the context once that reading outweighs the weights. On the hybrid three layers of four keep a
state of fixed size instead: a quarter of the layers grow, and a context has to be four times as long to cost
the same. Memory is that of a session with exactly the room it needs. Where room has to grow it doubles, so
up to half of what is held may be unused; a token is then copied once on average.
"""


def write_page(folder: Path, kept: Record) -> list[Path]:
    """The page and what belongs to it.

    Args:
        folder: of ``speed.json``.
        kept: what is in it.
    """
    written = [folder / "speed.md", folder / "speed.csv"]
    written[0].write_text(page(kept), encoding="utf-8")
    with written[1].open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, (*_FIELDS, *_FIELDS_AFTER), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(kept.get("tokens", []))
    return written + write_plots(folder, kept)


def page(kept: Record) -> str:
    """The text."""
    rows = rows_of(kept)
    parts = [_HEAD, _machine(kept["machine"])]
    for threads in sorted({row.threads for row in rows}):
        parts += [
            f"## Tokens a second, threads: {threads}\n",
            _tokens([r for r in rows if r.threads == threads]),
        ]
        parts += [_bandwidth(kept, threads), f"### Goals, threads: {threads}\n", _goals(goals(kept, threads))]
    parts += [_plot(kept, "tokens"), "## Forwards over 1 to 32 tokens\n", _forwards(kept)]
    parts += ["## What a longer context costs\n", _GROWTH.lstrip(), _growth(kept)]
    return "\n".join(parts)


def _machine(machine: Record) -> str:
    said = f"Machine: {machine['processor']}, {machine['cores']} cores, {', '.join(machine['has'])}."
    if "avx512_bf16" in machine["has_not"]:
        said += (
            " It has no bfloat16 instructions: products of bfloat16 weights are made of 32-bit ones, each"
            " engine in its own way, and rows in bfloat16 say little about machines that have them."
        )
    return said + "\n"


def _tokens(rows: Sequence[Row]) -> str:
    return _table(
        (*_HEADS, "times transformers", "its tokens", "roofline", "measured"),
        [_cells(row) for row in rows],
    )


def _cells(row: Row) -> tuple[str, ...]:
    head = (row.model, row.dtype, row.arm)
    if row.per_s is None or row.per_cpu_s is None:
        return (*head, f"cannot: {_plain(row.note)}", *[""] * 4, row.when)
    share = "" if row.roof is None or row.pace is None else f"{row.pace / row.roof:.0%} of {row.roof:.0f}"
    ratio = "" if row.ratio is None else _figure(row.ratio, 2)
    return (*head, _figure(row.per_s, 1), _figure(row.per_cpu_s, 1), ratio, row.shared, share, row.when)


def _bandwidth(kept: Record, threads: int) -> str:
    read = [r for r in kept["bandwidth"] if r["threads"] == threads]
    if not read:
        return ""
    return (
        f"The roofline is {read[0]['bytes_per_s'] / 1e9:.1f} GB/s, as measured here ({read[0]['way']} over "
        "512 MiB), divided by the bytes of all weights in the data type; models of a few MB stay in the "
        "cache and may go beyond it. llama.cpp's weights have 4 bits, so its share means nothing.\n"
    )


def _goals(found: Sequence[Goal]) -> str:
    verdicts = {True: "met", False: "missed", None: "open"}
    rows = [(goal.what, goal.wanted, _plain(goal.found), verdicts[goal.holds]) for goal in found]
    return _table(("goal", "wanted", "found", ""), rows)


def _forwards(kept: Record) -> str:
    """Milliseconds, and in brackets in units of a forward over one token."""
    records = kept.get("forwards", [])
    keys = dict.fromkeys((r["model"], r["dtype"], r["arm"], r["threads"]) for r in records)
    sizes = sorted({r["rows"] for r in records})
    rows = []
    for model, dtype, arm, threads in keys:
        curve = curve_of(kept, model, dtype, arm, threads)
        cells = [f"{curve[n]:.1f} ({curve[n] / curve[1]:.2f})" if n in curve else "" for n in sizes]
        rows.append((model, dtype, str(threads), arm, *cells))
    table = _table(("model", "data", "threads", "engine", *(str(size) for size in sizes)), rows)
    said = (
        "Median milliseconds of a forward behind 124 tokens, with its commit (CPU time on one thread, the "
        f"wall on more), and in brackets in units of a forward over one. {OURS} and {BASELINE} alone: the "
        "others run requests, not forwards of a size one chooses.\n"
    )
    return f"{said}\n{table}\n{_plot(kept, 'forwards')}"


def _growth(kept: Record) -> str:
    rows = []
    for r in kept.get("growth", []):
        per_token = (r["bytes_held"] - r["bytes_of_state"]) / r["room"]
        rows.append(
            (
                r["model"],
                r["dtype"],
                str(r["context"]),
                f"{1e3 * median(r['cpu_s']):.2f}",
                f"{1e3 * median(r['wall_s']):.2f}",
                f"{per_token:.0f}",
                f"{r['bytes_of_state'] / 1024:.0f}",
                f"{(r['bytes_of_state'] + per_token * r['context']) / 2**20:.2f}",
                f"{1e3 * r['prefill_cpu_s'] / r['context']:.3f}",
                f"{r['date']}, load {r['load']}",
            )
        )
    heads = ("model", "data", "context", "CPU ms a token", "wall ms", "bytes a token", "KiB of state")
    table = _table((*heads, "MiB at this context", "CPU ms a prompt token", "measured"), rows)
    return f"{table}\n{_plot(kept, 'growth')}"


def _plot(kept: Record, part: str) -> str:
    """A link to the part's plot, where there is one."""
    return f"![{part}](speed-{part}.png)\n" if kept.get(part) else "Not measured yet.\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if any(len(row) != len(heads) for row in rows):
        raise ValueError(f"rows of another width than {heads}")
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _figure(figure: Figure, digits: int) -> str:
    return f"{figure.value:.{digits}f} ({figure.low:.{digits}f} to {figure.high:.{digits}f})"


def _plain(text: Any) -> str:
    """A peer's words in a table's cell."""
    return str(text).replace("|", "/").replace("<", "(").replace(">", ")")
