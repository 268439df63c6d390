"""Whether counts follow a law: chi-square tests, many of them at once."""

from collections.abc import Mapping
from typing import TypeVar

import torch

__all__ = ["holm_rejects", "marginal", "p_value"]

Outcome = TypeVar("Outcome")
Tokens = TypeVar("Tokens", bound=tuple[int, ...])
Share = TypeVar("Share", int, float)


def p_value(counts: Mapping[Outcome, int], law: Mapping[Outcome, float]) -> float:
    """The chance of a chi-square statistic at least as large; 0 if something impossible was seen."""
    if any(law.get(outcome, 0.0) <= 0 for outcome in counts):
        return 0.0
    total = sum(counts.values())
    # Cells that expect fewer than five are pooled: the chi-square law is a limit.
    rare = [outcome for outcome in law if total * law[outcome] < 5]
    cells = [(counts.get(o, 0), total * law[o]) for o in law if o not in rare]
    if sum(law[o] for o in rare) > 0:
        cells.append((sum(counts.get(o, 0) for o in rare), total * sum(law[o] for o in rare)))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    half = torch.tensor([(len(cells) - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


def marginal(of: Mapping[Tokens, Share], *places: int) -> dict[tuple[int, ...], Share]:
    """Counts, or probabilities, of the tokens at these places alone."""
    found: dict[tuple[int, ...], Share] = {}
    for tokens, share in of.items():
        key = tuple(tokens[place] for place in places)
        found[key] = found[key] + share if key in found else share
    return found


def holm_rejects(values: list[float], false_alarm: float) -> bool:
    """Whether Holm's procedure rejects any hypothesis: its first step decides."""
    return min(values) <= false_alarm / len(values)
