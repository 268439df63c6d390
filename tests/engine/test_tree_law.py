"""engine.proof.tree_law: a node knows its ancestors and nothing else, on dense and hybrid targets."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.cache.session import Session
from draftproof.engine.engine import Engine
from draftproof.engine.proof.adversary import random_tree
from draftproof.engine.proof.tree_law import BlindTree, ColumnTree, Scene, memory_distance, node_distance
from draftproof.speculation.tree import DraftTree

pytestmark = [pytest.mark.engine, pytest.mark.property]

KINDS = ("dense", "hybrid")
MakeEngine = Callable[[str, str], Engine]

EXACT = 1e-11
"""float64: a dozen products deep, values near 10; measured below 5e-14."""

FORK = DraftTree([3, 4, 5, 6, 7, 8], [-1, 0, 0, 1, 2, 3, 1])


def scene(engine: Engine, seed: int, length: int) -> Scene:
    """A random prompt of this length."""
    chance = random.Random(seed)  # noqa: S311 - cases, not secrets
    return Scene(engine.target, [chance.randrange(128) for _ in range(length)])


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_see_their_paths_alone(kind: str, tiny_engine: MakeEngine) -> None:
    """For random trees after prompts of any length, every node's logits are those of its path as a chain."""
    engine = tiny_engine(kind, "float64")

    @settings(max_examples=40, derandomize=True, deadline=None)
    @given(st.integers(0, 10**6), st.integers(1, 140))
    def law(seed: int, length: int) -> None:
        tree = random_tree(random.Random(seed), max_nodes=16, vocab_size=128)  # noqa: S311 - the same
        assert node_distance(scene(engine, seed, length), tree) < EXACT

    law()


@pytest.mark.parametrize("kind", KINDS)
def test_committed_paths_leave_what_reading_them_leaves(kind: str, tiny_engine: MakeEngine) -> None:
    """For random trees and any node, memory after the commit is that of plain decoding."""
    engine = tiny_engine(kind, "float64")

    @settings(max_examples=40, derandomize=True, deadline=None)
    @given(st.integers(0, 10**6), st.integers(1, 140), st.data())
    def law(seed: int, length: int, data: st.DataObject) -> None:
        tree = random_tree(random.Random(seed), max_nodes=16, vocab_size=128)  # noqa: S311 - the same
        node = data.draw(st.integers(0, tree.num_draft_tokens))
        assert memory_distance(scene(engine, seed, length), tree, node) < EXACT

    law()


@pytest.mark.parametrize("kind", KINDS)
def test_control_visible_siblings_break_the_law(kind: str, tiny_engine: MakeEngine) -> None:
    """A mask that lets nodes see their siblings is caught on either target."""
    blind = BlindTree(FORK.tokens, FORK.parents)
    assert node_distance(scene(tiny_engine(kind, "float64"), 1, 9), FORK, shown=blind) > 1e-3


def test_control_columns_for_ancestors_break_the_law_where_there_is_a_convolution(
    tiny_engine: MakeEngine,
) -> None:
    """A convolution over columns is caught on the hybrid; the dense target has none to go wrong."""
    columns = ColumnTree(FORK.tokens, FORK.parents)
    assert node_distance(scene(tiny_engine("hybrid", "float64"), 1, 9), FORK, shown=columns) > 1e-3
    assert node_distance(scene(tiny_engine("dense", "float64"), 1, 9), FORK, shown=columns) < EXACT


@pytest.mark.parametrize("kind", KINDS)
def test_control_another_node_of_the_same_depth_breaks_the_law(kind: str, tiny_engine: MakeEngine) -> None:
    """Memory committed at a sibling is caught on either target."""

    def at_sibling(session: Session, tree: DraftTree, node: int) -> None:
        session.commit(tree.path({1: 2, 2: 1}[node]))

    found = memory_distance(scene(tiny_engine(kind, "float64"), 1, 9), FORK, 1, commit=at_sibling)
    assert found > 1e-3
