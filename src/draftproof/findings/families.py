"""Published facts about tokenizer families: mask ids, vocabulary lengths, named tokens. Data with sources.

A family is recognised by the rows of its embedding, where that number belongs to one family only.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["BYTE_IDS", "FAMILIES", "Family", "NamedToken", "family_of"]


@dataclass(frozen=True, slots=True)
class NamedToken:
    """A token id that the family's tokenizer gives a name."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Family:
    """Models that share one tokenizer and one embedding height."""

    name: str
    embedding_rows: int
    tokenizer_length: int | None
    """Ids at or above it are rows that no text produces; None where it is not published."""

    mask_ids: tuple[int, ...]
    """Mask tokens of published block drafters, by revision; empty where none is published."""

    mask_source: str
    named: Mapping[int, NamedToken]


# Added tokens of the Qwen2.5/Qwen3 tokenizer, in the order of their ids, the first being 151643.
_QWEN3_FIRST = 151643
_QWEN3_ADDED = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
_QWEN3_SOURCE = "Qwen3 tokenizer_config.json, added_tokens_decoder"

# The Qwen3.5 tokenizer keeps that order behind a longer vocabulary. The shift is exact for the ids its
# config.json names (vision_start 248053, vision_end 248054, image 248056, video 248057, end of text 248044).
_QWEN35_SHIFT = 248044 - _QWEN3_FIRST
_QWEN35_PUBLISHED = frozenset({248044, 248053, 248054, 248056, 248057})
_QWEN35_SOURCE = "Qwen3.5 config.json"
_QWEN35_INFERRED = (
    f"inferred: the Qwen3 order shifted by {_QWEN35_SHIFT}, as for every id that Qwen3.5's config.json names"
)


def _qwen35_named() -> dict[int, NamedToken]:
    named = {}
    for offset, text in enumerate(_QWEN3_ADDED):
        token = _QWEN3_FIRST + offset + _QWEN35_SHIFT
        is_published = token in _QWEN35_PUBLISHED
        named[token] = NamedToken(text, _QWEN35_SOURCE if is_published else _QWEN35_INFERRED)
    return named


FAMILIES: tuple[Family, ...] = (
    Family(
        name="Qwen3",
        embedding_rows=151936,
        tokenizer_length=151669,
        mask_ids=(151669,),
        mask_source="z-lab Qwen3-4B/8B/Coder DFlash and SpecForge a6b6b02 configs",
        named={
            _QWEN3_FIRST + offset: NamedToken(text, _QWEN3_SOURCE) for offset, text in enumerate(_QWEN3_ADDED)
        },
    ),
    Family(
        name="Qwen3.5/3.6/3.8",
        embedding_rows=248320,
        tokenizer_length=248077,
        mask_ids=(248070, 248077),
        mask_source="z-lab Qwen3.5/3.6/3.8 DFlash configs, by revision; SpecForge a6b6b02",
        named=_qwen35_named(),
    ),
    Family(
        name="Llama 3",
        embedding_rows=128256,
        tokenizer_length=128256,
        mask_ids=(),
        mask_source="no block drafter is published for it",
        named={},
    ),
    Family(
        name="gpt-oss",
        embedding_rows=201088,
        tokenizer_length=None,
        mask_ids=(200000,),
        mask_source="z-lab gpt-oss-20b/120b DFlash configs",
        named={
            199998: NamedToken("<|startoftext|>", "gpt-oss config: bos_token_id"),
            200002: NamedToken("<|return|>", "gpt-oss config: eos_token_id"),
        },
    ),
)


BYTE_IDS = range(256)
"""The ids of single bytes in every family above: byte-level BPE numbers the bytes first.

Source: GPT-2's encoder.json order, kept by the Qwen, Llama 3 and gpt-oss vocabularies.
"""


def family_of(embedding_rows: int) -> Family | None:
    """The family with this many embedding rows; None where the number is not known to belong to one."""
    for family in FAMILIES:
        if family.embedding_rows == embedding_rows:
            return family
    return None
