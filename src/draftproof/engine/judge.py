"""Which rule judges a draft: the largest logit at temperature 0, else the one the request names."""

from torch import Tensor

from draftproof.engine.proposers.propose import Context, Proposal
from draftproof.speculation.accept import (
    Acceptance,
    TargetRows,
    accept_block,
    accept_greedy,
    accept_matching,
    accept_rejection,
)
from draftproof.speculation.lossy import accept_typical_lossy
from draftproof.speculation.rules import Rule
from draftproof.speculation.sampling import History, Sampling, adjusted, distribution

__all__ = ["judge"]


def judge(proposal: Proposal, logits: Tensor, *, context: Context, history: History) -> Acceptance:
    """What of the draft is kept.

    Args:
        proposal: the draft; one that was drawn is judged by its distributions, any other by matching.
        logits: [N + 1, V], the target's row after every node, as the model gave it.
        context: the tokens up to and with the root, the request's options, rule and source of chance.
        history: the same tokens, counted for penalties.

    Raises:
        RefusedInput: the logits hold NaN or infinity.
    """
    tree, sampling = proposal.tree, context.sampling
    position = len(context.tokens)
    rows = adjusted(logits, tree, history, sampling)
    if sampling.is_greedy:
        return accept_greedy(tree, rows)
    target = _distributions(rows, sampling)
    if context.rule is Rule.TYPICAL_LOSSY:
        return accept_typical_lossy(tree, target, chance=context.chance, position=position)
    if proposal.draft_probs is None:
        return accept_matching(tree, target, chance=context.chance, position=position)
    verify = accept_rejection if context.rule is Rule.REJECTION else accept_block
    return verify(tree, proposal.draft_probs, target, chance=context.chance, position=position)


def _distributions(rows: Tensor, sampling: Sampling) -> TargetRows:
    """Each row's distribution when first asked for: most nodes of a tree are never visited."""
    known: dict[int, Tensor] = {}

    def target(node: int) -> Tensor:
        if node not in known:
            known[node] = distribution(rows[node], sampling)
        return known[node]

    return target
