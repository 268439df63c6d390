"""How much to draft next: what promises most tokens a second, by what was kept so far and what steps cost.

A choice depends on steps already emitted and on a table of costs, never on the draft it is made for, so the
output keeps its distribution; with one table and one seed it is the same choice every time.
What drafting loses against plain decoding is a debt, and plain steps pay it off at a few percent each before
drafting is tried again: however bad a drafter, decoding is slower by little more than that.
Source: expected tokens per cost: Leviathan et al. 2023, arXiv:2211.17192, section 3.3; CaDDTree,
arXiv:2606.01813.
Dimensions: N nodes drafted at most.
"""

from dataclasses import dataclass
from typing import Protocol

from draftproof.speculation.costs import StepCosts
from draftproof.speculation.ddtree import RoundCost

__all__ = ["ChainPace", "Debt", "Pace", "RivalPace", "StepCosts", "TreeAdvice", "TreePace", "Yield"]

_MEMORY = 0.97
"""What a step counts less for each step drafted after it: the last thirty or so decide."""

_PRIOR_RATE, _PRIOR_STEPS = 0.7, 2.0
"""Acceptance of a first token before anything is known, and how many tokens that belief is worth."""

_PAYMENT = 0.03
"""The share of a plain step that pays off debt: what a drafter that is no good may cost."""

_MOST_OWED = 4.0
"""Plain steps of debt, or of gain to spend, at most; a good drafter has unlucky steps, too."""

_SPAN = 64
"""Tokens over which costs are taken for equal."""

_FIRST_LOOKS, _SECOND_LOOK = 3, 24
"""Steps in which chains and trees are tried in turn, and after how many the worse is tried again."""


class Pace(Protocol):
    """One request's choices."""

    def choose(self, length: int) -> int:
        """Nodes to draft at most in the next step, behind so many tokens; 0 for a plain step."""
        ...

    def learn(self, num_drafted: int, num_accepted: int, expected: float | None) -> None:
        """Note what became of a draft; ``expected`` is how many tokens its drafter thought would be kept."""
        ...


class TreeAdvice(Protocol):
    """What a source of trees is told."""

    @property
    def is_tree(self) -> bool:
        """Whether the next draft is a tree, and no chain."""
        ...

    @property
    def round_cost(self) -> RoundCost | None:
        """What a node more costs; None where the tree is to be whole."""
        ...

    @property
    def trust(self) -> float:
        """Drafted tokens kept for each one that the drafter expected to be kept."""
        ...


@dataclass(slots=True)
class Debt:
    """What drafting has lost against plain decoding and not won back."""

    owed_s: float = 0.0

    def allows(self, *, pays: bool, plain_s: float) -> bool:
        """Whether this step drafts: because it pays, or as a trial with nothing owed."""
        if self.owed_s <= 0 or (pays and self.owed_s < _MOST_OWED * plain_s):
            return True
        self.owed_s -= _PAYMENT * plain_s
        return False

    def add(self, num_emitted: int, spent_s: float, plain_s: float) -> None:
        """Note a drafted step."""
        owed = self.owed_s + spent_s - num_emitted * plain_s
        self.owed_s = max(owed, -_MOST_OWED * plain_s)


class _Local:
    """A table of costs where the text now ends."""

    def __init__(self, costs: StepCosts) -> None:
        self._costs, self._span = costs, -1
        self.now = costs

    def move(self, length: int) -> StepCosts:
        if length // _SPAN != self._span:
            self._span = length // _SPAN
            self.now = self._costs.at((self._span + 1) * _SPAN)
        return self.now


@dataclass(slots=True)
class Yield:
    """Tokens emitted and seconds spent by drafted steps, the latest of them most."""

    emitted: float = 0.0
    spent_s: float = 0.0
    num_steps: int = 0

    def add(self, num_emitted: int, spent_s: float) -> None:
        """One step more."""
        self.emitted = _MEMORY * self.emitted + num_emitted
        self.spent_s = _MEMORY * self.spent_s + spent_s
        self.num_steps += 1

    def per_second(self) -> float:
        """Tokens a second, by the table's seconds."""
        return self.emitted / self.spent_s


class ChainPace:
    """Chooses the length of a chain by how often each position was kept.

    A position not drafted lately is believed to be kept as often as the one before it.

    Attributes:
        brought: tokens and seconds of its drafts.
    """

    def __init__(self, costs: StepCosts, most: int, debt: Debt | None = None) -> None:
        """Start with the prior belief; chains of ``most`` tokens at most."""
        self._costs, self._most = _Local(costs), most
        self._judged = [0.0] * most
        self._kept = [0.0] * most
        self.brought = Yield()
        self._debt = Debt() if debt is None else debt

    def choose(self, length: int) -> int:
        """Tokens to draft in the next step; 0 for none."""
        costs = self._costs.move(length)
        expected, chance, rate = 1.0, 1.0, _PRIOR_RATE
        best, best_worth = 1, 0.0
        for size in range(1, self._most + 1):
            kept, judged = self._kept[size - 1], self._judged[size - 1]
            rate = (kept + _PRIOR_STEPS * rate) / (judged + _PRIOR_STEPS)
            chance *= rate
            expected += chance
            worth = expected / costs.of(size)
            if worth > best_worth:
                best, best_worth = size, worth
        plain_s = costs.of(0)
        return best if self._debt.allows(pays=best_worth * plain_s > 1, plain_s=plain_s) else 0

    def learn(self, num_drafted: int, num_accepted: int, expected: float | None) -> None:
        """Note what became of a draft."""
        del expected
        costs = self._costs.now
        self.brought.add(num_accepted + 1, costs.of(num_drafted))
        self._debt.add(num_accepted + 1, costs.of(num_drafted), costs.of(0))
        self._judged = [_MEMORY * count for count in self._judged]
        self._kept = [_MEMORY * count for count in self._kept]
        for position in range(min(num_drafted, num_accepted + 1)):
            self._judged[position] += 1
            self._kept[position] += position < num_accepted


class TreePace:
    """Says how far a tree's own forecast is to be trusted, and whether trees pay at all.

    Attributes:
        is_tree: always.
        brought: tokens and seconds of its drafts.
    """

    is_tree = True

    def __init__(self, costs: StepCosts, most: int, debt: Debt | None = None) -> None:
        """Trees of ``most`` nodes at most, believed until they disappoint."""
        self._costs, self._most = _Local(costs), most
        self._forecast = self._kept = 0.0
        self.brought = Yield()
        self._debt = Debt() if debt is None else debt

    @property
    def round_cost(self) -> RoundCost:
        """What a node more costs."""
        costs = self._costs.now
        return RoundCost(costs.draft_s[-1], costs.verify_s)

    @property
    def trust(self) -> float:
        """Drafted tokens kept for each one that the drafter expected to be kept."""
        return (self._kept + _PRIOR_STEPS) / (self._forecast + _PRIOR_STEPS)

    def choose(self, length: int) -> int:
        """Nodes allowed in the next step, 0 or all: the tree stops itself where a node more does not pay."""
        plain_s = self._costs.move(length).of(0)
        pays = self.brought.emitted * plain_s >= self.brought.spent_s
        return self._most if self._debt.allows(pays=pays, plain_s=plain_s) else 0

    def learn(self, num_drafted: int, num_accepted: int, expected: float | None) -> None:
        """Note what became of a draft, and what its drafter expected to be kept of it."""
        if expected is None:
            raise ValueError("a tree is drafted with a forecast")
        costs = self._costs.now
        spent_s = costs.draft_s[-1] + costs.verify_s[num_drafted]
        self._forecast = _MEMORY * self._forecast + expected
        self._kept = _MEMORY * self._kept + num_accepted
        self.brought.add(num_accepted + 1, spent_s)
        self._debt.add(num_accepted + 1, spent_s, costs.of(0))


class RivalPace:
    """Chains or trees from one source, whichever gave more tokens a second so far.

    Both are tried in turn at first, and the worse one again now and then; they share one debt.

    Attributes:
        is_tree: whether the draft chosen last is a tree.
    """

    def __init__(self, costs: StepCosts, most_nodes: int, most_tokens: int) -> None:
        """Trees of ``most_nodes`` and chains of ``most_tokens`` at most; ``costs.chain`` of the latter."""
        debt, of_chains = Debt(), costs if costs.chain is None else costs.chain
        self._tree = TreePace(costs, most_nodes, debt)
        self._chain = ChainPace(of_chains, min(most_tokens, of_chains.most), debt)
        self.is_tree = False

    @property
    def round_cost(self) -> RoundCost:
        """As the tree's."""
        return self._tree.round_cost

    @property
    def trust(self) -> float:
        """As the tree's."""
        return self._tree.trust

    def choose(self, length: int) -> int:
        """Nodes to draft at most in the next step; whether they are a chain is in ``is_tree`` then."""
        self.is_tree = self._prefers_tree()
        return (self._tree if self.is_tree else self._chain).choose(length)

    def learn(self, num_drafted: int, num_accepted: int, expected: float | None) -> None:
        """Note what became of a draft of the kind chosen last."""
        (self._tree if self.is_tree else self._chain).learn(num_drafted, num_accepted, expected)

    def _prefers_tree(self) -> bool:
        chain, tree = self._chain.brought, self._tree.brought
        if min(chain.num_steps, tree.num_steps) < _FIRST_LOOKS:
            return tree.num_steps < chain.num_steps
        is_tree_better = tree.per_second() > chain.per_second()
        worse = chain if is_tree_better else tree
        total = chain.num_steps + tree.num_steps
        return is_tree_better != (worse.num_steps * _SECOND_LOOK < total)
