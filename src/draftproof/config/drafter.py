"""DrafterConfig: one canonical description of a drafter, whatever dialect its file speaks."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from draftproof.config.raw import JsonValue
from draftproof.config.source import Source, Sourced
from draftproof.names import HiddenIndex, LayerId, TokenId

__all__ = ["DrafterConfig", "DrafterLayer", "Geometry", "Method", "Norms", "Rope", "Sharing", "Taps"]


class Method(StrEnum):
    """The drafting algorithm a checkpoint was made for."""

    DFLASH = "dflash"
    DFLASH2 = "dflash2"
    EAGLE3 = "eagle3"
    PEAGLE = "peagle"
    MTP = "mtp"
    DSPARK = "dspark"
    DOMINO = "domino"
    DRAFT_MODEL = "draft_model"


@dataclass(frozen=True, slots=True)
class Taps:
    """Which hidden states of the target the drafter reads, in the order its ``fc`` expects them."""

    layer_ids: Sourced[tuple[LayerId | None, ...]]
    """Layers whose OUTPUT is read (z-lab's numbering); None inside stands for the embeddings."""

    hidden_indexes: Sourced[tuple[HiddenIndex, ...]]
    """The same taps as hidden states (speculators' numbering): one more than the layer id."""


@dataclass(frozen=True, slots=True)
class DrafterLayer:
    """How one drafter layer attends; each value with the reason for it."""

    kind: Sourced[str]
    """``full_attention``, ``sliding_attention`` or ``linear_attention``."""

    window: Sourced[int]
    """Tokens seen by a sliding layer, the query included; None for none."""

    causal: Sourced[bool]
    """Whether a slot of the block sees only slots up to its own."""


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary position embedding, whichever of the two styles the file uses."""

    theta: Sourced[float]
    type: Sourced[str]
    """``default``, ``yarn``, ``llama3``, ``linear``, ``dynamic``, ``longrope``."""

    partial_rotary_factor: Sourced[float]
    scaling: Sourced[Mapping[str, JsonValue]]
    """The remaining parameters of a scaled rope (factor, original length, ...); None if unscaled."""

    is_neox: Sourced[bool]
    """Half-split (True) or interleaved (False) layout."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The shapes a checkpoint must have."""

    hidden_size: Sourced[int]
    intermediate_size: Sourced[int]
    num_hidden_layers: Sourced[int]
    num_attention_heads: Sourced[int]
    num_key_value_heads: Sourced[int]
    head_dim: Sourced[int]
    attention_bias: Sourced[bool]
    hidden_act: Sourced[str]
    rms_norm_eps: Sourced[float]
    max_position_embeddings: Sourced[int]


@dataclass(frozen=True, slots=True)
class Norms:
    """Flags that move or add a normalisation (EAGLE-3 family); unknown where they do not apply."""

    before_residual: Sourced[bool]
    before_fc: Sourced[bool]
    output: Sourced[bool]
    fc_norm: Sourced[bool]


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the drafter takes from the target instead of carrying it."""

    embeddings: Sourced[bool]
    lm_head: Sourced[bool]


@dataclass(frozen=True, slots=True)
class DrafterConfig:
    """Everything an engine needs to run this drafter, each value with its source."""

    method: Sourced[Method]
    dialect: str
    """``native``, ``speculators``, ``eagle`` (flat EAGLE-3), ``modelopt``, ``target`` (an MTP head)."""

    generation: Sourced[str]
    """DFlash: ``A``, ``A'``, ``B``; others: None."""

    architecture: Sourced[str]
    model_type: Sourced[str]
    taps: Taps
    block_size: Sourced[int]
    """Slots of one draft, the anchor included."""

    num_draft_tokens: Sourced[int]
    """Tokens proposed per step: block_size - 1, or block_size where the anchor slot predicts too."""

    sample_from_anchor: Sourced[bool]
    mask_token_id: Sourced[TokenId]
    layers: tuple[DrafterLayer, ...]
    """Empty where the number of layers is not known."""

    layers_source: Source
    """Where the list of layers comes from, or why it is empty."""

    rope: Rope
    geometry: Geometry
    norms: Norms
    sharing: Sharing
    vocab_size: Sourced[int]
    draft_vocab_size: Sourced[int]
    """Rows of the drafter's own head; equal to vocab_size where it uses the target's."""

    target_hidden_size: Sourced[int]
    num_target_layers: Sourced[int]
    verifier: Sourced[str]
    """Name of the target the file was made for, where it says."""

    extras: Mapping[str, Sourced[JsonValue]]
    """Values of this method alone (conv_kernel_size, selector_rank, ...)."""

    advisory: Mapping[str, Sourced[JsonValue]]
    """Values no engine reads while drafting (bos/eos/pad ids, dtype, ...): provenance."""
