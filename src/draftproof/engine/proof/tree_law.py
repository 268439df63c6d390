"""The law of trees: a node knows its ancestors and nothing else.

* The logits after node i are those after its path run alone, as a chain.
* The memory after committing a path is that after reading its tokens one by one.

Both are measured here on a real target; tests, the self-test and its sabotages ask the same question.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from draftproof.cache.session import Session, Snapshot
from draftproof.models.decoder import Decoder
from draftproof.speculation.tree import DraftTree

__all__ = ["BlindTree", "ColumnTree", "Scene", "memory_distance", "node_distance"]


@dataclass(frozen=True, slots=True)
class Scene:
    """A target that has read a prompt; the prompt's last token is the root."""

    target: Decoder
    prompt: Sequence[int]

    def session(self) -> Session:
        """A session that has read all but the root."""
        session = self.target.new_session(room=2 * len(self.prompt))
        if len(self.prompt) > 1:
            self.target.prefill(session, self.prompt[:-1])
        return session

    @property
    def root(self) -> int:
        """The token after which the tree hangs."""
        return self.prompt[-1]


class BlindTree(DraftTree):
    """A faulty tree in which every node sees all nodes before it, its siblings too."""

    __slots__ = ()

    @property
    def ancestor_mask(self) -> Tensor:
        """[N + 1, N + 1], wrong on purpose."""
        size = self.num_draft_tokens + 1
        return torch.ones(size, size, dtype=torch.bool).tril()

    @property
    def is_chain(self) -> bool:
        """False, so that the mask is read."""
        return False


class ColumnTree(DraftTree):
    """A faulty tree that names the column before each node as its parent, and keeps the true mask.

    What walks from parent to parent, as a short convolution does, then walks over columns.
    """

    __slots__ = ()

    def __init__(self, tokens: Sequence[int] | Tensor, parents: Sequence[int] | Tensor) -> None:
        """Build the true tree, then misname the parents."""
        super().__init__(tokens, parents)
        self.parents = torch.arange(-1, self.num_draft_tokens)

    @property
    def is_chain(self) -> bool:
        """False, so that the parents are read."""
        return False


def node_distance(scene: Scene, tree: DraftTree, *, shown: DraftTree | None = None) -> float:
    """The largest difference between a node's logits in the tree and at the end of its path alone.

    Args:
        scene: target and prompt.
        tree: the tree whose paths are run alone.
        shown: the tree the target is shown, where it is to be another one.
    """
    session = scene.session()
    together = scene.target.verify(session, scene.root, shown or tree).logits
    session.rollback()
    worst = 0.0
    for node in range(tree.num_draft_tokens + 1):
        alone = DraftTree.chain([tree.token(step) for step in tree.path(node)[1:]])
        last = scene.target.verify(session, scene.root, alone).logits[-1]
        session.rollback()
        worst = max(worst, float((together[node] - last).abs().max()))
    return worst


def memory_distance(
    scene: Scene,
    tree: DraftTree,
    node: int,
    *,
    commit: Callable[[Session, DraftTree, int], None] | None = None,
) -> float:
    """The largest difference between memory after committing a path and after reading it one by one.

    Args:
        scene: target and prompt.
        tree: the draft.
        node: the last of the accepted path.
        commit: what to do instead of committing the path to the node.
    """
    drafted = scene.session()
    scene.target.verify(drafted, scene.root, tree)
    if commit is None:
        drafted.commit(tree.path(node))
    else:
        commit(drafted, tree, node)
    drafted.check()
    plain = scene.session()
    for token in (scene.root, *(tree.token(step) for step in tree.path(node)[1:])):
        scene.target.verify(plain, token, DraftTree.empty())
        plain.commit([0])
    return _distance(drafted.snapshot(), plain.snapshot())


def _distance(left: Snapshot, right: Snapshot) -> float:
    if left.length != right.length:
        return float("inf")
    pairs = [(a.rows, b.rows) for a, b in zip(left.kv, right.kv, strict=True)]
    if left.recurrent is not None and right.recurrent is not None:
        pairs += [
            (left.recurrent.states, right.recurrent.states),
            (left.recurrent.tails, right.recurrent.tails),
        ]
    return max(float((a - b).abs().max()) for a, b in pairs)
