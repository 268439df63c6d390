"""DflashShape: the numbers a DFlash drafter is built from, out of any dialect of its config, none guessed.

Source: dflash 0.1.0 model.py; vLLM 0.33 qwen3_dflash.py; speculators 0.9.0 models/dflash.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from draftproof.config.drafter import DrafterConfig, DrafterLayer, Method
from draftproof.config.parse import Parsed
from draftproof.config.raw import JsonValue
from draftproof.errors import RefusedInput
from draftproof.models.target.needs import Needs
from draftproof.models.target.reading_rope import read_rope
from draftproof.models.target.shape import RopeShape
from draftproof.names import HiddenIndex

__all__ = ["DflashLayer", "DflashShape", "read_dflash_shape"]

_SPENT: Mapping[str, tuple[JsonValue, ...] | None] = {
    "is_causal": None,
    "causal": None,
    "use_swa": None,
    "swa_window_size": None,
    "use_sliding_window": None,
    "sliding_window": None,
    "max_window_layers": None,
    "sliding_window_non_causal": None,
    "tie_word_embeddings": None,
    "mask_token": None,
    "max_seq_len": None,
    "parallel_drafting": None,
    "final_logit_softcapping": None,
    "output_multiplier": None,
    "input_embedding_scale": None,
    "quantization_config": (None,),
    "projector_type": (None, "dflash"),
    "attention_sink_bias": (None, False),
    "attention_value_scale": (None, 1.0),
    "mlp_bias": (None, False),
    "ptd_token_id": None,
}
"""Extras built in, spent on the canonical layers or idle: whatever they say (None), or only these."""

_IDLE = frozenset({"/speculators_config", "/tie_word_embeddings"})
"""Unread keys of the outer object that speculators 0.9.0 writes: a null, and a flag of a class whose head is
the target's, or a tensor of its own."""


@dataclass(frozen=True, slots=True)
class DflashLayer:
    """How one layer's block attends."""

    window: int | None
    """Tokens a slot sees, itself included; None for all."""

    is_causal: bool
    """Whether a slot sees only slots up to its own."""


@dataclass(frozen=True, slots=True)
class DflashShape:
    """A DFlash drafter."""

    hidden_size: int
    intermediate_size: int
    target_hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    has_bias: bool
    """Of all four projections of every attention layer."""

    norm_eps: float
    max_length: int
    rope: RopeShape
    layers: tuple[DflashLayer, ...]
    taps: tuple[HiddenIndex, ...]
    """The target's hidden states, in the order in which ``fc`` reads them."""

    mask_token_id: int
    block_size: int
    """Slots it was trained with, the anchor included."""

    samples_from_anchor: bool
    """The anchor's slot predicts too: slot k gives the token after its own position."""

    vocab_size: int
    draft_vocab_size: int
    """Rows of the head; fewer than ``vocab_size`` where ``d2t`` leads back."""

    embedding_scale: float
    output_multiplier: float
    softcap: float | None

    @property
    def num_draft_tokens(self) -> int:
        """Tokens one block drafts."""
        return self.block_size if self.samples_from_anchor else self.block_size - 1

    @property
    def is_reduced(self) -> bool:
        """Whether the head covers a part of the vocabulary alone."""
        return self.draft_vocab_size < self.vocab_size


def read_dflash_shape(parsed: Parsed, origin: str) -> DflashShape:
    """The drafter that a config file describes.

    Raises:
        RefusedInput: the file describes another kind of drafter, leaves out what the forward pass needs, or
            holds what would change it in a way not built here.
    """
    drafter = parsed.config
    if not isinstance(drafter, DrafterConfig) or drafter.method.value is not Method.DFLASH:
        raise _other_kind(drafter.method.value if isinstance(drafter, DrafterConfig) else None, origin)
    needs = Needs("drafter config", origin)
    for pointer in parsed.unparsed:
        if pointer not in _IDLE:
            needs.complain(f"{pointer} (a key not known here: it may change the forward pass)")
    for key, said in drafter.extras.items():
        if key not in _SPENT or (_SPENT[key] is not None and said.value not in (_SPENT[key] or ())):
            needs.complain(f"{key} ({said.value!r}: not built into this forward pass)")
    shape = _shape(drafter, needs)
    needs.done()
    return shape


def _shape(drafter: DrafterConfig, needs: Needs) -> DflashShape:
    geometry = drafter.geometry
    hidden = needs.positive("hidden_size", geometry.hidden_size)
    head_dim = needs.positive("head_dim", geometry.head_dim)
    vocab = needs.positive("vocab_size", drafter.vocab_size)
    if needs.value("hidden_act", geometry.hidden_act, "silu") not in {"silu", "swish"}:
        needs.complain(f"hidden_act ({geometry.hidden_act.value!r}, not silu)")
    shape = DflashShape(
        hidden_size=hidden,
        intermediate_size=needs.positive("intermediate_size", geometry.intermediate_size),
        target_hidden_size=needs.positive("target_hidden_size", drafter.target_hidden_size),
        num_heads=needs.positive("num_attention_heads", geometry.num_attention_heads),
        num_kv_heads=needs.positive("num_key_value_heads", geometry.num_key_value_heads),
        head_dim=head_dim,
        has_bias=needs.value("attention_bias", geometry.attention_bias, False),
        norm_eps=float(needs.value("rms_norm_eps", geometry.rms_norm_eps, 1.0)),
        max_length=needs.positive("max_position_embeddings", geometry.max_position_embeddings),
        rope=read_rope(drafter.rope, head_dim, needs),
        layers=_layers(drafter, needs),
        taps=needs.value("target_layer_ids", drafter.taps.hidden_indexes, ()),
        mask_token_id=needs.value("mask_token_id", drafter.mask_token_id, 0),
        block_size=needs.positive("block_size", drafter.block_size),
        samples_from_anchor=needs.value("sample_from_anchor", drafter.sample_from_anchor, False),
        vocab_size=vocab,
        draft_vocab_size=needs.positive("draft_vocab_size", drafter.draft_vocab_size),
        embedding_scale=_number(drafter, "input_embedding_scale", needs) or 1.0,
        output_multiplier=_number(drafter, "output_multiplier", needs) or 1.0,
        softcap=_number(drafter, "final_logit_softcapping", needs),
    )
    if shape.num_heads % shape.num_kv_heads:
        needs.complain(f"num_key_value_heads ({shape.num_kv_heads} does not divide {shape.num_heads} heads)")
    if shape.num_draft_tokens < 1:
        needs.complain(f"block_size ({shape.block_size}: the anchor alone, nothing is drafted)")
    return shape


def _layers(drafter: DrafterConfig, needs: Needs) -> tuple[DflashLayer, ...]:
    if len(drafter.layers) != needs.positive("num_hidden_layers", drafter.geometry.num_hidden_layers):
        needs.complain(f"layer_types ({len(drafter.layers)} of them for num_hidden_layers)")
    return tuple(_layer(index, layer, needs) for index, layer in enumerate(drafter.layers))


def _layer(index: int, layer: DrafterLayer, needs: Needs) -> DflashLayer:
    kind = needs.value(f"layer_types/{index}", layer.kind, "full_attention")
    causal = needs.value(f"causality of layer {index}", layer.causal, False)
    if kind == "sliding_attention":
        return DflashLayer(needs.positive(f"sliding_window of layer {index}", layer.window), causal)
    if kind != "full_attention":
        needs.complain(f"layer_types/{index} ({kind!r}: not built here)")
    return DflashLayer(None, causal)


def _number(drafter: DrafterConfig, key: str, needs: Needs) -> float | None:
    """A number above 0; None where nothing is written. A softcap of 0 caps nothing (dflash 0.1.0)."""
    if key not in drafter.extras or (value := drafter.extras[key].value) is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        needs.complain(f"{key} ({value!r}, not a number above 0)")
        return None
    if value == 0 and key != "final_logit_softcapping":
        needs.complain(f"{key} (0 makes every row the same)")
    return float(value) or None


def _other_kind(method: Method | None, origin: str) -> RefusedInput:
    return RefusedInput(
        "drafter",
        expected="a DFlash drafter",
        found="no drafter that is known" if method is None else method.value,
        where=origin,
        means="this method cannot run it",
        next_step=f"draftproof facts {origin}",
    )
