"""Where the nodes of one forward stand: positions, who sees whom, which inputs a convolution reads.

The root stands at the position after the committed tokens, a node ``depth`` further; siblings share one.

Dimensions: N nodes (the root counted), S committed rows a layer sees, K convolution taps.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from draftproof.errors import RefusedInput
from draftproof.speculation.tree import DraftTree

__all__ = ["Nodes"]


class Nodes:
    """The nodes of one sequence in one forward.

    Attributes:
        start: position of the root.
        count: N.
        parents: of every node, -1 for the root.
        depths: of every node, 0 for the root.
        is_chain: every node is the parent of the next.
        end: one past the last position.
    """

    __slots__ = (
        "_ancestry",
        "_device",
        "_dtype",
        "_tree",
        "_visible",
        "count",
        "depths",
        "end",
        "is_chain",
        "parents",
        "start",
    )

    def __init__(
        self, start: int, count: int, tree: DraftTree | None, *, dtype: torch.dtype, device: torch.device
    ) -> None:
        """A chain of ``count`` nodes, or the root and the nodes of ``tree``.

        Raises:
            RefusedInput: the tree has another number of nodes.
        """
        self.start, self.count = start, count
        self._dtype, self._device = dtype, device
        self._tree = None if tree is None or tree.is_chain else tree
        self.is_chain = self._tree is None
        self._visible: Tensor | None = None
        self._ancestry: Tensor | None = None
        if tree is not None and tree.num_draft_tokens + 1 != count:
            raise RefusedInput(
                "tokens",
                expected=f"{tree.num_draft_tokens + 1}, the root's and one for each node of the tree",
                found=str(count),
                where="a forward over a draft tree",
                means="tokens and nodes do not belong together",
                next_step="give the root's token and then those of the tree, in node order",
            )
        self.parents: Sequence[int] = range(-1, count - 1)
        self.depths: Sequence[int] = range(count)
        if self._tree is not None:
            self.parents = self._tree.parents.tolist()
            self.depths = [0, *self._tree.depths.tolist()]
        self.end = start + max(self.depths, default=-1) + 1

    def visible(self, dtype: torch.dtype) -> Tensor:
        """[N, N]: 0 where column j is row i's node or its ancestor, else -inf."""
        if self._visible is None or self._visible.dtype != dtype:
            if self._tree is None:
                mask = torch.full((self.count, self.count), float("-inf"), dtype=dtype, device=self._device)
                self._visible = mask.triu_(1)
            else:
                seen = self._tree.ancestor_mask.to(self._device)
                mask = torch.zeros((self.count, self.count), dtype=dtype, device=self._device)
                self._visible = mask.masked_fill_(~seen, float("-inf"))
        return self._visible

    def ancestry(self, dtype: torch.dtype) -> Tensor | None:
        """[N, N]: 1 where column j is row i's node or its ancestor, else 0; None for a chain."""
        if self._tree is None:
            return None
        if self._ancestry is None or self._ancestry.dtype != dtype:
            self._ancestry = self._tree.ancestor_mask.to(self._device, dtype)
        return self._ancestry

    def attention_mask(self, num_seen: int, window: int | None) -> Tensor | None:
        """[N, S + N] added to the scores: 0 or -inf. None where every column is seen.

        Args:
            num_seen: S, the committed rows before the nodes, ending right before the root's position.
            window: tokens a query sees, itself included; None for all.
        """
        if self.count == 1:
            return None  # rows are already cut to the window, and a node sees itself
        mask = torch.zeros((self.count, num_seen + self.count), dtype=self._dtype, device=self._device)
        mask[:, num_seen:] = self.visible(self._dtype)
        if window is not None and num_seen + max(self.depths) >= window:
            depths = torch.tensor(list(self.depths), device=self._device)
            columns = torch.cat((torch.arange(-num_seen, 0, device=self._device), depths))
            mask.masked_fill_(depths[:, None] - columns[None] >= window, float("-inf"))
        return mask

    def conv_rows(self, taps: int) -> Tensor:
        """[N * K]: for each node, oldest first, the rows its convolution reads.

        Rows count into the K - 1 committed inputs followed by the nodes' own.
        """
        rows: list[int] = []
        for node in range(self.count):
            read: list[int] = []
            at = node
            while len(read) < taps:
                read.append(taps - 1 + at)
                # Behind the root the committed inputs follow, newest first.
                at = self.parents[at] if at >= 0 else at - 1
            rows.extend(reversed(read))
        return torch.tensor(rows, device=self._device)
