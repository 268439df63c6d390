"""The speculators format: one outer object, and ``transformer_layer_config`` written as a difference.

Inside ``transformer_layer_config`` absence means the default of the class; the layer fields count only there
(vLLM drops them at the top level); aux_hidden_state_layer_ids are hidden states.
Source: speculators 0.9.0 models/*/config.py; vLLM 0.33 transformers_utils/configs/speculators.
"""

from draftproof.config.defaults import SPECULATORS, SPECULATORS_LAYER_CLASSES, ClassDefaults, layer_class
from draftproof.config.dialects.advisory import parse_advisory
from draftproof.config.dialects.attention import block_layers, causal_layers, gated_window, layer_kinds
from draftproof.config.dialects.eagle import LEFT_TO_RIGHT, parse_eagle_norms
from draftproof.config.dialects.geometry import Holes, parse_geometry, parse_rope, partial_rotary
from draftproof.config.dialects.mtp import mtp_layers
from draftproof.config.dialects.taps import (
    eagle_default_indexes,
    from_hidden_indexes,
    last_hidden_state,
    no_taps,
)
from draftproof.config.dialects.target_fields import TARGET_KEYS
from draftproof.config.dialects.values import (
    LAYER_KEYS,
    METHOD_KEYS,
    first_architecture,
    no_norms,
    num_draft_tokens,
    or_same,
    token,
)
from draftproof.config.drafter import DrafterConfig, DrafterLayer, Geometry, Method, Norms, Sharing, Taps
from draftproof.config.problem import ProblemKind
from draftproof.config.raw import JsonValue
from draftproof.config.reader import Reader, default, derived, unknown
from draftproof.config.source import Source, Sourced, Unknown
from draftproof.names import HiddenIndex

__all__ = ["BLOCK_METHODS", "parse_speculators"]

BLOCK_METHODS = (Method.DFLASH, Method.DFLASH2, Method.DSPARK, Method.DOMINO)
_AUX = ("aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids")
_EXTRA_DEFAULTS: dict[Method, dict[str, JsonValue]] = {
    Method.DFLASH2: {
        "conv_kernel_size": 2,
        "conv_group_size": 16,
        "selector_rank": 256,
        "selector_top_k": 16,
    },
    Method.DOMINO: {"pure_draft_prefix_len": 1, "emb_dim": 256, "gru_hidden_dim": 1024},
    Method.DSPARK: {
        "markov_rank": 256,
        "markov_head_type": "vanilla",
        "enable_confidence_head": True,
        "confidence_head_with_markov": True,
    },
}
_EXTRA_KEYS = (
    "num_nextn_predict_layers",
    "parallel_drafting",
    "max_seq_len",
    "ptd_token_id",
    "sliding_window_non_causal",
    "quantization_config",
)
_TRAINING_KEYS = (
    "speculators_version",
    "has_no_defaults_at_init",
    "enable_sp_ulysses",
    "embed_requires_grad",
    "num_anchors",
    "ce_loss_alpha",
    "l1_loss_alpha",
    "loss_decay_gamma",
    "lambda_base_start",
    "lambda_base_decay_ratio",
    "auf",
)


def parse_speculators(read: Reader, method: Sourced[Method]) -> DrafterConfig:
    """The canonical drafter of a speculators file."""
    layer = read.within("transformer_layer_config")
    inner_type = layer.string("model_type")
    known = layer_class(inner_type.value) if inner_type.value is not None else _class_of(method)
    geometry = parse_geometry(layer, Holes(known, fill_shapes=True))
    library = known.library if known else "the class of transformer_layer_config"
    vocab_size = Holes(known, fill_shapes=True).integer(layer, "vocab_size")
    layers, layers_source = _layers(read, layer, method, geometry, known)
    block_size, from_anchor = _block_size(read, method), _from_anchor(read, method)
    draft_vocab = _draft_vocab(read, method, vocab_size)
    read.string("speculators_model_type", "speculators_config/algorithm")
    theta_absent = (
        default(10000.0, library) if known else unknown(f"no rope, and {library} is not known here")
    )
    return DrafterConfig(
        method=method,
        dialect="speculators",
        generation=unknown("generations are told apart for native DFlash files only"),
        architecture=first_architecture(read),
        model_type=read.string("model_type", absent=inner_type),
        taps=_taps(read, method),
        block_size=block_size,
        num_draft_tokens=_num_draft_tokens(read, method, block_size, from_anchor),
        sample_from_anchor=from_anchor,
        mask_token_id=token(read.integer("mask_token_id", absent=unknown(_no_mask(method)))),
        layers=layers,
        layers_source=layers_source,
        rope=parse_rope(layer, theta_absent=theta_absent, partial_absent=_partial(known, library)),
        geometry=geometry,
        norms=_norms(read, method),
        sharing=_sharing(method, vocab_size, draft_vocab),
        vocab_size=vocab_size,
        draft_vocab_size=draft_vocab,
        target_hidden_size=or_same(
            read, ("target_hidden_size",), geometry.hidden_size, "transformer_layer_config.hidden_size"
        ),
        num_target_layers=read.integer("num_target_layers"),
        verifier=read.string("speculators_config/verifier/name_or_path"),
        extras=_extras(read, layer, method),
        advisory=_advisory(read, layer),
    )


def _class_of(method: Sourced[Method]) -> ClassDefaults | None:
    name = method.value.value if method.value is not None else ""
    name = "dflash" if name == "domino" else name
    return SPECULATORS_LAYER_CLASSES.get(name, None)


def _partial(known: ClassDefaults | None, library: str) -> Sourced[float]:
    if known is None:
        return unknown(f"no partial_rotary_factor, and {library} is not known here")
    return partial_rotary(known)


def _no_mask(method: Sourced[Method]) -> str:
    if method.value in (*BLOCK_METHODS, Method.PEAGLE):
        return f"no /mask_token_id; {SPECULATORS} leaves it null, vLLM 0.33 refuses"
    return "this method has no mask token"


def _taps(read: Reader, method: Sourced[Method]) -> Taps:
    if method.value is Method.MTP:
        return last_hidden_state(read.integer("num_target_layers"))
    indexes = read.integers(*_AUX)
    if indexes.value is not None:
        return from_hidden_indexes(Sourced(tuple(map(HiddenIndex, indexes.value)), indexes.source))
    if isinstance(indexes.source, Unknown) and read.says(*_AUX):
        return no_taps(indexes.source.reason)
    if method.value in (Method.EAGLE3, Method.PEAGLE):
        return eagle_default_indexes(read.integer("num_target_layers"))
    return no_taps(f"no /aux_hidden_state_layer_ids; {SPECULATORS} leaves them null")


def _block_size(read: Reader, method: Sourced[Method]) -> Sourced[int]:
    if method.value in BLOCK_METHODS:
        return read.integer("block_size", absent=default(8, f"{SPECULATORS} block_size"))
    return read.integer("block_size", absent=unknown("this method has no block"))


def _from_anchor(read: Reader, method: Sourced[Method]) -> Sourced[bool]:
    if method.value in BLOCK_METHODS:
        if method.value is Method.DOMINO:
            # The class sets shift_label for Domino where it is absent.
            return read.boolean("shift_label", absent=default(True, f"{SPECULATORS} shift_label"))
        by_class = method.value is Method.DSPARK
        return read.boolean(
            "sample_from_anchor", absent=default(by_class, f"{SPECULATORS} sample_from_anchor")
        )
    return unknown("this method has no block and no anchor slot")


def _num_draft_tokens(
    read: Reader, method: Sourced[Method], block_size: Sourced[int], from_anchor: Sourced[bool]
) -> Sourced[int]:
    """``speculative_tokens`` of the first proposal method, as vLLM takes it; else what the block gives."""
    from_block = num_draft_tokens(method, block_size, from_anchor)
    path = "speculators_config/proposal_methods/0/speculative_tokens"
    said = read.integer(path)
    if read.says(path):
        both = said.value is not None and from_block.value is not None
        if both and said.value != from_block.value:
            read.complain(ProblemKind.CONFLICT, path, f"{from_block.value}, by block_size", f"{said.value}")
        return said
    if method.value in BLOCK_METHODS:
        return from_block
    return unknown(f"no {read.pointer(path)}: the number is chosen when serving")


def _draft_vocab(read: Reader, method: Sourced[Method], vocab_size: Sourced[int]) -> Sourced[int]:
    if method.value is Method.MTP:
        return or_same(read, ("draft_vocab_size",), vocab_size, "vocab_size: MTP uses the target's head")
    return read.integer("draft_vocab_size", absent=default(32000, f"{SPECULATORS} draft_vocab_size"))


def _layers(
    read: Reader,
    layer: Reader,
    method: Sourced[Method],
    geometry: Geometry,
    known: ClassDefaults | None,
) -> tuple[tuple[DrafterLayer, ...], Source]:
    if method.value is Method.MTP:
        count = read.integer("num_nextn_predict_layers", absent=default(1, f"{SPECULATORS} MTPConfig"))
        return mtp_layers(count), count.source
    kinds = layer_kinds(layer, geometry.num_hidden_layers, known)
    window = gated_window(layer, known)
    if method.value not in BLOCK_METHODS:
        return causal_layers(kinds.each, window, LEFT_TO_RIGHT), kinds.source
    sliding = _causal_if_sliding(read, method)
    layers = block_layers(kinds.each, window, causal_everywhere=None, causal_if_sliding=sliding)
    return layers, kinds.source


def _causal_if_sliding(read: Reader, method: Sourced[Method]) -> Sourced[bool]:
    """The opposite of ``sliding_window_non_causal``, which speaks of sliding layers only."""
    said = read.boolean("sliding_window_non_causal")
    if said.value is not None:
        return Sourced(not said.value, said.source)
    if read.says("sliding_window_non_causal"):
        return Sourced(None, said.source)
    non_causal = method.value is Method.DFLASH2
    shown = "true" if non_causal else "false"
    return default(not non_causal, f"{SPECULATORS} sliding_window_non_causal={shown}")


def _norms(read: Reader, method: Sourced[Method]) -> Norms:
    if method.value not in (Method.EAGLE3, Method.PEAGLE):
        return no_norms("of the EAGLE-3 family; this method has no such norm")
    library = "vLLM 0.33 speculators/algos.py (speculators 0.9.0's own class default is false)"
    if method.value is Method.PEAGLE:
        library = "vLLM 0.33 speculators/algos.py"
    return parse_eagle_norms(read, library, before_residual=method.value is Method.EAGLE3)


def _sharing(method: Sourced[Method], vocab_size: Sourced[int], draft_vocab: Sourced[int]) -> Sharing:
    if method.value is Method.MTP:
        rule = "MTP uses the target's embedding and head"
        return Sharing(derived(True, rule), derived(True, rule))
    embeddings: Sourced[bool] = unknown("optional in this format: the tensors of the checkpoint decide")
    if None not in (vocab_size.value, draft_vocab.value) and vocab_size.value != draft_vocab.value:
        return Sharing(
            embeddings, derived(False, "draft_vocab_size differs from vocab_size: a head of its own")
        )
    return Sharing(embeddings, unknown("the full vocabulary: the tensors of the checkpoint decide"))


def _extras(read: Reader, layer: Reader, method: Sourced[Method]) -> dict[str, Sourced[JsonValue]]:
    fill = _EXTRA_DEFAULTS.get(method.value, {}) if method.value is not None else {}
    extras: dict[str, Sourced[JsonValue]] = {
        key: default(value, f"{SPECULATORS} {key}") for key, value in fill.items()
    }
    homes = ("", "transformer_layer_config")
    if method.value is Method.MTP:
        extras |= layer.collect(TARGET_KEYS)
    return extras | read.collect((*_EXTRA_KEYS, *METHOD_KEYS), homes) | layer.collect(LAYER_KEYS)


def _advisory(read: Reader, layer: Reader) -> dict[str, Sourced[JsonValue]]:
    outer = parse_advisory(read, _TRAINING_KEYS)
    inner = parse_advisory(layer, ("decoder_sparse_step",))
    read.integers(*_AUX)
    verifier = read.collect(("architectures",), ("speculators_config/verifier",))
    chosen = read.collect(
        ("default_proposal_method", "algorithm", "proposal_methods"), ("speculators_config",)
    )
    inner_named = {f"transformer_layer_config.{key}": said for key, said in inner.items()}
    return outer | inner_named | {f"verifier.{key}": said for key, said in verifier.items()} | chosen
