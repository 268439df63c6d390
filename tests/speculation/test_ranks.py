"""speculation.ranks: what a sort of the whole row says, found without one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.speculation.ranks import Ranks

pytestmark = pytest.mark.engine


def by_sorting(logits: torch.Tensor, depth: int, num_ranks: int) -> tuple[list[int], list[float]]:
    """The ids and log-probabilities of one row, by a stable sort of all of it."""
    order = logits[depth].sort(descending=True, stable=True).indices[:num_ranks]
    log_probs = logits[depth][order] - logits[depth].logsumexp(-1)
    return order.tolist(), log_probs.tolist()


@settings(max_examples=120, derandomize=True, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 40_000),
    st.integers(1, 80),
    st.integers(1, 12),
    st.sampled_from(["crowded", "apart"]),
)
def test_ranks_are_those_of_a_stable_sort(
    seed: int, vocabulary: int, num_ranks: int, depths: int, values: str
) -> None:
    """Vocabularies of any size, with and without equal logits, some of them impossible."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(depths, vocabulary, generator=generator)
    if values == "crowded":
        logits = logits.round()
    logits[:, 1:][torch.rand(depths, vocabulary - 1, generator=generator) < 0.1] = -torch.inf
    num_ranks = min(num_ranks, vocabulary)
    ranks = Ranks(logits, num_ranks)
    assert ranks.is_finite
    for depth in (depths - 1, 0):
        ids, log_probs = by_sorting(logits, depth, num_ranks)
        assert [ranks.token(depth, rank) for rank in range(num_ranks)] == ids
        assert ranks.log_probs(depth) == pytest.approx(log_probs, abs=1e-5)


@pytest.mark.parametrize("vocabulary", [3, 20_000])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_row_without_a_distribution_is_seen_wherever_it_is(vocabulary: int, value: float) -> None:
    """One bad number in the last column of the last row; minus infinity only where nothing else is left."""
    logits = torch.zeros(4, vocabulary)
    if value == -torch.inf:
        logits[3] = value
    logits[3, -1] = value
    assert not Ranks(logits, 2).is_finite
