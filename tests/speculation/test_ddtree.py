"""speculation.ddtree: the reference's trees, and the best there are."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.errors import RefusedInput
from draftproof.speculation.ddtree import RoundCost, build
from draftproof.speculation.tree import DraftTree

pytestmark = pytest.mark.engine

GOLDEN = json.loads((Path(__file__).parent / "golden" / "ddtree_trees.json").read_text())["cases"]


def expected_acceptance(tree: DraftTree, logits: torch.Tensor) -> float:
    """The sum over nodes of the product of their path's marginals."""
    probs = logits.double().softmax(-1)
    return sum(
        math.prod(float(probs[tree.depth(n) - 1, tree.token(n)]) for n in tree.path(node)[1:])
        for node in range(1, tree.num_draft_tokens + 1)
    )


def best_possible(logits: torch.Tensor, budget: int) -> float:
    """The largest sum of ``budget`` prefix probabilities, all prefixes written out."""
    probs = logits.double().softmax(-1).tolist()
    prefixes: list[float] = [
        math.prod(probs[d][t] for d, t in enumerate(path))
        for depth in range(1, len(probs) + 1)
        for path in product(range(len(probs[0])), repeat=depth)
    ]
    return sum(sorted(prefixes, reverse=True)[:budget])


def test_there_are_forty_golden_trees() -> None:
    """The golden file was read whole."""
    assert len(GOLDEN) == 40


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['kind']}-{case['seed']}")
def test_tree_and_walk_are_the_references(case: dict[str, Any]) -> None:
    """Tokens, depths, parents, mask and walk equal those of the reference implementation."""
    tree = build(torch.tensor(case["draft_logits"]), case["budget"])
    expected = case["expected"]
    assert tree.tokens.tolist() == expected["node_token_ids"]
    assert tree.depths.tolist() == expected["node_depths"]
    assert tree.parents.tolist() == expected["parents"]
    rows = ["".join(str(int(seen)) for seen in row) for row in tree.ancestor_mask.tolist()]
    assert rows == expected["ancestor_or_self"]
    walk = case["walk"]
    assert tree.walk(walk["target_token_at_node"]) == (walk["accepted_nodes"], walk["next_token"])


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5), st.integers(0, 30))
def test_no_tree_of_the_budget_expects_more(seed: int, depths: int, vocabulary: int, budget: int) -> None:
    """The sum of node probabilities is the best of all prefix-closed sets of that size."""
    logits = 2 * torch.randn(depths, vocabulary, generator=torch.Generator().manual_seed(seed))
    tree = build(logits, budget)
    assert tree.num_draft_tokens == min(budget, sum(vocabulary**d for d in range(1, depths + 1)))
    assert math.isclose(expected_acceptance(tree, logits), best_possible(logits, budget), rel_tol=1e-5)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 20))
def test_spine_is_in_the_tree_and_costs_little(seed: int, depths: int, budget: int) -> None:
    """With the spine the arg-max chain comes first, up to the budget; the rest is best first."""
    logits = torch.randn(depths, 11, generator=torch.Generator().manual_seed(seed))
    tree = build(logits, budget, spine=True)
    length = min(depths, budget)
    assert tree.tokens[:length].tolist() == logits.argmax(-1)[:length].tolist()
    assert tree.parents[: length + 1].tolist() == list(range(-1, length))
    assert expected_acceptance(tree, logits) <= best_within(logits, budget) + 1e-6


def best_within(logits: torch.Tensor, budget: int) -> float:
    """What the tree without a spine expects."""
    return expected_acceptance(build(logits, budget), logits)


def test_equal_probabilities_are_taken_by_rank_path() -> None:
    """With flat marginals nodes come in order of their ranks: first children before next siblings."""
    tree = build(torch.zeros(2, 2), 6)
    assert tree.tokens.tolist() == [0, 1, 0, 1, 0, 1]
    assert tree.parents.tolist() == [-1, 0, 0, 1, 1, 2, 2]


def test_equal_logits_are_taken_by_token_id() -> None:
    """Of equal logits the smaller ids are kept, also where the number of ranks cuts through them."""
    assert build(torch.zeros(1, 1000), 5).tokens.tolist() == [0, 1, 2, 3, 4]
    logits = torch.zeros(1, 1000)
    logits[0, 700] = 1.0
    assert build(logits, 3).tokens.tolist() == [700, 0, 1]


def test_impossible_tokens_are_left_out() -> None:
    """A token of probability 0 is no node, whatever the budget."""
    logits = torch.tensor([[0.0, -torch.inf, 1.0], [-torch.inf, 0.0, -torch.inf]])
    for spine in (False, True):
        tree = build(logits, 50, spine=spine)
        assert sorted(tree.path(n)[1:] and tree.token(n) for n in range(1, 5)) == [0, 1, 1, 2]
        assert tree.num_draft_tokens == 4


def test_budget_zero_and_no_depth_are_the_root() -> None:
    """Nothing to draft is a plain step."""
    assert build(torch.zeros(3, 4), 0) == DraftTree.empty()
    assert build(torch.zeros(0, 4), 7) == DraftTree.empty()


def test_half_precision_logits_are_scored_in_float32() -> None:
    """A bfloat16 row gives the tree of the same values in float32."""
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(3)).bfloat16()
    assert build(logits, 20) == build(logits.float(), 20)


def test_cost_stops_the_tree_where_it_pays_no_more() -> None:
    """The tree is cut at the node count with the most tokens expected a second, found by trying all."""
    logits = 2 * torch.randn(6, 30, generator=torch.Generator().manual_seed(1))
    cost = RoundCost(1.0, [2.0 + 0.01 * n + 0.002 * n * n for n in range(65)])
    whole = build(logits, 64)
    rates = [
        (1 + expected_acceptance(build(logits, n), logits)) / (1.0 + cost.verify_s[n]) for n in range(65)
    ]
    stopped = build(logits, 64, round_cost=cost)
    assert stopped.num_draft_tokens == max(range(65), key=rates.__getitem__)
    assert 0 < stopped.num_draft_tokens < 64
    assert stopped.tokens.tolist() == whole.tokens[: stopped.num_draft_tokens].tolist()
    free = RoundCost(1.0, [2.0] * 65)
    assert build(logits, 64, round_cost=free) == whole


@pytest.mark.parametrize(
    ("logits", "budget"),
    [
        (torch.zeros(3), 4),
        (torch.zeros(1, 3, 4), 4),
        (torch.zeros(3, 0), 4),
        (torch.zeros(3, 4), -1),
        (torch.full((2, 3), torch.nan), 4),
        (torch.tensor([[0.0, torch.inf]]), 4),
        (torch.full((2, 3), -torch.inf), 4),
    ],
)
def test_what_is_no_distribution_or_budget_is_refused(logits: torch.Tensor, budget: int) -> None:
    """Wrong shapes, a negative budget and rows that are no distribution are errors."""
    with pytest.raises(RefusedInput):
        build(logits, budget)


def test_too_few_costs_are_refused() -> None:
    """Every node count up to the budget needs its cost."""
    with pytest.raises(RefusedInput):
        build(torch.zeros(3, 4), 4, round_cost=RoundCost(1.0, [1.0] * 4))
