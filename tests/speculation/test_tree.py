"""speculation.tree: a draft is a tree in topological order, and walking it follows the target."""

import itertools
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.errors import RefusedInput
from draftproof.speculation.tree import DraftTree

pytestmark = pytest.mark.engine

FORK = DraftTree([5, 6, 7, 5], [-1, 0, 0, 1, 3])


@st.composite
def trees(draw: st.DrawFn, max_nodes: int = 24, num_tokens: int = 30) -> DraftTree:
    """Any tree: each node hangs under an earlier one, with a token its siblings do not have."""
    size = draw(st.integers(0, max_nodes))
    parents, tokens = [-1], list[int]()
    taken: list[set[int]] = [set()]
    for node in range(1, size + 1):
        parent = draw(st.integers(0, node - 1))
        token = draw(st.sampled_from(sorted(set(range(num_tokens)) - taken[parent])))
        taken[parent].add(token)
        taken.append(set())
        parents.append(parent)
        tokens.append(token)
    return DraftTree(tokens, parents)


def test_root_is_counted_in_parents_and_mask_only() -> None:
    """Tokens and depths leave the root out, parents and mask count it."""
    assert FORK.tokens.tolist() == [5, 6, 7, 5]
    assert FORK.parents.tolist() == [-1, 0, 0, 1, 3]
    assert FORK.depths.tolist() == [1, 1, 2, 3]
    assert FORK.ancestor_mask.shape == (5, 5)
    assert FORK.children == ({5: 1, 6: 2}, {7: 3}, {}, {5: 4}, {})


def test_mask_row_is_the_node_and_its_ancestors() -> None:
    """Node 4 sees 0, 1, 3 and itself, never its uncle 2."""
    assert FORK.ancestor_mask.dtype == torch.bool
    assert FORK.ancestor_mask[4].tolist() == [True, True, False, True, True]


def test_a_chain_is_a_tree_and_no_draft_is_the_root() -> None:
    """The mask of a chain is lower triangular; of no draft, a single one."""
    chain = DraftTree.chain([3, 3, 3])
    assert chain.is_chain
    assert chain.parents.tolist() == [-1, 0, 1, 2]
    assert torch.equal(chain.ancestor_mask, torch.ones(4, 4).tril().bool())
    empty = DraftTree.empty()
    assert empty.is_chain
    assert empty.tokens.shape == empty.depths.shape == (0,)
    assert empty.parents.tolist() == [-1]
    assert empty.ancestor_mask.tolist() == [[True]]
    assert empty.walk([9]) == ([0], 9)
    assert not FORK.is_chain


def test_walk_follows_the_target_and_returns_the_token_not_drafted() -> None:
    """The walk goes 0, 1, 3 and stops where the target leaves the tree."""
    assert FORK.walk([5, 7, 0, 9, 0]) == ([0, 1, 3], 9)
    assert FORK.walk(torch.tensor([6, 0, 4, 0, 0])) == ([0, 2], 4)
    assert FORK.walk([5, 7, 0, 5, 8]) == ([0, 1, 3, 4], 8)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(trees(), st.data())
def test_walk_agrees_with_following_parents_back(tree: DraftTree, data: st.DataObject) -> None:
    """Every step of the walk is a child holding the target's token, and no child holds the last one."""
    size = tree.num_draft_tokens + 1
    target = data.draw(st.lists(st.integers(0, 29), min_size=size, max_size=size))
    accepted, following = tree.walk(target)
    assert accepted == tree.path(accepted[-1])
    for earlier, later in itertools.pairwise(accepted):
        assert tree.token(later) == target[earlier]
    assert following == target[accepted[-1]]
    assert following not in tree.children[accepted[-1]]


@settings(max_examples=200, derandomize=True, deadline=None)
@given(trees())
def test_mask_rows_are_paths(tree: DraftTree) -> None:
    """Row i of the mask is true on the path to i and nowhere else, and its length gives the depth."""
    for node, row in enumerate(tree.ancestor_mask.tolist()):
        assert [i for i, seen in enumerate(row) if seen] == tree.path(node)
        assert sum(row) == tree.depth(node) + 1


@pytest.mark.parametrize(
    ("tokens", "parents"),
    [
        ([1], [-1]),
        ([], []),
        ([], [0]),
        ([1], [0, 0]),
        ([1, 2], [-1, 0, 2]),
        ([1, 2], [-1, 2, 0]),
        ([1], [-1, -1]),
        ([-1], [-1, 0]),
        ([4, 4], [-1, 0, 0]),
        ([1.5], [-1, 0]),
        (torch.tensor([1.0]), [-1, 0]),
        (torch.tensor([[1]]), [-1, 0]),
    ],
)
def test_what_is_no_tree_is_refused(tokens: list[int], parents: list[int]) -> None:
    """Wrong lengths, later parents, negative or repeated or fractional tokens are errors."""
    with pytest.raises(RefusedInput):
        DraftTree(tokens, parents)


def test_a_token_may_repeat_along_a_path() -> None:
    """Only siblings must differ."""
    assert DraftTree.chain([7, 7]).tokens.tolist() == [7, 7]


@pytest.mark.parametrize("call", [lambda: FORK.walk([1, 2]), lambda: FORK.path(5), lambda: FORK.token(0)])
def test_nodes_that_do_not_exist_are_refused(call: Callable[[], object]) -> None:
    """A walk needs one target token for each node; a path needs a node."""
    with pytest.raises(RefusedInput):
        call()
