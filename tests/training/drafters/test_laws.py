"""The five laws of DFlash training, shown by perturbation; each has a control that breaks it and is seen."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from dflash_drafters import native_config, tensors_of, write_drafter
from draftproof.models.decoder import Decoder
from draftproof.models.dflash.load import read_dflash
from draftproof.models.dflash.shape import DflashLayer
from draftproof.models.target.load import load_decoder
from draftproof.training.drafters.blocks import draw_blocks
from draftproof.training.drafters.dflash import DflashNet
from draftproof.training.drafters.sight import Sight, sight_of

pytestmark = pytest.mark.engine

LENGTH, ANCHOR, OTHERS = 24, 11, [4, 17, 20]


@pytest.fixture(scope="module")
def net(tiny_targets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> DflashNet:
    """Random weights; one sliding layer, one full."""
    target: Decoder = load_decoder(tiny_targets["dense"])
    config = native_config(
        use_sliding_window=True, sliding_window=8, layer_types=["sliding_attention", "full_attention"]
    )
    folder = write_drafter(tmp_path_factory.mktemp("net"), config, tensors_of(config))
    made = DflashNet(read_dflash(folder), embedding=target.embedding, head=target.embedding)
    made.load_state_dict(tensors_of(config))
    return made


def text(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Rows and tokens of one sequence."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, LENGTH, 96, generator=generator), torch.randint(
        126, (1, LENGTH), generator=generator
    )


def block(net: DflashNet, rows: Tensor, tokens: Tensor, others: list[int] | None = None) -> Tensor:
    """[B, H]: the block behind ANCHOR in a pass with others."""
    anchors = torch.tensor([[ANCHOR, *(OTHERS if others is None else others)]])
    with torch.no_grad():
        blocks: Tensor = net(rows, tokens, anchors)
    return blocks[0, 0]


def moved(net: DflashNet, rows: Tensor, tokens: Tensor, others: list[int] | None = None) -> float:
    """How far the block's output is from that of the untouched text."""
    return float((block(net, rows, tokens, others) - block(net, *text())).abs().max())


def test_context_lies_strictly_before_the_anchor(net: DflashNet) -> None:
    """Law 1: rows and tokens behind the anchor change nothing; the row right before it does."""
    rows, tokens = text()
    rows[:, ANCHOR + 1 :] += 1
    tokens[:, ANCHOR + 1 :] += 1
    assert moved(net, rows, tokens) == 0
    rows, tokens = text()
    rows[:, ANCHOR - 1] += 1
    assert moved(net, rows, tokens) > 1e-3


def test_the_anchors_own_state_is_unseen_and_its_token_seen(net: DflashNet) -> None:
    """Law 2: the target has not run on the anchor yet."""
    rows, tokens = text()
    rows[:, ANCHOR] += 1
    assert moved(net, rows, tokens) == 0
    rows, tokens = text()
    tokens[:, ANCHOR] += 1
    assert moved(net, rows, tokens) > 1e-3


def test_blocks_are_independent(net: DflashNet) -> None:
    """Law 3: other anchors, their order and their tokens change nothing beyond the rounding of a sum."""
    rows, tokens = text()
    for others in ([20, 4, 17], [1], [ANCHOR, ANCHOR + 1, ANCHOR - 1]):
        assert moved(net, rows, tokens, others) < 1e-6
    tokens[:, OTHERS] += 1
    assert moved(net, rows, tokens) < 1e-6


def test_a_mask_that_shows_the_anchor_is_noticed(net: DflashNet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control of laws 1 and 2: with ``<=`` for ``<`` the anchor's row moves the block."""

    def shown(anchors: Tensor, num_rows: int, num_slots: int, layer: DflashLayer) -> Sight:
        return sight_of(anchors + 1, num_rows, num_slots, layer)

    monkeypatch.setattr("draftproof.training.drafters.dflash.sight_of", shown)
    changed, tokens = text()
    changed[:, ANCHOR] += 1
    plain, _ = text()
    assert (block(net, changed, tokens) - block(net, plain, tokens)).abs().max() > 1e-3


def test_labels_stand_at_their_own_position() -> None:
    """Law 4: slot k of the block at p has the token at p + k; nothing of the prompt is ever a label."""
    tokens = torch.arange(100, 160).repeat(3, 1)
    spans = torch.tensor([[5, 60], [30, 44], [50, 52]])
    generator = torch.Generator().manual_seed(1)
    blocks = draw_blocks(tokens, spans, num_anchors=20, num_slots=6, generator=generator)
    places = blocks.anchors[..., None] + torch.arange(6)
    assert (blocks.labels[blocks.counted] == 100 + places[blocks.counted]).all()
    for row, (prompt, end) in enumerate(spans.tolist()):
        counted = places[row][blocks.counted[row]]
        assert counted.min() >= prompt
        assert counted.max() == end - 1  # with so many anchors one block reaches the end
        used = blocks.anchors[row][blocks.counted[row].any(-1)].tolist()
        assert len(set(used)) == len(used) == min(20, end - prompt)
    assert not blocks.counted[..., 0].any()


def test_the_same_seed_draws_the_same_blocks() -> None:
    """Resuming needs no memory of the draws before."""
    tokens, spans = torch.arange(60).repeat(2, 1), torch.tensor([[5, 60], [9, 50]])
    a, b, c = (
        draw_blocks(
            tokens, spans, num_anchors=8, num_slots=4, generator=torch.Generator().manual_seed(seed)
        ).anchors
        for seed in (1, 1, 2)
    )
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
