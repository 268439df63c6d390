"""speculation.sampling: the distribution is what the options say, node by node."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.errors import RefusedInput, UsageError
from draftproof.speculation.sampling import History, Sampling, adjusted, distribution, widened
from draftproof.speculation.tree import DraftTree

pytestmark = pytest.mark.engine

LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0, 1.0]])


def kept(sampling: Sampling, logits: torch.Tensor = LOGITS) -> list[int]:
    """The ids with a chance."""
    return distribution(logits, sampling)[0].nonzero().flatten().tolist()


def plain(logits: list[float], sampling: Sampling) -> list[float]:
    """The same distribution, written out over Python floats."""
    scaled = [value / sampling.temperature for value in logits]
    if sampling.top_k:
        least = sorted(scaled, reverse=True)[min(sampling.top_k, len(scaled)) - 1]
        scaled = [value if value >= least else -math.inf for value in scaled]
    weights = [math.exp(value - max(scaled)) for value in scaled]
    probs = [weight / sum(weights) for weight in weights]
    before, out = 0.0, [0.0] * len(probs)
    for i in sorted(range(len(probs)), key=lambda i: (-probs[i], i)):
        out[i] = probs[i] if before < sampling.top_p else 0.0
        before += probs[i]
    out = [p if p >= sampling.min_p * max(out) else 0.0 for p in out]
    return [p / sum(out) for p in out]


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.lists(st.integers(-40, 40).map(lambda i: i / 7), min_size=1, max_size=12, unique=True),
    st.sampled_from([0.3, 1.0, 2.5]),
    st.integers(0, 14),
    st.sampled_from([0.05, 0.37, 0.9, 1.0]),
    st.sampled_from([0.0, 0.11, 0.5, 1.0]),
)
def test_distribution_is_the_plain_one(
    logits: list[float], temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    """In float64 the tensor form and the written-out form agree."""
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    found = distribution(torch.tensor([logits], dtype=torch.float64), sampling)[0].tolist()
    assert found == pytest.approx(plain(logits, sampling), abs=1e-12)


def test_temperature_zero_is_certain() -> None:
    """Greedy is a distribution with one token, the first of the largest."""
    assert distribution(LOGITS, Sampling()).tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0]]


def test_tiny_temperature_does_not_overflow() -> None:
    """A temperature of 1e-30 is greedy in effect, and a number."""
    assert distribution(100 * LOGITS, Sampling(temperature=1e-30)).tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0]]


def test_top_k_keeps_ties_and_at_most_all() -> None:
    """Tokens equal to the k-th stay, whatever their order; a k beyond the vocabulary keeps all."""
    assert kept(Sampling(temperature=1, top_k=2)) == [0, 1, 4]
    assert kept(Sampling(temperature=1, top_k=99)) == [0, 1, 2, 3, 4]


def test_top_p_counts_what_top_k_left() -> None:
    """Top-p works on the distribution renormalised after top-k."""
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log()
    assert kept(Sampling(temperature=1, top_p=0.6), logits) == [0, 1]
    assert kept(Sampling(temperature=1, top_k=2, top_p=0.6), logits) == [0]


def test_top_p_always_keeps_the_best() -> None:
    """However small top-p is, one token stays."""
    assert kept(Sampling(temperature=1, top_p=1e-9)) == [0]


def test_half_precision_logits_become_float32() -> None:
    """Probabilities are never bfloat16."""
    probs = distribution(LOGITS.bfloat16(), Sampling(temperature=1))
    assert probs.dtype == torch.float32
    assert float(probs.sum()) == pytest.approx(1, abs=1e-6)


def test_rows_are_independent() -> None:
    """A row's distribution is the same alone and among others."""
    rows = torch.randn(6, 40, generator=torch.Generator().manual_seed(0))
    options = Sampling(temperature=0.7, top_k=9, top_p=0.8, min_p=0.02)
    together = distribution(rows, options)
    for row, probs in zip(rows, together, strict=True):
        assert torch.equal(distribution(row[None], options)[0], probs)


def test_penalties_follow_the_path_of_each_node() -> None:
    """A token drafted on one branch is penalised below it and nowhere else."""
    tree = DraftTree([1, 2, 1], [-1, 0, 0, 2])
    history = History([0])
    out = adjusted(torch.ones(4, 5), tree, history, Sampling(presence_penalty=0.5, frequency_penalty=0.25))
    assert out.tolist() == [
        [1, 1, 1, 1, 1],
        [1, 0.25, 1, 1, 1],
        [1, 1, 0.25, 1, 1],
        [1, 0.25, 0.25, 1, 1],
    ]


def test_frequency_counts_every_time() -> None:
    """A token emitted twice and drafted once pays three times; presence once."""
    history = History([4])
    history.add([3, 3])
    out = adjusted(torch.zeros(2, 5), DraftTree.chain([3]), history, Sampling(frequency_penalty=1.0))
    assert out[:, 3].tolist() == [-2.0, -3.0]
    out = adjusted(torch.zeros(2, 5), DraftTree.chain([3]), history, Sampling(presence_penalty=1.0))
    assert out[:, 3].tolist() == [-1.0, -1.0]
    assert out[:, 4].tolist() == [0.0, 0.0]


def test_repetition_counts_the_prompt_and_shrinks_either_sign() -> None:
    """Positive logits are divided, negative ones multiplied, for tokens of prompt and output, once."""
    history = History([0, 0])
    history.add([3])
    out = adjusted(LOGITS, DraftTree.empty(), history, Sampling(repetition_penalty=2.0))
    assert out.tolist() == [[1.0, 1.0, 0.0, -2.0, 1.0]]


def test_adjusting_a_tree_is_adjusting_each_path_alone() -> None:
    """Node by node, the tree's logits equal those of a history that emitted the path."""
    tree = DraftTree([1, 2, 1, 4, 0], [-1, 0, 0, 2, 3, 1])
    sampling = Sampling(
        repetition_penalty=1.3, presence_penalty=0.2, frequency_penalty=0.1, bias={4: 1.5, 0: -1.0}
    )
    logits = torch.randn(6, 5, generator=torch.Generator().manual_seed(1))
    history = History([3, 1])
    history.add([1])
    together = adjusted(logits, tree, history, sampling)
    for node in range(6):
        alone = History([3, 1])
        alone.add([1] + [tree.token(step) for step in tree.path(node)[1:]])
        row = adjusted(logits[node : node + 1], DraftTree.empty(), alone, sampling)
        torch.testing.assert_close(together[node], row[0])


def test_bias_comes_before_penalties_and_leaves_the_input() -> None:
    """A bias that turns the sign decides how repetition shrinks it; the model's logits are not written to."""
    logits = torch.tensor([[1.0, 0.0]])
    out = adjusted(logits, DraftTree.empty(), History([0]), Sampling(repetition_penalty=2.0, bias={0: -3.0}))
    assert out.tolist() == [[-4.0, 0.0]]
    assert logits.tolist() == [[1.0, 0.0]]
    assert adjusted(logits, DraftTree.empty(), History([0]), Sampling(temperature=1)) is logits


def test_bias_of_an_unknown_token_is_refused() -> None:
    """A token the model does not have is named."""
    with pytest.raises(RefusedInput, match="5"):
        adjusted(LOGITS, DraftTree.empty(), History([]), Sampling(bias={5: 1.0}))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_logits_that_are_no_numbers_are_refused(bad: float) -> None:
    """NaN or infinity in a row is an error, greedy or not."""
    for sampling in (Sampling(), Sampling(temperature=1)):
        with pytest.raises(RefusedInput):
            distribution(torch.tensor([[0.0, bad]]), sampling)


def test_a_row_that_excludes_all_is_refused() -> None:
    """Nothing but -inf leaves nothing to draw."""
    with pytest.raises(RefusedInput):
        distribution(torch.full((1, 3), -torch.inf), Sampling(temperature=1))


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -0.1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"min_p": math.nan},
        {"repetition_penalty": 0.0},
        {"presence_penalty": math.nan},
        {"frequency_penalty": math.inf},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    """Each option has a range, and NaN is in none."""
    with pytest.raises(UsageError):
        Sampling(**options)  # type: ignore[arg-type]


def test_reduced_vocabulary_is_widened_with_zeros() -> None:
    """A drafter's ids land on the target's; outside its vocabulary the draft has no chance."""
    wide = widened(torch.tensor([[0.25, 0.75]]), torch.tensor([3, 1]), 5)
    assert wide.tolist() == [[0.0, 0.75, 0.0, 0.25, 0.0]]


@pytest.mark.parametrize("ids", [[0], [0, 0], [0, 5], [-1, 2]])
def test_vocabulary_maps_that_are_none_are_refused(ids: list[int]) -> None:
    """A map needs one different id of the target for each of the drafter's."""
    with pytest.raises(RefusedInput):
        widened(torch.ones(1, 2), torch.tensor(ids), 5)
