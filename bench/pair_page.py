"""docs/reference/pair.md from the counts in pair.json; goals are judged by whole intervals."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Counts", "interval", "page", "tau"]

RESAMPLES = 2000

Counts = list[tuple[int, int]]
"""Emitted tokens and steps of every prompt."""

GOALS: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("hybrid", "procedural"): {"dflash": 7, "eagle3": 3, "mtp": 3},
    ("hybrid", "real"): {"dflash": 3},
}

PUBLISHED: Mapping[str, str] = {
    "layer ids off by -1": "-3 to -5 % (vLLM, pull request 40727)",
    "layer ids off by +1": "-3 to -5 % (vLLM, pull request 40727)",
    "rope base times 100": "-8 % (one report)",
    "window dropped": "4.57 to 3.27 at 6k tokens, 7.76 to 4.49 at 16k (lucebox, pull request 129)",
}
"""What others report of the same fault, in large models."""

HEAD = """# The shipped pair: acceptance, and what faults cost

`python bench/pair_acceptance.py page` writes it from `pair.json` beside it, which `arms` and `faults` of that
script measure: greedy, drafts of a fixed size (15 tokens of a block of 16; budget 32; K as named), at most
96 new tokens. tau is emitted tokens over steps, pooled over prompts, the bonus counted; intervals are
percentile bootstraps over prompts. Names and values of the prompts stand in no training text.

A goal is met where the whole interval is on its side. The target repeats itself on real text, which is why
n-grams win there. The published figures are of other models, by the reports whose numbers stand beside them:
they say how large an effect to expect, not what this pair should show.
"""


def tau(counts: Sequence[Sequence[int]]) -> float:
    """Tokens a step, pooled."""
    return sum(emitted for emitted, _ in counts) / sum(steps for _, steps in counts)


def interval(*arms: Counts, seed: int = 0) -> tuple[float, float]:
    """95 % of tau, or of the difference of the second arm's to the first's on prompts drawn together."""
    chance, found = random.Random(seed), []  # noqa: S311 - a resample
    numbers = range(len(arms[0]))
    for _ in range(RESAMPLES):
        drawn = chance.choices(numbers, k=len(numbers))
        taus = [tau([arm[number] for number in drawn]) for arm in arms]
        found.append(taus[-1] - taus[0] if len(arms) > 1 else taus[0])
    found.sort()
    return found[round(0.025 * RESAMPLES)], found[-1 - round(0.025 * RESAMPLES)]


def page(kept: Mapping[str, Any]) -> str:
    """The document of what is kept."""
    lines = [HEAD]
    for section, found in kept.items():
        kind, target, *rest = section.split("/")
        counts = found["counts"]
        size = len(next(iter(counts.values())))
        lines.append(f"## {target}: {f'methods, {rest[0]} prompts' if rest else 'faults'}\n")
        lines.append(f"{size} held-out prompts, {found['date']}, {found['machine']}.\n")
        goals = GOALS.get((target, rest[0]), {}) if rest else {}
        lines += arms_table(counts, goals) if kind == "arms" else faults_table(counts)
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def arms_table(counts: Mapping[str, Counts], goals: Mapping[str, float]) -> list[str]:
    """A row for each method; ``goals``: tau by method."""
    lines = ["| method | tau | 95 % | goal |", "|---|---|---|---|"]
    for name, each in counts.items():
        low, high = interval(each)
        goal = next((goals[method] for method in goals if name.startswith(method)), None)
        lines.append(f"| {name} | {tau(each):.2f} | {low:.2f} to {high:.2f} | {judged(goal, low, high)} |")
    return [*lines, "", *shares(counts)]


def shares(counts: Mapping[str, Counts]) -> list[str]:
    """What trees add to chains, and how far copying alone comes."""
    by_method = {name.split(",")[0]: tau(each) for name, each in counts.items()}
    tree, copied = (by_method[name] / by_method["dflash"] for name in ("ddtree", "ngram"))
    return [f"Against DFlash's tau: trees {tree:.2f} (goal: 1.15), copying {copied:.2f} (goal: 0.5 at most)."]


def judged(goal: float | None, low: float, high: float) -> str:
    """A goal of at least so much, and whether it is met."""
    if goal is None:
        return ""
    return f"{goal:g}: {'met' if low >= goal else 'missed' if high < goal else 'open'}"


def faults_table(counts: Mapping[str, Counts]) -> list[str]:
    """A row for each fault, against the right drafter on the same prompts."""
    right = counts["right"]
    lines = [
        f"The right drafter: tau {tau(right):.2f}.\n",
        "| fault | tau | of the right one | difference | 95 %, paired | published |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in counts.items():
        if name == "right":
            continue
        (low, high), now = interval(right, each), tau(each)
        share, change = f"{now / tau(right):.0%}", f"{now - tau(right):+.2f}"
        beside = PUBLISHED.get(name, "none known")
        lines.append(f"| {name} | {now:.2f} | {share} | {change} | {low:+.2f} to {high:+.2f} | {beside} |")
    return lines
