"""The ``mtp.*`` tensors of a target's checkpoint to a head that runs; every one of them is used, or it fails.

Source of the names: Qwen3-Next, Qwen3.5 and Qwen3.6 checkpoints as vLLM 0.33 qwen3_5_mtp reads them.
Dimensions: H hidden.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from draftproof.models.decoder import Decoder
from draftproof.models.mtp.head import MtpHead
from draftproof.models.target.build import Building, session_shape
from draftproof.models.target.parameters import Bill, add_attention, add_mlp
from draftproof.models.target.shape import DecoderShape, LayerShape
from draftproof.models.target.shards import ShardSource
from draftproof.models.target.weights import TensorSource, allocate, fill

__all__ = ["PREFIX", "bill_of_mtp", "load_mtp"]

PREFIX = "mtp."
"""What the names of the head's tensors begin with."""

_NORMS = ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")
_LAYER_NORMS = ("input_layernorm", "post_attention_layernorm")


@dataclass(frozen=True, slots=True)
class _Part:
    """The tensors of a checkpoint whose names begin alike."""

    whole: TensorSource
    prefix: str

    @property
    def where(self) -> str:
        return self.whole.where

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        found = self.whole.shapes()
        return {name: found[name] for name in found if name.startswith(self.prefix)}

    def read(self, name: str) -> Tensor:
        return self.whole.read(name)


def head_shape(shape: DecoderShape) -> DecoderShape:
    """The head's one layer: it attends fully, also on a hybrid target."""
    return replace(shape, layers=(LayerShape(is_recurrent=False, window=None),), delta=None)


def bill_of_mtp(shape: DecoderShape) -> Bill:
    """The bill of the head of a target of this shape."""
    bill, h = Bill(), shape.hidden_size
    bill.add_whole("fc.weight", f"{PREFIX}fc.weight", (h, 2 * h))
    for norm in _NORMS:
        bill.add_whole(norm, f"{PREFIX}{norm}.weight", (h,), is_exact=True)
    here, names = "layers.0", f"{PREFIX}layers.0"
    for norm in _LAYER_NORMS:
        bill.add_whole(f"{here}.{norm}", f"{names}.{norm}.weight", (h,), is_exact=True)
    add_attention(bill, shape, here, f"{names}.self_attn", paired=False)
    add_mlp(bill, shape, here, f"{names}.mlp")
    return bill


def load_mtp(path: Path, target: Decoder) -> MtpHead:
    """The head in the checkpoint at ``path``, in the precision and on the device of ``target``.

    Raises:
        CouldNotLook, RefusedInput: as ``models.target.load.load_decoder``; a tensor of the head is missing
            or is none of it.
    """
    shape = head_shape(target.shape)
    bill = bill_of_mtp(shape)
    homes = allocate(bill, dtype=target.dtype, device=target.device)
    fill(bill, _Part(ShardSource(path), PREFIX), homes)
    build = Building(shape, homes, target.dtype)
    return MtpHead(
        target,
        session_shape(shape, dtype=target.dtype, device=target.device),
        fc=build.linear("fc"),
        embedding_norm=build.norm("pre_fc_norm_embedding"),
        hidden_norm=build.norm("pre_fc_norm_hidden"),
        layer=build.layer(0),
        norm=build.norm("norm"),
    )
