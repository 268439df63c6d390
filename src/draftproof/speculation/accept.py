"""Keep or refuse drafted tokens so that the output is what the target alone would have written.

Greedy verification keeps the target's own tokens; the three random rules keep its distribution exactly.
Rules that do not are in ``lossy`` and say so in their names.
Dimensions: N drafted tokens (K where the draft is a chain), V vocabulary.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from draftproof.errors import RefusedInput
from draftproof.speculation.chance import Chance, Purpose
from draftproof.speculation.tree import DraftTree

__all__ = [
    "Acceptance",
    "TargetRows",
    "accept_block",
    "accept_greedy",
    "accept_matching",
    "accept_rejection",
    "checked_chain",
]

TargetRows = Callable[[int], Tensor]
"""The target's distribution [V] after a node; asked only for the nodes a rule visits."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What one verification decided."""

    nodes: tuple[int, ...]
    """The accepted nodes from the root down; the root, 0, always comes first."""

    tokens: tuple[int, ...]
    """The tokens the step emits: those of the accepted nodes after the root, then the bonus token."""

    @property
    def num_accepted(self) -> int:
        """Drafted tokens kept; neither the root nor the bonus token is counted."""
        return len(self.nodes) - 1

    @property
    def bonus_token(self) -> int:
        """The target's own token after the last one kept; it is the next step's root."""
        return self.tokens[-1]

    @property
    def length(self) -> int:
        """Tokens emitted: accepted plus the bonus (vLLM's "acceptance length")."""
        return len(self.tokens)


def accept_greedy(tree: DraftTree, target_logits: Tensor) -> Acceptance:
    """Follow the target's largest logits for as long as they were drafted.

    Args:
        tree: any draft.
        target_logits: [N + 1, V], the target's row after every node, root first.

    Raises:
        RefusedInput: not one row for each node, or a row met on the way whose largest value is not finite.
    """
    largest, choices = target_logits.max(-1)
    nodes, bonus = tree.walk(choices)
    values = largest.tolist()
    for node in nodes:
        if not math.isfinite(value := values[node]):
            raise RefusedInput(
                f"logits after node {node}",
                expected="a finite largest value",
                found=str(value),
                where="the target's output",
                means="the model computed no next token here",
                next_step="check the weights for NaN, and the data type for overflow",
            )
    return _acceptance(tree, nodes, bonus)


def accept_matching(tree: DraftTree, target: TargetRows, *, chance: Chance, position: int) -> Acceptance:
    """Draw the target's token after each node reached, and go on while it was drafted.

    Exact for any tree that does not depend on these draws; for a deterministic draft no rule accepts more.
    A node is left with the probability the target gives to what is not among its children.

    Args:
        tree: any draft.
        target: the target's distribution after each node.
        chance: the only source of chance.
        position: of the token that follows the root, counted from the start of the sequence.

    Source: point-mass case of Leviathan et al. 2023, arXiv:2211.17192; DDTree ddtree.py, temperature > 0.
    """
    nodes = [0]
    while True:
        drawn = chance.draw(target(nodes[-1]), position + len(nodes) - 1, Purpose.TARGET)
        following = tree.children[nodes[-1]].get(drawn)
        if following is None:
            return _acceptance(tree, nodes, drawn)
        nodes.append(following)


def accept_rejection(
    tree: DraftTree, draft_probs: Tensor, target: TargetRows, *, chance: Chance, position: int
) -> Acceptance:
    """Keep drafted token x with probability min(1, p(x) / q(x)), one after another.

    At the first refusal the next token comes from the positive part of p - q, normalised; from p where
    the two are equal, and after a draft kept whole.

    Args:
        tree: a chain, its tokens drawn from ``draft_probs``.
        draft_probs: [K, V], row i the distribution q that token i was drawn from, as drawn.
        target: the target's distribution p after each node.
        chance: the only source of chance.
        position: of the token that follows the root, counted from the start of the sequence.

    Raises:
        RefusedInput: the draft is no chain, or there is not one row of q for each of its tokens.

    Source: Leviathan, Kalman, Matias 2023, arXiv:2211.17192, Algorithm 1.
    """
    checked_chain(tree, draft_probs)
    for kept, q in enumerate(draft_probs):
        p = target(kept)
        token = tree.token(kept + 1)
        if chance.happens(_ratio(float(p[token]), float(q[token])), position + kept, Purpose.KEEP):
            continue
        return _refused_at(tree, kept, p, (p - q).clamp_min(0), chance=chance, position=position)
    return _kept_whole(tree, target, chance=chance, position=position)


def accept_block(
    tree: DraftTree, draft_probs: Tensor, target: TargetRows, *, chance: Chance, position: int
) -> Acceptance:
    """Judge the drafted block as a whole: keep the longest prefix whose own test succeeds.

    With r_0 = 1 and r_i = min(1, r_{i-1} p(x_i) / q(x_i)), prefix i < K passes with probability
    S / (S + 1 - r_i), where S is the sum of the positive part of r_i p - q at the position after it; the
    whole block passes with probability r_K. It never keeps fewer tokens on average than one by one, and no
    more when the drafter is deterministic.

    Args:
        tree: a chain, its tokens drawn from ``draft_probs``.
        draft_probs: [K, V], row i the distribution q that token i was drawn from, as drawn.
        target: the target's distribution p after each node.
        chance: the only source of chance.
        position: of the token that follows the root, counted from the start of the sequence.

    Raises:
        RefusedInput: the draft is no chain, or there is not one row of q for each of its tokens.

    Source: Sun et al. 2024, arXiv:2403.10444, Algorithm 2.
    """
    length = checked_chain(tree, draft_probs)
    joint = [1.0]
    for kept, q in enumerate(draft_probs):
        token = tree.token(kept + 1)
        joint.append(min(1.0, joint[-1] * _quotient(float(target(kept)[token]), float(q[token]))))
    if length == 0 or chance.happens(joint[length], position + length - 1, Purpose.KEEP):
        return _kept_whole(tree, target, chance=chance, position=position)
    for kept in range(length - 1, -1, -1):
        residual = (joint[kept] * target(kept) - draft_probs[kept]).clamp_min(0)
        surplus = float(residual.sum())
        beyond = surplus + 1 - joint[kept]
        passes = surplus / beyond if beyond > 0 else 1.0
        if kept == 0 or chance.happens(passes, position + kept - 1, Purpose.KEEP):
            return _refused_at(tree, kept, target(kept), residual, chance=chance, position=position)
    raise AssertionError("prefix 0 always passes")


def checked_chain(tree: DraftTree, draft_probs: Tensor) -> int:
    """K, once the draft is known to be a chain with a distribution for each token.

    Raises:
        RefusedInput: a branch, or another number of rows than tokens.
    """
    if not tree.is_chain:
        raise _refused("draft", "a chain", repr(tree))
    if draft_probs.dim() != 2 or len(draft_probs) != tree.num_draft_tokens:  # noqa: PLR2004 - [K, V]
        raise _refused("draft_probs", f"[{tree.num_draft_tokens}, vocabulary]", str(tuple(draft_probs.shape)))
    return tree.num_draft_tokens


def _refused_at(
    tree: DraftTree, kept: int, p: Tensor, residual: Tensor, *, chance: Chance, position: int
) -> Acceptance:
    weights = residual if bool(residual.any()) else p
    return _acceptance(tree, range(kept + 1), chance.draw(weights, position + kept, Purpose.RESIDUAL))


def _kept_whole(tree: DraftTree, target: TargetRows, *, chance: Chance, position: int) -> Acceptance:
    length = tree.num_draft_tokens
    return _acceptance(
        tree, range(length + 1), chance.draw(target(length), position + length, Purpose.TARGET)
    )


def _acceptance(tree: DraftTree, nodes: list[int] | range, bonus: int) -> Acceptance:
    return Acceptance(tuple(nodes), (*(tree.token(node) for node in nodes[1:]), bonus))


def _ratio(p: float, q: float) -> float:
    """min(1, p / q); a q that underflowed to 0 is passed by any p above 0 and by no p of 0."""
    return min(1.0, _quotient(p, q))


def _quotient(p: float, q: float) -> float:
    if q > 0:
        return p / q
    return float("inf") if p > 0 else 0.0


def _refused(subject: str, expected: str, found: str) -> RefusedInput:
    return RefusedInput(
        subject,
        expected=expected,
        found=found,
        where="verifying a draft",
        means="this rule would not keep the target's distribution",
        next_step="verify trees by matching, or give the distributions the tokens were drawn from",
    )
