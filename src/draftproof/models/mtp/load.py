"""The tensors of a target's checkpoint that are a head's to a head that runs; all are used, or it fails.

Dimensions: H hidden, V vocabulary.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from draftproof.models.decoder import Decoder
from draftproof.models.mtp.head import MtpHead, MtpLayer
from draftproof.models.mtp.layout import QWEN, QWEN_PREFIX, HeadNames, find_head
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rope import RopeTable
from draftproof.models.target.build import Building, session_shape
from draftproof.models.target.load import prefix_of
from draftproof.models.target.parameters import Bill, add_attention, add_mlp
from draftproof.models.target.shape import DecoderShape, LayerShape
from draftproof.models.target.shards import ShardSource
from draftproof.models.target.weights import TensorSource, allocate, fill

__all__ = ["PREFIX", "bill_of_mtp", "head_names", "load_mtp"]

PREFIX = QWEN_PREFIX
"""What the names of a Qwen head's tensors begin with."""

_ONE_QWEN_LAYER = HeadNames(QWEN, (f"{PREFIX}layers.0.",))
_LAYER_NORMS = ("input_layernorm", "post_attention_layernorm")
_EMBEDDING, _HEAD = "embed_tokens.weight", "shared_head.head.weight"
"""What a DeepSeek layer may have for itself."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The tensors of a checkpoint that are the head's."""

    whole: TensorSource
    names: HeadNames

    @property
    def where(self) -> str:
        return self.whole.where

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        found = self.whole.shapes()
        return {name: found[name] for name in found if self.names.holds(name)}

    def read(self, name: str) -> Tensor:
        return self.whole.read(name)


def head_names(path: Path, depth: int) -> HeadNames | None:
    """The head in the checkpoint at ``path`` by its tensors' names; None where there is none.

    Args:
        path: a directory with safetensors.
        depth: layers of the target.

    Raises:
        CouldNotLook, RefusedInput: there is no checkpoint, or none of a language model.
    """
    source = ShardSource(path)
    return find_head(source.shapes(), prefix_of(source), depth)


def layer_shape(shape: DecoderShape) -> DecoderShape:
    """One layer of a head: it attends fully, also on a hybrid target."""
    return replace(shape, layers=(LayerShape(is_recurrent=False, window=None),), delta=None)


def bill_of_mtp(
    shape: DecoderShape, names: HeadNames = _ONE_QWEN_LAYER, *, own: Collection[str] = ()
) -> Bill:
    """The bill of the head of a target of this shape.

    Args:
        shape: the target's.
        names: where the tensors stand.
        own: embeddings and output heads that layers have for themselves.
    """
    bill, h, layout = Bill(), shape.hidden_size, names.layout
    for i, prefix in enumerate(names.prefixes):
        if i == 0 or not layout.is_shared:
            home, beside = _home(names, i), names.beside(i)
            bill.add_whole(f"{home}fc.weight", f"{beside}{layout.fc}.weight", (h, 2 * h))
            for kind, norm in layout.norms.items():
                bill.add_whole(f"{home}{kind}", f"{beside}{norm}.weight", (h,), is_exact=True)
        here = f"layers.{i}"
        for norm in _LAYER_NORMS:
            bill.add_whole(f"{here}.{norm}", f"{prefix}{norm}.weight", (h,), is_exact=True)
        add_attention(bill, shape, here, f"{prefix}self_attn", paired=False)
        add_mlp(bill, shape, here, f"{prefix}mlp")
    for name in own:
        bill.add_whole(name, name, (shape.vocab_size, h))
    return bill


def load_mtp(path: Path, target: Decoder) -> MtpHead:
    """The head in the checkpoint at ``path``, in the precision and on the device of ``target``.

    Raises:
        CouldNotLook, RefusedInput: as ``models.target.load.load_decoder``; there is no head, or a tensor of
            it is missing or is none of it.
    """
    source, shape = ShardSource(path), layer_shape(target.shape)
    trunk = prefix_of(source)
    names = find_head(source.shapes(), trunk, target.num_layers) or _ONE_QWEN_LAYER
    own, same = _vocabularies(source, names, trunk)
    bill = bill_of_mtp(shape, names, own=own)
    bill.others = tuple((name, "the target's own") for name in same)
    homes = allocate(bill, dtype=target.dtype, device=target.device)
    fill(bill, _Part(source, names), homes)
    remembered = session_shape(shape, dtype=target.dtype, device=target.device)
    return MtpHead(
        _layers(names, shape, homes, target),
        remembered,
        RopeTable(shape.rope, shape.attention.head_dim, dtype=remembered.state_dtype, device=target.device),
        blanks_first=names.layout.blanks_first,
    )


def _layers(
    names: HeadNames, shape: DecoderShape, homes: dict[str, Tensor], target: Decoder
) -> list[MtpLayer]:
    """What is shared is made once; each layer's attention stands alone in its own session."""
    made: list[MtpLayer] = []
    alike = replace(shape, layers=shape.layers * names.num_layers)
    for i, prefix in enumerate(names.prefixes):
        build, home = Building(alike, homes, target.dtype), _home(names, i)
        embedding, head = f"{prefix}{_EMBEDDING}", f"{prefix}{_HEAD}"
        if made and names.layout.is_shared:
            made.append(replace(made[0], block=build.layer(i)))
            continue
        layer = MtpLayer(
            embedding=homes.pop(embedding, target.embedding),
            embedding_norm=build.norm(f"{home}embedding_norm"),
            hidden_norm=build.norm(f"{home}hidden_norm"),
            fc=build.linear(f"{home}fc"),
            block=build.layer(i),
            norm=build.norm(f"{home}norm"),
            head=Linear(homes.pop(head)) if head in homes else target.head,
        )
        made.append(layer)
    return made


def _vocabularies(source: ShardSource, names: HeadNames, trunk: str) -> tuple[list[str], list[str]]:
    """A DeepSeek layer's embeddings and output heads: those unlike the target's, and copies of it."""
    shapes = source.shapes()
    embedding = f"{trunk}{_EMBEDDING}"
    head = "lm_head.weight" if "lm_head.weight" in shapes else embedding
    own: list[str] = []
    same: list[str] = []
    for prefix in () if names.layout.is_shared else names.prefixes:
        for kind, original in ((_EMBEDDING, embedding), (_HEAD, head)):
            name = f"{prefix}{kind}"
            if name in shapes:
                is_copy = torch.equal(source.read(name), source.read(original))
                (same if is_copy else own).append(name)
    return own, same


def _home(names: HeadNames, layer: int) -> str:
    return "" if names.layout.is_shared else f"heads.{layer}."
