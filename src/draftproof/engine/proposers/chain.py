"""A chain drafted one token after another, whatever model gives the next row of logits.

Dimensions: K drafted tokens, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from draftproof.engine.proposers.propose import Context, Proposal
from draftproof.speculation.chance import Purpose
from draftproof.speculation.sampling import distribution
from draftproof.speculation.tree import DraftTree

__all__ = ["draft_chain"]


def draft_chain(row: Tensor, read_on: Callable[[int], Tensor], context: Context, depth: int) -> Proposal:
    """The most probable tokens, or tokens drawn, with what they were drawn from.

    Args:
        row: [V] the drafter's logits after the root; -inf where it cannot draft.
        read_on: the logits after a token just drafted.
        context: the step.
        depth: K, 1 or more.
    """
    drafted: list[int] = []
    probs: list[Tensor] = []
    while True:
        if not context.draws:
            drafted.append(int(row.argmax()))
        else:
            q = distribution(row, context.sampling)
            drafted.append(context.chance.draw(q, len(context.tokens) + len(drafted), Purpose.DRAFT))
            probs.append(q)
        if len(drafted) == depth:
            return Proposal(DraftTree.chain(drafted), torch.stack(probs) if probs else None)
        row = read_on(drafted[-1])
