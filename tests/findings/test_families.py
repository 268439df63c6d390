"""findings.families: published facts agree with the published configs they come from."""

import json
from pathlib import Path

import pytest

from draftproof.findings.families import BYTE_IDS, FAMILIES, family_of

CONFIGS = Path(__file__).parents[1] / "configs"
MASKED = {
    path.name: value
    for path in sorted(CONFIGS.glob("*.json"))
    if (value := json.loads(path.read_text("utf-8"))).get("dflash_config", {}).get("mask_token_id")
    and "STALE" not in path.name
    and family_of(value.get("vocab_size", 0))
}


@pytest.mark.parametrize("name", sorted(MASKED))
def test_a_published_mask_is_in_the_table(name: str) -> None:
    """Every real drafter of a known family masks with an id of the table."""
    family = family_of(MASKED[name]["vocab_size"])
    assert family is not None
    assert MASKED[name]["dflash_config"]["mask_token_id"] in family.mask_ids


def test_there_are_masks_to_hold_it_on() -> None:
    """An empty list does not pass."""
    assert len(MASKED) > 10


def test_a_family_is_recognised_by_rows_that_are_its_alone() -> None:
    """No two families share a number of rows; an unknown number names none."""
    rows = [family.embedding_rows for family in FAMILIES]
    assert len(set(rows)) == len(rows)
    assert family_of(12345) is None


def test_ids_lie_inside_the_embedding() -> None:
    """Masks, named tokens and bytes are rows of the table they belong to."""
    for family in FAMILIES:
        assert all(0 <= token < family.embedding_rows for token in (*family.mask_ids, *family.named))
        assert BYTE_IDS.stop <= family.embedding_rows


def test_the_shift_between_two_tokenizers_holds_where_it_is_published() -> None:
    """Qwen3.5's config.json names four ids; the Qwen3 order, shifted, names the same tokens there."""
    config = json.loads((CONFIGS / "qwen3.5-0.8b-target.json").read_text("utf-8"))
    family = family_of(248320)
    assert family is not None
    for key, text in (
        ("vision_start_token_id", "<|vision_start|>"),
        ("vision_end_token_id", "<|vision_end|>"),
        ("image_token_id", "<|image_pad|>"),
        ("video_token_id", "<|video_pad|>"),
    ):
        assert family.named[config[key]].text == text
        assert "inferred" not in family.named[config[key]].source
    assert "inferred" in family.named[248064].source
