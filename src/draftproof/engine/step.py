"""One step of decoding, whole: propose, verify, accept, commit.

    1  propose   guess a tree of tokens that may follow the root, the last token emitted
    2  verify    one forward of the target over the root and the guesses; nothing is committed
    3  accept    keep a path of guesses so that the output stays the target's, and add its own next token
    4  commit    keep the memory of that path, forget the rest

Plain decoding is the same step with nothing guessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from draftproof.cache.session import Session
from draftproof.engine.generation import Seconds
from draftproof.engine.judge import judge
from draftproof.engine.proposers.propose import Context, Proposal, Proposer
from draftproof.errors import RefusedInput
from draftproof.models.decoder import Decoder
from draftproof.names import HiddenIndex
from draftproof.speculation.accept import Acceptance
from draftproof.speculation.sampling import History

__all__ = ["Decided", "decode_step"]


@dataclass(frozen=True, slots=True)
class Decided:
    """What one step did."""

    proposal: Proposal
    acceptance: Acceptance
    captured: Mapping[HiddenIndex, Tensor]
    """[accepted nodes, hidden] for each hidden state the proposer asked for, root first."""

    normed: Tensor | None
    """[accepted nodes, hidden], the same rows after the final norm, if the proposer asked for them."""


def decode_step(
    target: Decoder,
    session: Session,
    proposer: Proposer,
    context: Context,
    *,
    history: History,
    seconds: Seconds,
) -> Decided:
    """Advance one sequence by one verification.

    Args:
        target: the model whose output is wanted.
        session: its memory of all tokens but the root; advanced by the accepted path.
        proposer: the request's source of drafts.
        context: the tokens so far, the root last, and what the step may use.
        history: the same tokens, counted for penalties; not changed here.
        seconds: the request's account of time; added to.

    Raises:
        RefusedInput: the logits hold NaN or infinity; the session is then as before the step.
    """
    at_start = perf_counter()
    proposal = proposer.propose(context)
    tree = proposal.tree

    at_proposed = perf_counter()
    seen = target.verify(
        session, context.tokens[-1], tree, capture=proposer.captures, with_normed=proposer.with_normed
    )

    at_verified = perf_counter()
    try:
        acceptance = judge(proposal, seen.logits, context=context, history=history)
    except RefusedInput:
        session.rollback()
        raise

    at_accepted = perf_counter()
    session.commit(acceptance.nodes)
    kept = _chosen(acceptance.nodes)
    captured = {index: rows[kept] for index, rows in seen.hidden.items()}
    normed = None if seen.normed is None else seen.normed[kept]

    at_committed = perf_counter()
    seconds.draft += at_proposed - at_start
    seconds.verify += at_verified - at_proposed
    seconds.accept += at_accepted - at_verified
    seconds.commit += at_committed - at_accepted
    return Decided(proposal, acceptance, captured, normed)


def _chosen(nodes: tuple[int, ...]) -> slice | Tensor:
    """Index of the accepted nodes' rows: the first ones where the draft's beginning was kept."""
    if nodes[-1] == len(nodes) - 1:  # numbers rise along a path
        return slice(len(nodes))
    return torch.tensor(nodes)
