"""What a step costs by the number of nodes drafted and by how many tokens stand before it.

Source: the lower hull: CaDDTree, arXiv:2606.01813, which wants verifying to be convex in the nodes.
Dimensions: N nodes drafted at most.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Self

from draftproof.errors import UsageError

__all__ = ["StepCosts"]


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Seconds of a step by the number of nodes drafted; measured once, or given."""

    draft_s: tuple[float, ...]
    """[N + 1], of making the draft; 0 where there is none."""

    verify_s: tuple[float, ...]
    """[N + 1], of all the rest; rising and convex."""

    length: int = 0
    """Tokens committed before the steps that were timed."""

    far: "StepCosts | None" = None
    """The same behind more tokens, for as many nodes; None: what is said holds for every length."""

    chain: "StepCosts | None" = None
    """Of chains, where these are trees and the same source drafts both."""

    def __post_init__(self) -> None:
        """Refuse what is no cost.

        Raises:
            UsageError: different lengths, a step that takes no time, or a ``far`` that is no further.
        """
        far = self.far
        if far is not None and (far.length <= self.length or far.most != self.most):
            raise UsageError(
                "step costs",
                expected=f"a second table for {self.most} nodes too, behind more than {self.length} tokens",
                found=f"one for {far.most} nodes, behind {far.length} tokens",
                where="the controller of the draft length",
                means="no line goes through the two",
                next_step="leave them out: they are measured at load",
            )
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
    def from_points(cls, draft: Mapping[int, float], verify: Mapping[int, float], *, length: int = 0) -> Self:
        """A table through measured points: straight between them, for verifying the convex hull from below.

        Args:
            draft: seconds by nodes, 0 not among them; taken as rising too.
            verify: seconds by nodes, 0 among them.
            length: tokens committed before the steps that were timed.
        """
        most = max(verify)
        drafting = dict(draft)
        drafting.setdefault(1, drafting[min(drafting)])
        drafting.setdefault(most, drafting[max(drafting)])
        return cls((0.0, *_straight(_hull(drafting))), tuple(_straight(_hull(verify))), length)

    @property
    def most(self) -> int:
        """N."""
        return len(self.verify_s) - 1

    def at(self, length: int) -> "StepCosts":
        """The costs behind so many tokens: on the line through the two that were timed, rising and convex."""
        far = self.far
        if far is None or length <= self.length:
            return self
        share = (length - self.length) / (far.length - self.length)
        drafting = _between(self.draft_s, far.draft_s, share)
        # Beyond the second length the line magnifies noise, and a larger tree might seem cheaper.
        verifying = dict(enumerate(_between(self.verify_s, far.verify_s, share)))
        return StepCosts(drafting, tuple(_straight(_hull(verifying))), length)

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


def _between(near: tuple[float, ...], far: tuple[float, ...], share: float) -> tuple[float, ...]:
    """Noise makes no long context cheaper than a short one."""
    return tuple(a + share * max(b - a, 0.0) for a, b in zip(near, far, strict=True))
