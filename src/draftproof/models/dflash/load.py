"""A drafter's directory to a DflashDrafter beside its target: every tensor used once, every weight filled."""

from pathlib import Path

import torch
from torch import Tensor

from draftproof.config.parse import find_config, parse_config
from draftproof.config.raw import read_raw
from draftproof.models.decoder import Decoder
from draftproof.models.dflash.attention import DflashAttention, DflashWeights
from draftproof.models.dflash.drafter import DflashDrafter, DflashLayerParts, Fusion, Surface
from draftproof.models.dflash.parameters import D2T_NAMES, bill_of_dflash
from draftproof.models.dflash.shape import DflashShape, read_dflash_shape
from draftproof.models.draft_vocabulary import read_draft_vocabulary
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rows import Mlp, RmsNorm
from draftproof.models.target.shards import ShardSource
from draftproof.models.target.weights import allocate, fill

__all__ = ["load_dflash", "read_dflash"]


def read_dflash(directory: Path) -> DflashShape:
    """The shape of the drafter in ``directory``, no weights read.

    Raises:
        CouldNotLook: there is no config.
        RefusedInput: it describes no DFlash drafter that can be run here.
    """
    config = find_config(directory)
    return read_dflash_shape(parse_config(read_raw(config)), str(config))


def load_dflash(directory: Path, target: Decoder) -> DflashDrafter:
    """The drafter in ``directory``, in the target's precision and place, sharing its embedding and head.

    Raises:
        CouldNotLook: there is nothing to read.
        RefusedInput: config or weights are not what they must be; nothing is half-loaded.
    """
    shape, source = read_dflash(directory), ShardSource(directory)
    bill = bill_of_dflash(shape, source.shapes())
    homes = allocate(bill, dtype=target.dtype, device=target.device)
    fill(bill, source, homes)
    has_own_head = "head" in homes
    vocabulary = read_draft_vocabulary(
        source,
        D2T_NAMES,
        num_rows=shape.draft_vocab_size if has_own_head else target.shape.vocab_size,
        vocab_size=target.shape.vocab_size,
        device=target.device,
    )
    build = _Building(shape, homes, target.dtype)
    surface = Surface(
        homes.pop("embedding") if "embedding" in homes else target.embedding,
        Linear(homes.pop("head")) if has_own_head else target.head,
        vocabulary,
    )
    return DflashDrafter(
        shape,
        fusion=Fusion(Linear(homes.pop("fc")), build.norm("hidden_norm")),
        layers=[build.layer(index) for index in range(len(shape.layers))],
        norm=build.norm("norm"),
        surface=surface,
        dtype=target.dtype,
    )


class _Building:
    """Takes homes by name, so that no weight is held twice."""

    def __init__(self, shape: DflashShape, homes: dict[str, Tensor], dtype: torch.dtype) -> None:
        self._shape, self._homes, self._dtype = shape, homes, dtype
        self._exact = torch.float64 if dtype == torch.float64 else torch.float32

    def layer(self, index: int) -> DflashLayerParts:
        here, shape = f"layers.{index}", self._shape
        q = self._homes.pop(f"{here}.q_norm").expand(shape.num_heads, -1)
        k = self._homes.pop(f"{here}.k_norm").expand(shape.num_kv_heads, -1)
        weights = DflashWeights(
            qkv=self._linear(f"{here}.qkv"),
            out=self._linear(f"{here}.o"),
            head_norm=RmsNorm(torch.cat((q, k)), self._shape.norm_eps, dtype=self._exact),
        )
        return DflashLayerParts(
            norm=self.norm(f"{here}.input_layernorm"),
            attention=DflashAttention(shape, index, weights, exact=self._exact),
            mlp_norm=self.norm(f"{here}.post_attention_layernorm"),
            mlp=Mlp(self._linear(f"{here}.gate_up"), self._linear(f"{here}.down")),
        )

    def norm(self, home: str) -> RmsNorm:
        return RmsNorm(self._homes.pop(home), self._shape.norm_eps, dtype=self._dtype)

    def _linear(self, home: str) -> Linear:
        bias = self._homes.pop(f"{home}.bias") if f"{home}.bias" in self._homes else None
        return Linear(self._homes.pop(f"{home}.weight"), bias)
