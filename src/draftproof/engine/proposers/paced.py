"""A proposer told how much to draft, step by step, by a controller that learns from what was kept.

The choice is made before the draft and from emitted tokens alone. In a step without a draft the proposer is
not asked at all; the rows it would have read are kept for the next time it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from draftproof.engine.proposers.propose import Context, Proposal, Proposer, StartProposer
from draftproof.names import HiddenIndex
from draftproof.speculation.costs import StepCosts
from draftproof.speculation.ddtree import RoundCost
from draftproof.speculation.pace import ChainPace, Pace, RivalPace, TreeAdvice, TreePace
from draftproof.speculation.tree import DraftTree

__all__ = ["FixedPace", "Paceable", "Paced"]


@dataclass(frozen=True, slots=True)
class Paceable:
    """A source of drafts whose length nobody fixed; called, it makes a proposer that drafts all it may."""

    make: Callable[[TreeAdvice | None], Proposer]
    """One request's proposer; a source of trees is told by the controller what a node costs."""

    most: int
    """Nodes of a draft at most."""

    one_pass: bool
    """Whether a draft costs the same whatever its length, so that it is made whole and cut."""

    is_tree: bool = False
    most_in_chain: int | None = None
    """Of a source of trees that drafts chains as well, the controller saying which: their tokens at most."""

    def __call__(self) -> Proposer:
        """A proposer without a controller."""
        return self.make(None)

    def fixed(self, num_nodes: int, *, is_tree: bool) -> Proposer:
        """A proposer that always drafts so many nodes, for measuring."""
        pace = FixedPace(num_nodes, is_tree)
        return Paced(self.make(pace), pace, one_pass=self.one_pass)

    def paced(self, costs: StepCosts) -> StartProposer:
        """Proposers with a controller each."""
        most = min(self.most, costs.most)

        def start() -> Proposer:
            if not self.is_tree:
                return Paced(self.make(None), ChainPace(costs, most), one_pass=self.one_pass)
            if self.most_in_chain is None:
                tree: TreePace | RivalPace = TreePace(costs, most)
            else:
                tree = RivalPace(costs, most, min(self.most_in_chain, most))
            return Paced(self.make(tree), tree, one_pass=True)

        return start


@dataclass(frozen=True, slots=True)
class FixedPace:
    """No choice: always as many nodes."""

    num_nodes: int
    is_tree: bool = False
    round_cost: RoundCost | None = None
    trust: float = 1.0

    def choose(self, length: int) -> int:
        """Always the same."""
        del length
        return self.num_nodes

    def learn(self, num_drafted: int, num_accepted: int, expected: float | None) -> None:
        """Learn nothing."""


class Paced:
    """Asks an inner proposer for as much as the controller wants."""

    def __init__(self, inner: Proposer, pace: Pace, *, one_pass: bool) -> None:
        """Start a request; ``one_pass`` as in ``Paceable``."""
        self._inner, self._pace, self._one_pass = inner, pace, one_pass
        self._unread: list[Context] = []
        self._last: Proposal | None = None
        self._length = 0

    @property
    def captures(self) -> tuple[HiddenIndex, ...]:
        """As the inner proposer."""
        return self._inner.captures

    @property
    def with_normed(self) -> bool:
        """As the inner proposer."""
        return self._inner.with_normed

    def propose(self, context: Context) -> Proposal:
        """A draft of the size wanted, or the root alone."""
        if self._last is not None:
            accepted = len(context.tokens) - self._length - 1
            self._pace.learn(self._last.tree.num_draft_tokens, accepted, self._last.expected)
        self._length, self._last = len(context.tokens), None
        self._unread.append(context)
        limit = self._pace.choose(len(context.tokens)) if context.max_depth > 0 else 0
        if limit == 0:
            return Proposal(DraftTree.empty(), limit=0)
        depth = context.max_depth if self._one_pass else min(limit, context.max_depth)
        whole = self._inner.propose(replace(_joined(self._unread), max_depth=depth))
        self._unread.clear()
        self._last = replace(_cut(whole, limit), limit=limit)
        return self._last


def _joined(contexts: list[Context]) -> Context:
    """The last context with the rows of all of them."""
    last = contexts[-1]
    if len(contexts) == 1:
        return last
    parts = [context for context in contexts if context.captured or context.normed is not None]
    captured: dict[HiddenIndex, Tensor] = {}
    for index in last.captured:
        captured[index] = torch.cat([part.captured[index] for part in parts])
    normed = [part.normed for part in parts if part.normed is not None]
    return replace(last, captured=captured, normed=torch.cat(normed) if normed else None)


def _cut(proposal: Proposal, num_nodes: int) -> Proposal:
    """The first nodes of a draft: a parent stands before its children, so they are a tree too."""
    tree, probs = proposal.tree, proposal.draft_probs
    if tree.num_draft_tokens <= num_nodes:
        return proposal
    parents = tree.parents[: num_nodes + 1]
    return Proposal(
        DraftTree(tree.tokens[:num_nodes], parents),
        None if probs is None else probs[:num_nodes],
        expected=proposal.expected,
    )
