"""How much to draft next: what promises most tokens a second, by what was kept so far and what steps cost.

A choice depends on steps already emitted and on a table of costs, never on the draft it is made for, so the
output keeps its distribution; with one table and one seed it is the same choice every time.
Source: expected tokens per cost: Leviathan et al. 2023, arXiv:2211.17192, section 3.3; CaDDTree,
arXiv:2606.01813.
Dimensions: N nodes drafted at most.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Protocol

from draftproof.errors import UsageError
from draftproof.speculation.ddtree import RoundCost

__all__ = ["ChainPace", "Pace", "StepCosts", "TreePace"]

_MEMORY = 0.97
"""What a step counts less for each step drafted after it: the last thirty or so decide."""

_PRIOR_RATE, _PRIOR_STEPS = 0.7, 2.0
"""Acceptance of a first token before anything is known, and how many tokens that belief is worth."""

_FIRST_REST, _LONGEST_REST = 4, 64
"""Steps without a draft after drafting did not pay; doubled each time it still does not."""


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Seconds of a step by the number of nodes drafted; measured once, or given."""

    draft_s: tuple[float, ...]
    """[N + 1], of making the draft; 0 where there is none."""

    verify_s: tuple[float, ...]
    """[N + 1], of all the rest; rising and convex."""

    def __post_init__(self) -> None:
        """Refuse what is no cost.

        Raises:
            UsageError: different lengths, or a step that takes no time.
        """
        lengths = len(self.draft_s), len(self.verify_s)
        if lengths[0] != lengths[1] or min(self.verify_s, default=0) <= 0 or min(self.draft_s) < 0:
            raise UsageError(
                "step costs",
                expected="a time for 0, 1, .. N nodes, verifying never free",
                found=f"{lengths[0]} for drafting, {lengths[1]} for verifying",
                where="the controller of the draft length",
                means="tokens a second cannot be foretold",
                next_step="leave them out: they are measured at load",
            )

    @classmethod
    def from_points(cls, draft: Mapping[int, float], verify: Mapping[int, float]) -> "StepCosts":
        """A table through measured points: straight between them, for verifying the convex hull from below.

        Args:
            draft: seconds by nodes, 0 not among them; taken as rising too.
            verify: seconds by nodes, 0 among them.
        """
        most = max(verify)
        drafting = dict(draft)
        drafting.setdefault(1, drafting[min(drafting)])
        drafting.setdefault(most, drafting[max(drafting)])
        return cls((0.0, *_straight(_hull(drafting))), tuple(_straight(_hull(verify))))

    @property
    def most(self) -> int:
        """N."""
        return len(self.verify_s) - 1

    def of(self, num_nodes: int) -> float:
        """Seconds of a whole step."""
        return self.draft_s[num_nodes] + self.verify_s[num_nodes]


def _hull(points: Mapping[int, float]) -> list[tuple[int, float]]:
    """The points on the lower convex hull, none below the one before it: noise is no gain."""
    rising = accumulate(sorted(points.items()), lambda one, other: (other[0], max(one[1], other[1])))
    hull: list[tuple[int, float]] = []
    for x, y in rising:
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return hull


def _slope(left: tuple[int, float], right: tuple[int, float]) -> float:
    return (right[1] - left[1]) / (right[0] - left[0])


def _straight(points: list[tuple[int, float]]) -> list[float]:
    """The value at every whole number between the first and the last point."""
    found = [points[0][1]]
    for left, right in pairwise(points):
        slope = _slope(left, right)
        found += [left[1] + slope * step for step in range(1, right[0] - left[0] + 1)]
    return found


class Pace(Protocol):
    """One request's choices."""

    def choose(self) -> int:
        """Nodes to draft in the next step at most; 0 for a plain step."""
        ...

    def learn(self, num_drafted: int, num_accepted: int, expected: float | None) -> None:
        """Note what became of a draft; ``expected`` is how many tokens its drafter thought would be kept."""
        ...


@dataclass(slots=True)
class _Rest:
    """Whether to draft at all: steps without a draft while it does not pay, and a trial now and then."""

    left: int = 0
    next_rest: int = _FIRST_REST

    def allows(self, *, pays: bool) -> bool:
        """Whether this step drafts: because it pays, or as a trial."""
        if self.left > 0:
            self.left -= 1
            return False
        if pays:
            self.next_rest = _FIRST_REST
        else:
            self.left, self.next_rest = self.next_rest, min(2 * self.next_rest, _LONGEST_REST)
        return True


class ChainPace:
    """Chooses the length of a chain by how often each position was kept.

    A position not drafted lately is believed to be kept as often as the one before it.
    """

    def __init__(self, costs: StepCosts, most: int) -> None:
        """Start with the prior belief; chains of ``most`` tokens at most."""
        self._costs, self._most = costs, most
        self._judged = [0.0] * most
        self._kept = [0.0] * most
        self._rest = _Rest()

    def choose(self) -> int:
        """Tokens to draft in the next step; 0 for none."""
        expected, chance, rate = 1.0, 1.0, _PRIOR_RATE
        best, best_worth = 1, 0.0
        for length in range(1, self._most + 1):
            kept, judged = self._kept[length - 1], self._judged[length - 1]
            rate = (kept + _PRIOR_STEPS * rate) / (judged + _PRIOR_STEPS)
            chance *= rate
            expected += chance
            worth = expected / self._costs.of(length)
            if worth > best_worth:
                best, best_worth = length, worth
        return best if self._rest.allows(pays=best_worth > 1 / self._costs.of(0)) else 0

    def learn(self, num_drafted: int, num_accepted: int, expected: float | None) -> None:
        """Note what became of a draft."""
        del expected
        self._judged = [_MEMORY * count for count in self._judged]
        self._kept = [_MEMORY * count for count in self._kept]
        for position in range(min(num_drafted, num_accepted + 1)):
            self._judged[position] += 1
            self._kept[position] += position < num_accepted


@dataclass(slots=True)
class TreePace:
    """Says how far a tree's own forecast is to be trusted, and whether trees pay at all."""

    costs: StepCosts
    most: int
    """Nodes of a tree at most."""

    _forecast: float = 0.0
    _kept: float = 0.0
    _emitted: float = 0.0
    _spent: float = 0.0
    _rest: _Rest = field(default_factory=_Rest)

    @property
    def round_cost(self) -> RoundCost:
        """What a node more costs."""
        return RoundCost(self.costs.draft_s[-1], self.costs.verify_s)

    @property
    def trust(self) -> float:
        """Drafted tokens kept for each one that the drafter expected to be kept."""
        return (self._kept + _PRIOR_STEPS) / (self._forecast + _PRIOR_STEPS)

    def choose(self) -> int:
        """Nodes allowed in the next step, 0 or all: the tree stops itself where a node more does not pay."""
        pays = self._emitted * self.costs.of(0) >= self._spent
        return self.most if self._rest.allows(pays=pays) else 0

    def learn(self, num_drafted: int, num_accepted: int, expected: float | None) -> None:
        """Note what became of a draft, and what its drafter expected to be kept of it."""
        if expected is None:
            raise ValueError("a tree is drafted with a forecast")
        self._forecast = _MEMORY * self._forecast + expected
        self._kept = _MEMORY * self._kept + num_accepted
        self._emitted = _MEMORY * self._emitted + num_accepted + 1
        self._spent = _MEMORY * self._spent + self.costs.draft_s[-1] + self.costs.verify_s[num_drafted]
