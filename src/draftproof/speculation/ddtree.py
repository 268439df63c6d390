"""The draft tree most worth verifying, from a block drafter's marginals and a node budget.

A block drafter gives one distribution per depth, none of which knows what the others chose. Under the
product of these marginals the expected number of accepted tokens is the sum of the probabilities of the
tree's nodes, so the best tree of B nodes holds the B most probable prefixes. Prefix probabilities fall
along both edges "next sibling" and "first child", hence a heap pops them in order.
Source: DDTree, liranringel/ddtree c96427a ddtree.py; stop rule: CaDDTree, arXiv:2606.01813.
Dimensions: H depths, V vocabulary, B node budget (the root is not counted), k = min(B, V) ranks a depth.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import NamedTuple

from torch import Tensor

from draftproof.errors import RefusedInput
from draftproof.speculation.ranks import Ranks
from draftproof.speculation.tree import DraftTree

__all__ = ["Grown", "RoundCost", "build", "grow"]


@dataclass(frozen=True, slots=True)
class RoundCost:
    """What one round costs, for weighing one node more against the time it takes to verify."""

    draft_s: float
    """Seconds for the drafter's pass; the same whatever the tree."""

    verify_s: Sequence[float]
    """[B + 1] seconds for verifying 0, 1, .. B nodes beside the root; rising and convex."""


class Grown(NamedTuple):
    """A tree, and what its own marginals promise of it."""

    tree: DraftTree
    expected: float
    """Drafted tokens kept, if the marginals were the truth: the sum of all nodes' probabilities."""


class _Candidate(NamedTuple):
    """A prefix that may become a node; compared by probability, then by its ranks from the root down."""

    cost: float
    """Minus the cumulative log-probability."""

    ranks: tuple[int, ...]
    """The rank chosen at each depth; its length is the candidate's depth."""

    parent: int
    """The node it would hang under."""


def build(
    draft_logits: Tensor, budget: int, *, spine: bool = False, round_cost: RoundCost | None = None
) -> DraftTree:
    """The tree alone of what ``grow`` returns.

    Raises:
        RefusedInput: as ``grow``.
    """
    return grow(draft_logits, budget, spine=spine, round_cost=round_cost).tree


def grow(
    draft_logits: Tensor,
    budget: int,
    *,
    spine: bool = False,
    round_cost: RoundCost | None = None,
    trust: float = 1.0,
) -> Grown:
    """The tree of at most ``budget`` nodes with the largest expected acceptance.

    Nodes are numbered in the order chosen, best first. Equal probabilities are taken in order of their
    rank paths, equal logits in order of token id. Prefixes the drafter gives no chance are left out.

    Args:
        draft_logits: [H, V]; row d is the drafter's marginal at depth d + 1. No temperature is applied.
        budget: nodes beside the root; 0 gives the root alone.
        spine: begin with the most probable chain whatever its score, as far as depth and budget allow.
        round_cost: stop as soon as one more node would lower the tokens expected a second.
        trust: for the stop, how many tokens are kept for each one the marginals promise.

    Raises:
        RefusedInput: not two dimensions, a negative budget, a row without a finite distribution, or
            costs for fewer nodes than the budget.
    """
    _check(draft_logits, budget, round_cost)
    if budget == 0 or draft_logits.shape[0] == 0:
        return Grown(DraftTree.empty(), 0.0)
    ranks = Ranks(draft_logits.float(), min(budget, draft_logits.shape[1]))
    if not ranks.is_finite:
        raise _refused("draft_logits", "a distribution in every row", "NaN, +infinity or nothing finite")
    growth = _Growth(ranks, budget, round_cost, trust)
    tree = growth.grow(spine=spine)
    return Grown(tree, growth.expected)


class _Growth:
    """One tree while it grows."""

    def __init__(self, ranks: Ranks, budget: int, round_cost: RoundCost | None, trust: float) -> None:
        self.ranks = ranks
        self.budget = budget
        self.round_cost = round_cost
        self.tokens: list[int] = []
        self.parents: list[int] = [-1]
        self.heap: list[_Candidate] = []
        self.trust = trust
        self.expected = 0.0

    def grow(self, *, spine: bool) -> DraftTree:
        first = _Candidate(-self.ranks.log_probs(0)[0], (0,), 0)
        following: _Candidate | None = first
        while spine and following and len(self.tokens) < self.budget and following.cost < math.inf:
            self._add(following)
            self._push(self._sibling(following))
            following = self._child(following, len(self.tokens))
        if not spine:
            self._push(first)
        while self.heap and len(self.tokens) < self.budget and self._is_worth(self.heap[0]):
            best = heapq.heappop(self.heap)
            self._add(best)
            self._push(self._sibling(best))
            self._push(self._child(best, len(self.tokens)))
        return DraftTree(self.tokens, self.parents)

    def _add(self, candidate: _Candidate) -> None:
        depth = len(candidate.ranks)
        self.tokens.append(self.ranks.token(depth - 1, candidate.ranks[-1]))
        self.parents.append(candidate.parent)
        self.expected += math.exp(-candidate.cost)

    def _push(self, candidate: _Candidate | None) -> None:
        if candidate is not None and candidate.cost < math.inf:
            heapq.heappush(self.heap, candidate)

    def _sibling(self, candidate: _Candidate) -> _Candidate | None:
        """The same parent with its next most probable token."""
        row, rank = self.ranks.log_probs(len(candidate.ranks) - 1), candidate.ranks[-1]
        if rank + 1 == len(row):
            return None
        cost = -(-candidate.cost - row[rank] + row[rank + 1])
        return _Candidate(cost, (*candidate.ranks[:-1], rank + 1), candidate.parent)

    def _child(self, candidate: _Candidate, node: int) -> _Candidate | None:
        """The candidate, now that it is a node, followed by the next depth's most probable token."""
        depth = len(candidate.ranks)
        if depth == self.ranks.num_depths:
            return None
        gain = self.ranks.log_probs(depth)[0]
        return _Candidate(-(-candidate.cost + gain), (*candidate.ranks, 0), node)

    def _is_worth(self, candidate: _Candidate) -> bool:
        """Whether one node more raises the tokens expected a second."""
        if self.round_cost is None:
            return True
        now, then = (
            self.round_cost.draft_s + self.round_cost.verify_s[len(self.tokens) + more] for more in (0, 1)
        )
        tokens = 1 + self.trust * self.expected  # the target adds one of its own
        return (tokens + self.trust * math.exp(-candidate.cost)) * now > tokens * then


def _check(draft_logits: Tensor, budget: int, round_cost: RoundCost | None) -> None:
    if draft_logits.dim() != 2 or draft_logits.shape[1] == 0:  # noqa: PLR2004 - [H, V] is two dimensions
        raise _refused("draft_logits", "[depths, vocabulary]", tuple(draft_logits.shape))
    if index(budget) < 0:
        raise _refused("budget", "0 nodes or more", budget)
    if round_cost is not None and len(round_cost.verify_s) <= budget:
        raise _refused(
            "round_cost.verify_s", f"{budget + 1} costs, for 0..{budget} nodes", len(round_cost.verify_s)
        )


def _refused(subject: str, expected: str, found: object) -> RefusedInput:
    return RefusedInput(
        subject,
        expected=expected,
        found=repr(found) if not isinstance(found, str) else found,
        where="building a draft tree",
        means="no tree is built and nothing is verified",
        next_step="check the drafter's output and the node budget",
    )
