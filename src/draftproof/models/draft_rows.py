"""One forward of a drafter that is a few ordinary decoder layers over rows of its own making.

Rows stand in the session in the order they were run; where a row stands in the text is said apart, so that
the guesses of a tree may share a position.

Dimensions: N rows, S rows in the session, H hidden.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from draftproof.cache.session import Session
from draftproof.models.batch import Item, Rows
from draftproof.models.nodes import Nodes
from draftproof.models.parts.attention import GROUPED_NODES
from draftproof.models.parts.rope import RopeTable

__all__ = ["chain_rows", "close_rows", "open_rows", "tree_rows"]


def chain_rows(session: Session, rope: RopeTable, count: int) -> Rows:
    """``count`` rows that follow the session's, each one position after the one before."""
    nodes = Nodes(session.length, count, None, dtype=session.shape.dtype, device=session.shape.device)
    item = Item(session, nodes, 0, count, advances=True)
    return Rows((item,), rope.span(session.length, count))


def tree_rows(
    session: Session, rope: RopeTable, positions: Sequence[int], seen: Tensor, *, shared: int
) -> Rows:
    """Rows of a tree that is grown level by level.

    Args:
        session: one key-value store, no window.
        rope: of the drafter.
        positions: [N] where each row stands in the text.
        seen: [N, S + N] bool, the rows of the session and of this forward that each row attends to.
        shared: query heads of one key head.
    """
    count, shape = len(positions), session.shape
    nodes = Nodes(session.length, count, None, dtype=shape.dtype, device=shape.device)
    mask = torch.zeros(seen.shape, dtype=shape.dtype, device=shape.device)
    mask.masked_fill_(~seen.to(shape.device), float("-inf"))
    repeated = mask.repeat(shared, 1) if count <= GROUPED_NODES else mask
    item = Item(session, nodes, 0, count, advances=True, masks={0: repeated})
    return Rows((item,), rope.at(positions))


def open_rows(rows: Rows) -> None:
    """Make room in the session for the rows' keys and values."""
    for item in rows.items:
        item.session.begin(item.nodes.parents, advance=True)


def close_rows(rows: Rows) -> None:
    """Commit them."""
    for item in rows.items:
        item.session.finish()
