"""EAGLE's dynamic tree: each level follows the guesses most probable so far, the best of all are kept.

The score of a guess is the log-probability of its path. A level runs the drafter over at most ``top_k``
guesses, each of which proposes ``top_k`` children; of all candidates the ``budget`` best make the tree.

Source: EAGLE-2, arXiv:2406.16858, section 4; SafeAILab/EAGLE cnets.py topK_genrate.
Dimensions: S rows of the session, P of them true pairs, F guesses of a level.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from draftproof.cache.session import Session
from draftproof.models.eagle3.drafter import Eagle3Drafter, Eagle3Read
from draftproof.speculation.tree import DraftTree

__all__ = ["grow_tree"]


@dataclass(frozen=True, slots=True)
class _Guess:
    """A candidate: nothing ran over it yet."""

    token: int
    parent: int
    """Its parent's number among the candidates, -1 for the root."""

    parent_row: int
    """Of the features its own run starts from."""

    score: float
    rows: tuple[int, ...]
    """The session's rows of its ancestors' runs."""


def grow_tree(
    drafter: Eagle3Drafter, session: Session, root: Eagle3Read, *, depth: int, top_k: int, budget: int
) -> DraftTree:
    """The tree of the ``budget`` best guesses up to ``depth`` levels deep.

    Args:
        drafter: makes the guesses.
        session: holds the true pairs; guesses are committed behind them, for the caller to take back.
        root: one row, what the drafter put out for the last true pair.
        depth: levels, 1 or more.
        top_k: guesses followed in a level, and children of each.
        budget: nodes, the root not counted.
    """
    num_true = session.length
    top_k = min(top_k, drafter.shape.draft_vocab_size)
    start = _Guess(token=-1, parent=-1, parent_row=0, score=0.0, rows=())
    candidates = _children(drafter.logits(root.normed), [start], [-1], [()], top_k)
    level, features = list(range(len(candidates))), root.features
    for step in range(1, depth):
        level = sorted(level, key=lambda number: (-candidates[number].score, number))[:top_k]
        guesses = [candidates[number] for number in level]
        first = session.length
        read = drafter.read_level(
            session,
            features[[guess.parent_row for guess in guesses]],
            [guess.token for guess in guesses],
            positions=[num_true - 1 + step] * len(guesses),
            seen=_seen(guesses, num_true, first),
        )
        rows = [(*guess.rows, first + place) for place, guess in enumerate(guesses)]
        found = _children(drafter.logits(read.normed), guesses, level, rows, top_k)
        level, features = list(range(len(candidates), len(candidates) + len(found))), read.features
        candidates += found
    return _best(candidates, budget)


def _children(
    logits: Tensor, parents: list[_Guess], numbers: list[int], rows: list[tuple[int, ...]], top_k: int
) -> list[_Guess]:
    """The ``top_k`` most probable tokens after each of the parents, which are rows of ``logits``."""
    best = logits.log_softmax(-1).topk(top_k, dim=-1)
    return [
        _Guess(token, numbers[place], place, parents[place].score + gain, rows[place])
        for place, (gains, tokens) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True))
        for gain, token in zip(gains, tokens, strict=True)
        if gain > float("-inf")
    ]


def _seen(guesses: list[_Guess], num_true: int, num_rows: int) -> Tensor:
    """[F, S + F] bool: the true pairs, a guess's ancestors, and itself."""
    seen = torch.zeros(len(guesses), num_rows + len(guesses), dtype=torch.bool)
    seen[:, :num_true] = True
    for place, guess in enumerate(guesses):
        seen[place, list(guess.rows)] = True
        seen[place, num_rows + place] = True
    return seen


def _best(candidates: list[_Guess], budget: int) -> DraftTree:
    """The best of all; a parent scores no less than its children and stands before them: none is orphaned."""
    ranked = sorted(range(len(candidates)), key=lambda number: (-candidates[number].score, number))
    chosen = sorted(ranked[:budget])
    node = {-1: 0} | {number: place for place, number in enumerate(chosen, start=1)}
    tokens = [candidates[number].token for number in chosen]
    return DraftTree(tokens, [-1, *(node[candidates[number].parent] for number in chosen)])
