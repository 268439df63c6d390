"""Rows of ids that are said again, as they were or in another case: what copying is learned from first.

Documents are copied from in ways that need copying learned already; a net without it learns what they look
like and stays there. All of a drill but its first saying can be foreseen by copying alone.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["LENGTH", "Drills", "drills_over"]

LENGTH = 64
"""Ids of a row that is nothing but one drill."""

_SHORTEST = 8
"""Ids of one saying."""

_CHANGED = 0.25
"""How many are said again in another case."""


@dataclass(frozen=True, slots=True)
class Drills:
    """What drills are made of."""

    alike: tuple[tuple[int, ...], ...]
    """For every id those whose texts differ in case and space only, itself among them."""

    def row(self, draws: random.Random, length: int) -> tuple[list[int], list[bool]]:
        """So many ids, several drills one after another, and which of them are said again."""
        ids: list[int] = []
        again: list[bool] = []
        while len(ids) < length:
            saying = draws.sample(
                range(len(self.alike)), draws.randint(_SHORTEST, min(length, 2 * LENGTH) // 2)
            )
            changed = draws.random() < _CHANGED
            ids += saying
            ids += [draws.choice(self.alike[token]) for token in saying] if changed else saying
            again += [False] * len(saying) + [True] * len(saying)
        return ids[:length], again[:length]


def drills_over(texts: Sequence[str]) -> Drills:
    """Drills over ids by what each stands for."""
    groups: dict[str, list[int]] = {}
    folded = [text.strip().lower() or text for text in texts]
    for token, text in enumerate(folded):
        groups.setdefault(text, []).append(token)
    return Drills(tuple(tuple(groups[text]) for text in folded))
