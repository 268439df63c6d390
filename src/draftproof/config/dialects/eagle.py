"""EAGLE-3 and P-EAGLE as SGLang, SpecForge and the EAGLE repository write them: one flat config.

The same key means two things: inside ``eagle_config`` the ids are layers whose output is read (SGLang adds
one), at the top level they are hidden states, taken as they are (vLLM).
Source: SGLang 0.5.23 spec_aux_hidden_state; vLLM 0.33 eagle3_utils and llama_eagle3; SpecForge configs.
"""

from collections.abc import Callable

from draftproof.config.defaults import LLAMA, layer_class
from draftproof.config.dialects.advisory import parse_advisory
from draftproof.config.dialects.attention import causal_layers, gated_window, layer_kinds
from draftproof.config.dialects.geometry import Holes, parse_geometry, parse_rope, partial_rotary
from draftproof.config.dialects.taps import (
    eagle_default_indexes,
    from_hidden_indexes,
    from_layer_ids,
    no_taps,
)
from draftproof.config.dialects.values import LAYER_KEYS, first_architecture, or_same, token
from draftproof.config.drafter import DrafterConfig, Method, Norms, Sharing, Taps
from draftproof.config.problem import ProblemKind
from draftproof.config.raw import JsonValue
from draftproof.config.reader import Reader, default, derived, unknown
from draftproof.config.source import Sourced, Unknown
from draftproof.names import HiddenIndex, LayerId, TokenId

__all__ = ["LEFT_TO_RIGHT", "parse_eagle", "parse_eagle_norms"]

LEFT_TO_RIGHT = "EAGLE-3 drafts from left to right"
_SERVED = "EAGLE-3 has no block; the number of draft tokens is chosen when serving"
_EXTRA_KEYS = (
    "parallel_drafting",
    "num_aux_hidden_states",
    "ttt_steps",
    "quantization_config",
)


def parse_eagle(read: Reader, method: Sourced[Method]) -> DrafterConfig:
    """The canonical drafter of a flat EAGLE-3 or P-EAGLE file."""
    read.within("eagle_config")
    model_type = read.string("model_type")
    known = layer_class(model_type.value) or LLAMA
    geometry = parse_geometry(read, Holes(known, fill_shapes=False, disputes_head_dim=True))
    kinds = layer_kinds(read, geometry.num_hidden_layers, known)
    depth = read.integer("num_target_layers", "eagle_config/num_target_layers")
    vocab_size = read.integer("vocab_size")
    draft_vocab = or_same(read, ("draft_vocab_size",), vocab_size, "vocab_size: no smaller one is written")
    return DrafterConfig(
        method=method,
        dialect="eagle",
        generation=unknown("generations are told apart for DFlash only"),
        architecture=first_architecture(read),
        model_type=model_type,
        taps=_taps(read, depth, method),
        block_size=read.integer("block_size", absent=unknown(_SERVED)),
        num_draft_tokens=unknown(_SERVED),
        sample_from_anchor=unknown("EAGLE-3 has no block and no anchor slot"),
        mask_token_id=_mask_token(read, method),
        layers=causal_layers(kinds.each, gated_window(read, known), LEFT_TO_RIGHT),
        layers_source=kinds.source,
        rope=parse_rope(
            read,
            theta_absent=default(10000.0, known.library),
            partial_absent=partial_rotary(known),
        ),
        geometry=geometry,
        norms=parse_eagle_norms(read, "vLLM 0.33 llama_eagle3", before_residual=False),
        sharing=Sharing(
            embeddings=unknown("optional in this format: embed_tokens.weight in the checkpoint decides"),
            lm_head=derived(False, "an EAGLE-3 checkpoint carries its own head"),
        ),
        vocab_size=vocab_size,
        draft_vocab_size=draft_vocab,
        target_hidden_size=or_same(
            read,
            ("eagle_config/target_hidden_size", "target_hidden_size"),
            geometry.hidden_size,
            "hidden_size: no other width is written",
        ),
        num_target_layers=depth,
        verifier=unknown("this format does not name the target"),
        extras=_extras(read),
        advisory=parse_advisory(read, ("decoder_sparse_step",)),
    )


def parse_eagle_norms(read: Reader, library: str, *, before_residual: bool) -> Norms:
    """The four norm flags, with what ``library`` takes where they are absent."""
    flag = _flag_reader(read, library)
    return Norms(
        before_residual=flag("norm_before_residual", before_residual),
        before_fc=flag("norm_before_fc", False),
        output=flag("norm_output", False),
        fc_norm=flag("fc_norm", False),
    )


def _flag_reader(read: Reader, library: str) -> Callable[[str, bool], Sourced[bool]]:
    """Flags stand at the top level, or in ``eagle_config`` as NVIDIA's heads write them."""
    return lambda key, absent: read.boolean(key, f"eagle_config/{key}", absent=default(absent, library))


def _taps(read: Reader, depth: Sourced[int], method: Sourced[Method]) -> Taps:
    """Of two lists in one file the first of SGLang's, then of vLLM's order counts; others are conflicts."""
    nested = ("eagle_config/eagle_aux_hidden_state_layer_ids", "target_layer_ids")
    top = (
        "eagle_aux_hidden_state_layer_ids",
        "aux_hidden_state_layer_ids",
        "eagle_config/layer_ids",
        "layer_ids",
    )
    ids, indexes = read.integers(*nested), read.integers(*top)
    if ids.value is not None:
        taps = from_layer_ids(Sourced(tuple(map(LayerId, ids.value)), ids.source))
        if indexes.value is not None and indexes.value != taps.hidden_indexes.value:
            path = next(p for p in top if read.has(p))
            wanted = list(taps.hidden_indexes.value or ())
            expected = f"{'eagle_config' if read.has(nested[0]) else 'target_layer_ids'} ids + 1: {wanted}"
            read.complain(ProblemKind.CONFLICT, path, expected, f"{list(indexes.value)}")
        return taps
    if indexes.value is not None:
        return from_hidden_indexes(Sourced(tuple(map(HiddenIndex, indexes.value)), indexes.source))
    for said, paths in ((ids, nested), (indexes, top)):
        if isinstance(said.source, Unknown) and read.says(*paths):
            return no_taps(said.source.reason)
    if method.value is None:
        return no_taps("no layer ids are written, and what the method takes without them is not known here")
    return eagle_default_indexes(depth)


def _mask_token(read: Reader, method: Sourced[Method]) -> Sourced[TokenId]:
    reason = "EAGLE-3 has no mask token"
    if method.value is Method.PEAGLE:
        reason = "no mask_token_id, pard_token or ptd_token_id is written"
    return token(read.integer("mask_token_id", "pard_token", "ptd_token_id", absent=unknown(reason)))


def _extras(read: Reader) -> dict[str, Sourced[JsonValue]]:
    return read.collect((*_EXTRA_KEYS, *LAYER_KEYS)) | read.collect(
        ("use_aux_hidden_state", "use_last_layernorm", "use_input_layernorm_in_first_layer"),
        ("eagle_config",),
    )
