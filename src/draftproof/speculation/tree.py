"""What a drafter proposes: a tree of tokens. A chain is a tree, and no draft is the root alone.

Dimensions: N drafted tokens. Nodes are numbered 0..N; node 0 is the root, the last token already emitted,
whose successors are being drafted. Drafted token i (0-based) is node i + 1.
"""

from collections.abc import Sequence
from operator import index

import numpy as np
import torch
from torch import Tensor

from draftproof.errors import RefusedInput

__all__ = ["DraftTree"]


class DraftTree:
    """Drafted tokens and who follows whom; a parent always has a smaller number than its child.

    Siblings hold different tokens, so a node and a token name at most one child.

    Attributes:
        tokens: [N] int64 on the CPU, the drafted ids; the root, being no draft, is left out.
        parents: [N + 1] int64 on the CPU, the parent of every node, -1 for the root.
        depths: [N] int64 on the CPU, 1 for a child of the root.
    """

    __slots__ = (
        "_children",
        "_depths",
        "_is_chain",
        "_mask",
        "_parents",
        "_tokens",
        "depths",
        "parents",
        "tokens",
    )

    def __init__(self, tokens: Sequence[int] | Tensor, parents: Sequence[int] | Tensor) -> None:
        """Check the links and index the children.

        Args:
            tokens: [N] ids of nodes 1..N.
            parents: [N + 1], -1 first, then a smaller node number for each node.

        Raises:
            RefusedInput: wrong lengths, a parent not before its child, a negative id, equal siblings.
        """
        self._tokens = _integers(tokens, "tokens")
        self._parents = _integers(parents, "parents")
        if len(self._parents) != len(self._tokens) + 1 or self._parents[0] != -1:
            raise _refused("parents", f"-1 and then {len(self._tokens)} node numbers", self._parents)
        depths = [0] * len(self._parents)
        children: list[dict[int, int]] = [{} for _ in self._parents]
        for node, (token, parent) in enumerate(zip(self._tokens, self._parents[1:], strict=True), start=1):
            if not 0 <= parent < node:
                raise _refused(f"parent of node {node}", f"a node in 0..{node - 1}", parent)
            if token < 0:
                raise _refused(f"token of node {node}", "an id of 0 or more", token)
            if token in children[parent]:
                raise _refused(f"children of node {parent}", "different tokens", f"token {token} twice")
            children[parent][token] = node
            depths[node] = depths[parent] + 1
        self._depths = tuple(depths)
        self._is_chain = depths == list(range(len(depths)))
        self._children = tuple(children)
        self._mask: Tensor | None = None
        self.tokens = torch.tensor(self._tokens, dtype=torch.int64)
        self.parents = torch.tensor(self._parents, dtype=torch.int64)
        self.depths = torch.tensor(self._depths[1:], dtype=torch.int64)

    @classmethod
    def chain(cls, tokens: Sequence[int] | Tensor) -> "DraftTree":
        """The tokens one after another."""
        listed = _integers(tokens, "tokens")
        return cls(listed, range(-1, len(listed)))

    @classmethod
    def empty(cls) -> "DraftTree":
        """No draft: the root alone, which makes a plain autoregressive step."""
        return cls((), (-1,))

    @property
    def num_draft_tokens(self) -> int:
        """N, the root not counted."""
        return len(self._tokens)

    @property
    def is_chain(self) -> bool:
        """Whether no node has a sibling; true of the empty tree."""
        return self._is_chain

    @property
    def children(self) -> tuple[dict[int, int], ...]:
        """For every node, root included: its children's numbers by their tokens."""
        return self._children

    @property
    def ancestor_mask(self) -> Tensor:
        """[N + 1, N + 1] bool: row i is true at i and at every ancestor of i."""
        if self._mask is None:
            size = len(self._parents)
            rows = np.zeros((size, size), dtype=np.bool_)
            rows[0, 0] = True
            for node in range(1, size):
                rows[node] = rows[self._parents[node]]
                rows[node, node] = True
            self._mask = torch.from_numpy(rows)
        return self._mask

    def path(self, node: int) -> list[int]:
        """The nodes from the root to ``node``, both included.

        Raises:
            RefusedInput: the tree has no such node.
        """
        if not 0 <= node < len(self._parents):
            raise _refused("node", f"one of 0..{len(self._tokens)}", node)
        found = [node]
        while node:
            node = self._parents[node]
            found.append(node)
        return found[::-1]

    def walk(self, target_tokens: Sequence[int] | Tensor) -> tuple[list[int], int]:
        """Follow the target's own choices for as long as they were drafted.

        Args:
            target_tokens: [N + 1], the target's token after each node, root included.

        Returns:
            The accepted nodes, beginning with 0, and the first target token that is no child of the last.

        Raises:
            RefusedInput: not one token for each node.
        """
        choices = _integers(target_tokens, "target_tokens")
        if len(choices) != len(self._parents):
            raise _refused("target_tokens", f"{len(self._parents)}, one for each node", len(choices))
        accepted = [0]
        while (following := self._children[accepted[-1]].get(choices[accepted[-1]])) is not None:
            accepted.append(following)
        return accepted, choices[accepted[-1]]

    def token(self, node: int) -> int:
        """The drafted id at node 1..N.

        Raises:
            RefusedInput: the root, which holds no drafted token, or no such node.
        """
        if not 1 <= node < len(self._parents):
            raise _refused("node", f"one of 1..{len(self._tokens)}", node)
        return self._tokens[node - 1]

    def depth(self, node: int) -> int:
        """How many drafted tokens lie on the path to the node; 0 for the root."""
        return self._depths[node]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DraftTree):
            return NotImplemented
        return self._tokens == other._tokens and self._parents == other._parents

    def __hash__(self) -> int:
        return hash((self._tokens, self._parents))

    def __repr__(self) -> str:
        return f"DraftTree(tokens={list(self._tokens)}, parents={list(self._parents)})"


def _integers(values: Sequence[int] | Tensor, name: str) -> tuple[int, ...]:
    """The values as plain integers; a tensor must have one dimension and an integer type."""
    if isinstance(values, Tensor):
        if (
            values.dim() != 1
            or values.is_floating_point()
            or values.is_complex()
            or values.dtype == torch.bool
        ):
            raise _refused(name, "one dimension of integers", f"{tuple(values.shape)} {values.dtype}")
        return tuple(values.tolist())
    try:
        return tuple(index(value) for value in values)
    except TypeError as error:
        raise _refused(name, "integers", values) from error


def _refused(subject: str, expected: str, found: object) -> RefusedInput:
    return RefusedInput(
        subject,
        expected=expected,
        found=repr(found),
        where="a draft tree",
        means="the proposal cannot be verified as a tree",
        next_step="report the drafter that built it",
    )
