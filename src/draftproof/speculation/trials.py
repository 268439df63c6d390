"""The rules put on trial: each lossless one, and three faults that must be caught.

Every trial is a whole step, draft and verification, on toys of 4 tokens; ``proof`` computes what it emits.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch

from draftproof.speculation import ddtree
from draftproof.speculation.accept import Acceptance, accept_block, accept_matching, accept_rejection
from draftproof.speculation.chance import Chance
from draftproof.speculation.lossy import accept_typical_lossy
from draftproof.speculation.proof import ToyModel, draw_chain, emitted_law, total_variation
from draftproof.speculation.tree import DraftTree

__all__ = ["EXACT", "FAULTY", "LENGTH", "Trial", "distance"]

Trial = Callable[[Chance], Acceptance]

LENGTH = 3
"""Tokens drafted; the law judged is that of one more."""

_TARGET = ToyModel(seed=1, vocab_size=4, sharpness=1.0)
_DRAFTER = ToyModel(seed=3, vocab_size=4, sharpness=1.0)
_COLD_DRAFTER = ToyModel(seed=3, vocab_size=4, sharpness=2.0)  # the same logits at temperature 0.5
_BLOCK_DRAFTER = ToyModel(seed=2, vocab_size=4, sharpness=1.0, sees_prefix=False)


def distance(trial: Trial) -> float:
    """Total variation between what the trial emits and what the target writes alone."""
    return total_variation(emitted_law(trial, _TARGET, LENGTH + 1), _TARGET.law(LENGTH + 1))


def _rejection(chance: Chance) -> Acceptance:
    tree, probs = draw_chain(_DRAFTER, LENGTH, chance)
    return accept_rejection(tree, probs, _TARGET.rows(tree), chance=chance, position=0)


def _rejection_of_a_block(chance: Chance) -> Acceptance:
    tree, probs = draw_chain(_BLOCK_DRAFTER, LENGTH, chance)
    return accept_rejection(tree, probs, _TARGET.rows(tree), chance=chance, position=0)


def _block(chance: Chance) -> Acceptance:
    tree, probs = draw_chain(_DRAFTER, LENGTH, chance)
    return accept_block(tree, probs, _TARGET.rows(tree), chance=chance, position=0)


def _block_of_a_block(chance: Chance) -> Acceptance:
    tree, probs = draw_chain(_BLOCK_DRAFTER, LENGTH, chance)
    return accept_block(tree, probs, _TARGET.rows(tree), chance=chance, position=0)


def _point_masses(chance: Chance) -> Acceptance:
    tree = _greedy_chain()
    certain = torch.nn.functional.one_hot(tree.tokens, 4).double()
    return accept_rejection(tree, certain, _TARGET.rows(tree), chance=chance, position=0)


def _matching_chain(chance: Chance) -> Acceptance:
    tree = _greedy_chain()
    return accept_matching(tree, _TARGET.rows(tree), chance=chance, position=0)


def _matching_tree(chance: Chance) -> Acceptance:
    marginals = torch.stack([_BLOCK_DRAFTER.logits((0,) * depth) for depth in range(LENGTH)])
    tree = ddtree.build(marginals, 12)
    return accept_matching(tree, _TARGET.rows(tree), chance=chance, position=0)


def _greedy_scored_as_drawn(chance: Chance) -> Acceptance:
    tree = _greedy_chain()
    tokens = tuple(tree.tokens.tolist())
    probs = torch.stack([_DRAFTER.probs(tokens[:i]) for i in range(LENGTH)])
    return accept_rejection(tree, probs, _TARGET.rows(tree), chance=chance, position=0)


def _other_temperature(chance: Chance) -> Acceptance:
    tree, _ = draw_chain(_COLD_DRAFTER, LENGTH, chance)
    tokens = tuple(tree.tokens.tolist())
    probs = torch.stack([_DRAFTER.probs(tokens[:i]) for i in range(LENGTH)])
    return accept_rejection(tree, probs, _TARGET.rows(tree), chance=chance, position=0)


def _typical_lossy(chance: Chance) -> Acceptance:
    tree, _ = draw_chain(_DRAFTER, LENGTH, chance)
    return accept_typical_lossy(tree, _TARGET.rows(tree), chance=chance, position=0)


def _greedy_chain() -> DraftTree:
    tokens: list[int] = []
    for _ in range(LENGTH):
        tokens.append(int(_DRAFTER.logits(tuple(tokens)).argmax()))
    return DraftTree.chain(tokens)


EXACT: Mapping[str, Trial] = MappingProxyType(
    {
        "rejection": _rejection,
        "rejection-of-a-block": _rejection_of_a_block,
        "block-verification": _block,
        "block-verification-of-a-block": _block_of_a_block,
        "point-masses": _point_masses,
        "matching-chain": _matching_chain,
        "matching-tree": _matching_tree,
    }
)
"""Rules that keep the target's law."""

FAULTY: Mapping[str, Trial] = MappingProxyType(
    {
        "greedy-scored-as-drawn": _greedy_scored_as_drawn,
        "other-temperature": _other_temperature,
        "typical-lossy": _typical_lossy,
    }
)
"""Two classic faults of engines, and a rule that is lossy by design."""
