"""The target a drafter is trained for, frozen: from a checkpoint directory, or from a GGUF file.

A GGUF file's blocks are expanded to the 32-bit floats they stand for, so the drafter learns the model that
the file is, not the one it was made from.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from draftproof.engine.text.endings import config_endings
from draftproof.engine.text.gguf import read_gguf_text_codec
from draftproof.engine.text.tokens import TextCodec, read_text_codec
from draftproof.models.decoder import Decoder
from draftproof.models.gguf.file import GgufFile, is_gguf
from draftproof.models.gguf.shape import heads_are_paired
from draftproof.models.parts.rope import pair_order
from draftproof.models.target.load import load_decoder
from draftproof.models.target.shape import DecoderShape
from draftproof.models.target.shards import ShardSource

__all__ = ["Frozen", "freeze", "weights_digest"]


@dataclass(frozen=True, slots=True)
class Frozen:
    """A target in 32-bit floats, twice: as it serves one text, and as it reads many in lockstep."""

    decoder: Decoder
    weights: Mapping[str, Tensor]
    """By a checkpoint's names, rows in a checkpoint's order."""

    codec: TextCodec
    endings: frozenset[int]
    digest: str
    """Of its weights."""

    @property
    def head(self) -> Tensor:
        """[V, H] rows that score a normed state."""
        return self.decoder.embedding if self.decoder.shape.is_tied else self.weights["lm_head.weight"]


def freeze(place: Path, device: torch.device) -> Frozen:
    """Load a target.

    Args:
        place: a directory, or one GGUF file.
        device: where it computes.

    Raises:
        CouldNotLook, RefusedInput: it is not what it must be.
    """
    decoder = load_decoder(place, dtype=torch.float32, device=device)
    if is_gguf(place):
        codec = read_gguf_text_codec(place)
        endings = frozenset(() if codec.eos_id is None else (codec.eos_id,))
        weights = _expanded(GgufFile(place), decoder.shape)
    else:
        codec, endings, source = read_text_codec(place), config_endings(place), ShardSource(place)
        weights = {name: source.read(name).float() for name in source.shapes()}
    there = {name: weight.to(device) for name, weight in weights.items()}
    return Frozen(decoder, there, codec, endings, weights_digest(place))


def _expanded(file: GgufFile, shape: DecoderShape) -> dict[str, Tensor]:
    """Its tensors; query and key rows that stand in pairs are put back in a checkpoint's order."""
    weights = {name: file.read(name).float() for name in file.shapes()}
    if heads_are_paired(file):
        order = torch.tensor(pair_order(shape.attention.head_dim, shape.rope.rotary_dim))
        for name in [name for name in weights if ".q_proj." in name or ".k_proj." in name]:
            heads = weights[name].unflatten(0, (-1, len(order)))  # type: ignore[no-untyped-call]
            weights[name] = torch.empty_like(heads).index_copy_(1, order, heads).flatten(0, 1)
    return weights


def weights_digest(place: Path) -> str:
    """One sha256 over a GGUF file, or over all safetensors of a checkpoint in the order of their names."""
    total = hashlib.sha256()
    for path in [place] if place.is_file() else sorted(place.glob("*.safetensors")):
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()
