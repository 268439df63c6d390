"""Eagle3Shape: the numbers an EAGLE-3 drafter is built from, out of any dialect of its config, none guessed.

Source: SafeAILab/EAGLE cnets.py; speculators 0.9.0 models/eagle3; vLLM 0.33 llama_eagle3.py.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from draftproof.config.dialects.taps import eagle_default_indexes
from draftproof.config.drafter import DrafterConfig, DrafterLayer, Method
from draftproof.config.parse import Parsed
from draftproof.config.raw import JsonValue
from draftproof.config.reader import derived, unknown
from draftproof.errors import RefusedInput
from draftproof.models.target.needs import Needs
from draftproof.models.target.reading_rope import read_rope
from draftproof.models.target.shape import AttentionShape, DecoderShape, LayerShape
from draftproof.names import HiddenIndex

__all__ = ["Eagle3Norms", "Eagle3Shape", "read_eagle3_shape", "require_eagle3"]

_SPENT: Mapping[str, tuple[JsonValue, ...] | None] = {
    "use_sliding_window": None,
    "sliding_window": None,
    "max_window_layers": None,
    "sliding_window_non_causal": None,
    "tie_word_embeddings": None,
    "num_aux_hidden_states": None,
    "num_nextn_predict_layers": None,
    "max_seq_len": None,
    "ttt_steps": None,
    "ptd_token_id": None,
    "mlp_bias": (None, False),
    "parallel_drafting": (None, False),
    "quantization_config": (None,),
    "use_aux_hidden_state": (None, True),
    "use_last_layernorm": (None, True),
    "use_input_layernorm_in_first_layer": (None, True),
}
"""Extras built in, spent on the canonical fields or idle: whatever they say (None), or only these values."""

_IDLE = frozenset({"/speculators_config", "/tie_word_embeddings"})
"""Unread keys of the outer object that speculators 0.9.0 writes: a null, and a flag of a class whose head and
embedding are tensors of their own."""


@dataclass(frozen=True, slots=True)
class Eagle3Norms:
    """Where the variants differ."""

    before_residual: bool
    """The first layer's residual is the normed feature, not the feature."""

    before_fc: bool
    """One norm over all tapped states side by side."""

    output: bool
    """The feature handed on is the normed one the head reads (EAGLE-3.1)."""

    each_tap: bool
    """A norm of its own for each tapped state."""


@dataclass(frozen=True, slots=True)
class Eagle3Shape:
    """An EAGLE-3 drafter."""

    decoder: DecoderShape
    """Its layers; the first reads embedding and feature side by side."""

    target_hidden_size: int
    taps: tuple[HiddenIndex, ...]
    """The target's hidden states, in the order in which ``fc`` reads them."""

    draft_vocab_size: int
    """Rows of its own head; fewer than the vocabulary where ``d2t`` leads back."""

    norms: Eagle3Norms


def read_eagle3_shape(
    parsed: Parsed, origin: str, *, names: Collection[str], num_target_layers: int
) -> Eagle3Shape:
    """The drafter that a config file and the names of its tensors describe.

    Args:
        parsed: its config.
        origin: the file, for errors.
        names: of the checkpoint's tensors, which tell whether heads are normed and the output has a bias.
        num_target_layers: of the target, for files that list no taps.

    Raises:
        RefusedInput: the file describes another kind of drafter, leaves out what the forward pass needs, or
            holds what would change it in a way not built here.
    """
    drafter = require_eagle3(parsed, origin)
    needs = Needs("drafter config", origin)
    for pointer in parsed.unparsed:
        if pointer not in _IDLE:
            needs.complain(f"{pointer} (a key not known here: it may change the forward pass)")
    for problem in parsed.problems:
        needs.complain(f"{problem.pointer or 'the file'} ({problem.kind}: {problem.found})")
    for key, said in drafter.extras.items():
        if key not in _SPENT or (_SPENT[key] is not None and said.value not in (_SPENT[key] or ())):
            needs.complain(f"{key} ({said.value!r}: not built into this forward pass)")
    if drafter.taps == eagle_default_indexes(unknown("not given")):  # silent: the target's depth decides
        depth = derived(num_target_layers, "layers of the target it is loaded beside")
        drafter = replace(drafter, taps=eagle_default_indexes(depth))
    norms = drafter.norms
    shape = Eagle3Shape(
        decoder=_decoder(drafter, needs, names),
        target_hidden_size=needs.positive("target_hidden_size", drafter.target_hidden_size),
        taps=needs.value("eagle_aux_hidden_state_layer_ids", drafter.taps.hidden_indexes, ()),
        draft_vocab_size=needs.positive("draft_vocab_size", drafter.draft_vocab_size),
        norms=Eagle3Norms(
            before_residual=needs.value("norm_before_residual", norms.before_residual, False),
            before_fc=needs.value("norm_before_fc", norms.before_fc, False),
            output=needs.value("norm_output", norms.output, False),
            each_tap=needs.value("fc_norm", norms.fc_norm, False),
        ),
    )
    if shape.draft_vocab_size > shape.decoder.vocab_size:
        needs.complain(f"draft_vocab_size ({shape.draft_vocab_size}, more than vocab_size)")
    needs.done()
    return shape


def _decoder(drafter: DrafterConfig, needs: Needs, names: Collection[str]) -> DecoderShape:
    geometry = drafter.geometry
    if needs.value("hidden_act", geometry.hidden_act, "silu") not in {"silu", "swish"}:
        needs.complain(f"hidden_act ({geometry.hidden_act.value!r}, not silu)")
    attention = AttentionShape(
        num_heads=needs.positive("num_attention_heads", geometry.num_attention_heads),
        num_kv_heads=needs.positive("num_key_value_heads", geometry.num_key_value_heads),
        head_dim=needs.positive("head_dim", geometry.head_dim),
        has_qkv_bias=needs.value("attention_bias", geometry.attention_bias, False),
        has_output_bias=any(name.endswith("self_attn.o_proj.bias") for name in names),
        has_qk_norm=any(name.endswith("self_attn.q_norm.weight") for name in names),
        has_gate=False,
    )
    if attention.num_heads % attention.num_kv_heads:
        needs.complain(f"num_key_value_heads ({attention.num_kv_heads} does not divide the heads)")
    if len(drafter.layers) != needs.positive("num_hidden_layers", geometry.num_hidden_layers):
        needs.complain(f"layer_types ({len(drafter.layers)} of them for num_hidden_layers)")
    return DecoderShape(
        family="eagle3",
        hidden_size=needs.positive("hidden_size", geometry.hidden_size),
        intermediate_size=needs.positive("intermediate_size", geometry.intermediate_size),
        vocab_size=needs.positive("vocab_size", drafter.vocab_size),
        max_length=needs.positive("max_position_embeddings", geometry.max_position_embeddings),
        norm_eps=float(needs.value("rms_norm_eps", geometry.rms_norm_eps, 1.0)),
        norm_is_zero_centred=False,
        has_mlp_bias=False,
        is_tied=False,
        attention=attention,
        delta=None,
        layers=tuple(_layer(index, layer, needs) for index, layer in enumerate(drafter.layers)),
        rope=read_rope(drafter.rope, attention.head_dim, needs),
        sources=(),
    )


def _layer(index: int, layer: DrafterLayer, needs: Needs) -> LayerShape:
    kind = needs.value(f"layer_types/{index}", layer.kind, "full_attention")
    if kind != "full_attention":
        needs.complain(f"layer_types/{index} ({kind!r}: only full attention is built into this drafter)")
    return LayerShape(is_recurrent=False, window=None)


def require_eagle3(parsed: Parsed, origin: str) -> DrafterConfig:
    """The drafter of a config file, if it is an EAGLE-3 one.

    Raises:
        RefusedInput: it describes something else.
    """
    drafter = parsed.config
    method = drafter.method.value if isinstance(drafter, DrafterConfig) else None
    if isinstance(drafter, DrafterConfig) and method is Method.EAGLE3:
        return drafter
    raise RefusedInput(
        "drafter",
        expected="an EAGLE-3 drafter",
        found="no drafter that is known" if method is None else method.value,
        where=origin,
        means="this method cannot run it",
        next_step=f"draftproof facts {origin}",
    )
