"""What goes into a forward and what comes out of it, one of each for every sequence.

Hidden states are numbered as everywhere in this product: 0 is the embeddings, j the residual stream after j
layers, before the final norm; what the head reads, after it, is ``Forward.normed``.

Dimensions: N nodes, M of them with logits, H hidden, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from draftproof.cache.session import Session
from draftproof.errors import RefusedInput, UsageError
from draftproof.models.target.shape import DecoderShape
from draftproof.names import HiddenIndex
from draftproof.speculation.tree import DraftTree

__all__ = ["Block", "Forward", "check_capture", "check_tokens"]


@dataclass(frozen=True, slots=True)
class Block:
    """One sequence's part of a forward."""

    session: Session
    tokens: Sequence[int]
    """Of all nodes, the root's first."""

    tree: DraftTree | None = None
    """None: the tokens are a chain."""


@dataclass(frozen=True, slots=True)
class Forward:
    """What one forward found out about one sequence's nodes."""

    logits: Tensor
    """[M, V] float32: of the last M nodes, as many as were asked for, in node order."""

    hidden: Mapping[HiddenIndex, Tensor]
    """[N, H] each, the residual streams asked for, in float32 (float64 for a model in 64-bit floats)."""

    normed: Tensor | None
    """[N, H] in the model's precision: the last hidden state after the final norm, if asked for."""


def check_tokens(shape: DecoderShape, session: Session, tokens: Sequence[int], depth: int) -> None:
    """Refuse tokens that the model cannot read.

    Args:
        shape: the model.
        session: what they would follow.
        tokens: of all nodes.
        depth: positions they take: fewer than nodes where siblings share one.

    Raises:
        RefusedInput: there are none, they reach beyond the context, or an id is outside the vocabulary.
    """
    if not tokens:
        raise _refused("tokens", "one at least", "none", "there is nothing to run")
    if depth > session.room:
        raise _refused(
            "tokens",
            f"{session.room} at most ({shape.max_length} positions, {session.length} committed)",
            str(depth),
            "the model knows no positions beyond its context",
        )
    if min(tokens) < 0 or max(tokens) >= shape.vocab_size:
        wrong = next(token for token in tokens if not 0 <= token < shape.vocab_size)
        raise _refused("token id", f"0..{shape.vocab_size - 1}", str(wrong), "the embedding has no such row")


def check_capture(num_layers: int, capture: Sequence[HiddenIndex]) -> None:
    """Refuse hidden states that the model does not have.

    Raises:
        UsageError: naming the first of them.
    """
    for index in capture:
        if not 0 <= index <= num_layers:
            raise UsageError(
                "hidden state",
                expected=f"0..{num_layers}",
                found=str(index),
                where="capture",
                means="the model has no such hidden state",
                next_step="count from 0, the embeddings; the last is the input of the final norm",
            )


def _refused(subject: str, expected: str, found: str, means: str) -> RefusedInput:
    return RefusedInput(
        subject,
        expected=expected,
        found=found,
        where="the input of a forward",
        means=means,
        next_step="check the tokenizer, the prompt's length and the drafter's vocabulary",
    )
