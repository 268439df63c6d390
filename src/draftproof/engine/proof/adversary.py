"""A drafter made to be half wrong: it proposes the truth to a random depth and then lies.

It drives the loop through every pattern of keeping and refusing, which a good drafter never would.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from draftproof.engine.proposers.propose import Context, Proposal
from draftproof.names import HiddenIndex
from draftproof.speculation.tree import DraftTree

__all__ = ["Adversary", "random_tree"]


@dataclass(slots=True)
class Adversary:
    """Knows what the target writes alone, and tells it up to a point."""

    truth: Sequence[int]
    """The prompt and the target's own tokens behind it."""

    vocab_size: int
    seed: int
    max_nodes: int = 8
    """Nodes of a draft at most, the lies among them."""

    branches: bool = True
    """Whether lies stand beside the truth as well as after it."""

    captures: tuple[HiddenIndex, ...] = ()
    with_normed: bool = False
    _chance: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Start this request's own pattern."""
        self._chance = random.Random(self.seed)  # noqa: S311 - a pattern, not a secret

    def propose(self, context: Context) -> Proposal:
        """The truth to a random depth, a lie after it, and lies beside it."""
        at = len(context.tokens)
        room = min(context.max_depth, self.max_nodes)
        told = list(self.truth[at : at + self._chance.randint(0, room)])
        parents, tokens = [-1, *range(len(told))], told
        children: list[set[int]] = [{token} for token in told] + [set()]
        depths = list(range(len(told) + 1))
        for _ in range(self._chance.randint(0, self.max_nodes - len(told))):
            parent = self._chance.randrange(len(parents)) if self.branches else len(parents) - 1
            lie = self._lie(at + depths[parent], children[parent])
            if depths[parent] < room and lie is not None:
                children[parent].add(lie)
                children.append(set())
                depths.append(depths[parent] + 1)
                parents.append(parent)
                tokens.append(lie)
        return Proposal(_shuffled(tokens, parents, self._chance))

    def _lie(self, position: int, taken: set[int]) -> int | None:
        """A token that is neither the truth at this position nor among the siblings."""
        true = {self.truth[position]} if position < len(self.truth) else set()
        for _ in range(8):
            token = self._chance.randrange(self.vocab_size)
            if token not in taken | true:
                return token
        return None


def random_tree(chance: random.Random, *, max_nodes: int, vocab_size: int) -> DraftTree:
    """Any tree of up to ``max_nodes`` drafted tokens."""
    tokens: list[int] = []
    parents = [-1]
    children: list[set[int]] = [set()]
    for _ in range(chance.randint(1, max_nodes)):
        parent = chance.randrange(len(parents))
        token = chance.randrange(vocab_size)
        if token not in children[parent]:
            children[parent].add(token)
            children.append(set())
            parents.append(parent)
            tokens.append(token)
    return DraftTree(tokens, parents)


def _shuffled(tokens: list[int], parents: list[int], chance: random.Random) -> DraftTree:
    """The same tree with its nodes in another order in which parents still come first."""
    waiting: dict[int, list[int]] = {}
    for node, parent in enumerate(parents[1:], start=1):
        waiting.setdefault(parent, []).append(node)
    number = {0: 0}
    ready = list(waiting.pop(0, []))
    order: list[int] = []
    while ready:
        node = ready.pop(chance.randrange(len(ready)))
        order.append(node)
        number[node] = len(order)
        ready += waiting.pop(node, [])
    return DraftTree([tokens[node - 1] for node in order], [-1, *(number[parents[node]] for node in order)])
