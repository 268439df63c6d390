"""models.parts.deltanet: the tree form and the chunks equal the step-by-step rule, to the last digits."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from draftproof.cache.recurrent import advance_states
from draftproof.models.parts.deltanet import (
    CHUNK,
    Steps,
    advance_chunks,
    one_node,
    recurrence,
    tree_nodes,
)

pytestmark = [pytest.mark.engine, pytest.mark.property]

HEADS, RATIO, DK, DV = 2, 3, 8, 5
LAW = 1e-12
"""Absolute, for values near 1 in 64-bit floats (seen: 1e-15)."""


def drawn(count: int, seed: int, decay: float) -> tuple[Steps, Tensor]:
    """Random steps with unit queries and keys, decays up to exp(-decay), and a state."""
    generator = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    qk = torch.nn.functional.normalize(noise(count, 2, HEADS, DK), dim=-1)
    g = -decay * torch.rand(count, HEADS, RATIO, dtype=torch.float64, generator=generator)
    steps = Steps(qk, noise(count, HEADS, RATIO, DV), g, noise(count, HEADS, RATIO).sigmoid())
    return steps, noise(HEADS, DK, RATIO * DV)


def ancestry_of(parents: list[int]) -> Tensor:
    """Who is whose ancestor, from the parents."""
    seen = torch.zeros(len(parents), len(parents), dtype=torch.bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            seen[node] = seen[parent]
        seen[node, node] = True
    return seen.double()


def flat(state: Tensor) -> Tensor:
    """[Hk, R, Dk, Dv] as the store keeps it."""
    return state.permute(0, 2, 1, 3).reshape(HEADS, DK, RATIO * DV)


@st.composite
def parent_lists(draw: st.DrawFn) -> list[int]:
    """Any tree in topological order, the root first."""
    size = draw(st.integers(0, 40))
    return [-1, *(draw(st.integers(0, node)) for node in range(size))]


@settings(max_examples=100, derandomize=True, deadline=None)
@given(parent_lists(), st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 30.0, 2000.0]), st.data())
def test_a_tree_is_the_rule_along_every_path(
    parents: list[int], seed: int, decay: float, data: st.DataObject
) -> None:
    """Outputs and the committed state of any node equal the recurrence's, up to decays that underflow."""
    steps, state = drawn(len(parents), seed, decay)
    wanted, states = recurrence(steps, state, parents)
    before = state.clone()
    found, aside = tree_nodes(steps, state, ancestry_of(parents))
    assert float((found - wanted).abs().max()) < LAW
    assert torch.equal(state, before)
    node = data.draw(st.integers(0, len(parents) - 1))
    path = [node]
    while parents[path[0]] >= 0:
        path.insert(0, parents[path[0]])
    keys, updates, decays = aside.keys[:, path], aside.updates[:, :, path], aside.decays[:, :, path]
    advance_states(state[None], keys[None], updates[None], decays[None], len(path) - 1)
    assert float((state - flat(states[node])).abs().max()) < LAW


def test_a_chain_sums_its_decays_without_the_matrix() -> None:
    """The running sum of a chain and the ancestor matrix give the same."""
    steps, state = drawn(9, 1, 1.0)
    first, _ = tree_nodes(steps, state, ancestry_of(list(range(-1, 8))))
    second, _ = tree_nodes(steps, state, None)
    assert float((first - second).abs().max()) < LAW


def test_one_node_is_a_tree_of_one() -> None:
    """The short form for a single node equals the general one, output and what it puts aside."""
    steps, state = drawn(1, 2, 1.0)
    wanted, expected = tree_nodes(steps, state, ancestry_of([-1]))
    found, aside = one_node(steps, state)
    assert float((found - wanted).abs().max()) < LAW
    for mine, theirs in ((aside.keys, expected.keys), (aside.updates, expected.updates)):
        assert float((mine - theirs).abs().max()) < LAW
    assert torch.equal(aside.decays, expected.decays)


@pytest.mark.parametrize("chunks", [1, 2, 5])
@pytest.mark.parametrize("decay", [0.01, 5.0, 2000.0])
def test_chunks_are_the_rule(chunks: int, decay: float) -> None:
    """Whole chunks leave the outputs and the state of the step-by-step rule."""
    steps, state = drawn(chunks * CHUNK, 3, decay)
    wanted, states = recurrence(steps, state, range(-1, chunks * CHUNK - 1))
    found = advance_chunks(steps, state)
    assert float((found - wanted).abs().max()) < LAW
    assert float((state - flat(states[-1])).abs().max()) < LAW


def test_siblings_that_meet_are_noticed() -> None:
    """With a chain's mask over a fork the outputs leave the law by far."""
    steps, state = drawn(3, 4, 1.0)
    wanted, _ = recurrence(steps, state, [-1, 0, 0])
    found, _ = tree_nodes(steps, state, ancestry_of([-1, 0, 1]))
    assert float((found - wanted).abs().max()) > 1e-3
