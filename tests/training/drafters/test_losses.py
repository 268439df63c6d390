"""Weights and measures of drafter training, against sums written out by hand."""

import math

import pytest
import torch

from draftproof.training.drafters.losses import block_loss, decay_weights, pace_weights, run_lengths

pytestmark = pytest.mark.engine


def test_decay_starts_at_one_behind_the_anchor() -> None:
    """exp(-(k - 1) / gamma), nothing where nothing counts."""
    counted = torch.tensor([[False, True, True, False]])
    assert decay_weights(counted, 4.0)[0].tolist() == pytest.approx([0, 1, math.exp(-0.25), 0])


def test_pace_weighs_a_slot_by_all_it_bears_on() -> None:
    """Prefix products of the smoothed chances, summed from the slot to the end."""
    chances = torch.tensor([0.3, 0.5, 0.2, 0.9])
    counted = torch.tensor([False, True, True, True])
    s = [0.5 * q + 0.5 for q in (0.5, 0.2, 0.9)]
    prefix = [s[0], s[0] * s[1], s[0] * s[1] * s[2]]
    expected = [0, sum(prefix), prefix[1] + prefix[2], prefix[2]]
    assert pace_weights(chances, counted, 0.5).tolist() == pytest.approx(expected)


def test_pace_gives_nothing_behind_the_end_of_a_text() -> None:
    """A slot without a label has no weight and adds none to those before it."""
    chances = torch.tensor([0.3, 0.5, 0.2, 0.9])
    short = pace_weights(chances, torch.tensor([False, True, True, False]), 0.5)
    assert short.tolist() == pytest.approx([0, 0.75 + 0.45, 0.45, 0])


def test_pace_has_no_gradient_of_its_own() -> None:
    """The weights are constants of the loss."""
    chances = torch.tensor([0.3, 0.5], requires_grad=True)
    assert not pace_weights(chances, torch.tensor([False, True]), 0.5).requires_grad


def test_the_loss_is_a_weighted_mean() -> None:
    """Twice the weights, the same loss; a weight of 0 leaves a slot out."""
    logits, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0], [5.0, 0.0]]), torch.tensor([0, 1, 1])
    weights = torch.tensor([1.0, 3.0, 0.0])
    by_hand = (math.log1p(math.exp(-2)) + 3 * math.log1p(math.exp(-1))) / 4
    assert float(block_loss(logits, labels, weights)) == pytest.approx(by_hand)
    assert float(block_loss(logits, labels, 2 * weights)) == pytest.approx(by_hand)


def test_a_run_ends_at_the_first_wrong_slot() -> None:
    """Shares are of the blocks that reach a slot; what is right behind a wrong one counts for nothing."""
    is_right = torch.tensor([[True, True, False, True], [False, True, True, True], [True, False, True, True]])
    counted = torch.tensor([[False, True, True, True], [False, True, True, False], [False, True, True, True]])
    assert run_lengths(is_right, counted).tolist() == pytest.approx([0, 2 / 3, 1 / 3, 0])
