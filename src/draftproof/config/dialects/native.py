"""DFlash and its kin as z-lab, SpecForge, Xiaomi and ModelOpt write them: flat, with a ``dflash_config``.

Source: dflash 0.1.0 model.py; vLLM 0.33 qwen3_dflash and eagle3_utils; SGLang 0.5.23 dflash_utils;
SpecForge configs; Domino and DSpark add their own keys to the same file.
"""

from draftproof.config.defaults import QWEN3, ClassDefaults, layer_class
from draftproof.config.dialects.advisory import parse_advisory
from draftproof.config.dialects.attention import FULL, SLIDING, block_layers, gated_window, layer_kinds
from draftproof.config.dialects.geometry import Holes, parse_geometry, parse_rope, partial_rotary
from draftproof.config.dialects.taps import default_layer_ids, from_hidden_indexes, from_layer_ids, no_taps
from draftproof.config.dialects.values import (
    LAYER_KEYS,
    METHOD_KEYS,
    first_architecture,
    no_norms,
    num_draft_tokens,
    or_same,
    token,
)
from draftproof.config.drafter import DrafterConfig, DrafterLayer, Geometry, Method, Rope, Sharing, Taps
from draftproof.config.problem import ProblemKind
from draftproof.config.raw import JsonValue
from draftproof.config.reader import Reader, default, derived, unknown
from draftproof.config.source import Source, Sourced, Unknown
from draftproof.names import HiddenIndex, LayerId, TokenId

__all__ = ["parse_native"]

_HOMES = ("dflash_config", "dspark_config", "")
_TOP_KEYS = ("is_causal", "quantization_config")
_ID_PATHS = (
    "dflash_config/target_layer_ids",
    "dspark_config/target_layer_ids",
    "dspark_target_layer_ids",
    "target_layer_ids",
)
_AUX_PATHS = ("eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", "layer_ids")
_MODELOPT_KEYS = ("dflash_config/use_swa", "dflash_config/swa_window_size")
_NO_SHIFT = "of the EAGLE-3 family; a block drafter has no such norm"


def parse_native(read: Reader, method: Sourced[Method]) -> DrafterConfig:
    """The canonical drafter of a flat file with ``dflash_config`` or ``dspark_config``."""
    for home in ("dflash_config", "dspark_config"):
        read.within(home)
    model_type = read.string("model_type")
    known = layer_class(model_type.value) or QWEN3
    geometry = parse_geometry(read, Holes(known, fill_shapes=False, disputes_head_dim=True))
    layers, layers_source = _layers(read, geometry, known)
    rope = parse_rope(
        read,
        theta_absent=unknown(
            "no rope_theta and no rope_parameters; readers disagree: transformers and MLX fill in 10000, "
            "vLLM and SGLang 0.5.11 1000000, mistral.rs 10000000"
        ),
        partial_absent=partial_rotary(known),
    )
    depth = read.integer("dflash_config/num_target_layers", "num_target_layers")
    vocab_size = read.integer("vocab_size")
    block_size, from_anchor = _block_size(read, method), _from_anchor(read, method)
    return DrafterConfig(
        method=method,
        dialect="modelopt" if any(map(read.has, _MODELOPT_KEYS)) else "native",
        generation=_generation(read, method, layers, rope),
        architecture=first_architecture(read),
        model_type=model_type,
        taps=_taps(read, depth, geometry.num_hidden_layers),
        block_size=block_size,
        num_draft_tokens=num_draft_tokens(method, block_size, from_anchor),
        sample_from_anchor=from_anchor,
        mask_token_id=_mask_token(read),
        layers=layers,
        layers_source=layers_source,
        rope=rope,
        geometry=geometry,
        norms=no_norms(_NO_SHIFT),
        sharing=_sharing(read, vocab_size),
        vocab_size=vocab_size,
        draft_vocab_size=or_same(read, ("draft_vocab_size",), vocab_size, "vocab_size: the target's head"),
        target_hidden_size=or_same(
            read,
            ("dflash_config/target_hidden_size", "target_hidden_size"),
            geometry.hidden_size,
            "hidden_size: no other width is written",
        ),
        num_target_layers=depth,
        verifier=unknown("this format does not name the target"),
        extras=_extras(read),
        advisory=parse_advisory(read),
    )


def _layers(
    read: Reader, geometry: Geometry, known: ClassDefaults
) -> tuple[tuple[DrafterLayer, ...], Source]:
    kinds = layer_kinds(read, geometry.num_hidden_layers, known)
    each, source = kinds.each, kinds.source
    window = gated_window(read, known)
    if read.says("dflash_config/swa_window_size"):
        window = read.integer("dflash_config/swa_window_size")
    swa = read.boolean("dflash_config/use_swa")
    causal_if_sliding = derived(True, "sliding layers are causal (dflash 0.1.0, SpecForge, vLLM 0.33)")
    known_kinds = {kind.value for kind in each}
    if each and swa.value and not known_kinds & {SLIDING, None}:
        said = "layer_types lists none" if kinds.is_listed else "there are no layer_types"
        each = tuple(derived(SLIDING, f"dflash_config.use_swa and {said} (vLLM 0.33)") for _ in each)
        source = each[0].source
        causal_if_sliding = derived(False, f"dflash_config.use_swa, {said}: not causal (vLLM 0.33)")
    layers = block_layers(
        each, window, causal_everywhere=_causal_everywhere(read), causal_if_sliding=causal_if_sliding
    )
    return layers, source


def _causal_everywhere(read: Reader) -> Sourced[bool] | None:
    """``is_causal`` or ``dflash_config.causal``: either, where set, holds for every layer."""
    paths = ("is_causal", "dflash_config/is_causal", "dflash_config/causal")
    said = read.boolean(*paths)
    return said if read.says(*paths) else None


def _taps(read: Reader, depth: Sourced[int], num_layers: Sourced[int]) -> Taps:
    ids = read.integers(*_ID_PATHS)
    aux = read.integers(*_AUX_PATHS)
    if ids.value is not None:
        taps = from_layer_ids(Sourced(tuple(map(LayerId, ids.value)), ids.source))
        if aux.value is not None and aux.value != taps.hidden_indexes.value:
            path = next(p for p in _AUX_PATHS if read.has(p))
            wanted = list(taps.hidden_indexes.value or ())
            read.complain(ProblemKind.CONFLICT, path, f"target_layer_ids + 1: {wanted}", f"{list(aux.value)}")
        return taps
    if aux.value is not None:
        return from_hidden_indexes(Sourced(tuple(map(HiddenIndex, aux.value)), aux.source))
    if isinstance(ids.source, Unknown) and read.says(*_ID_PATHS):
        return no_taps(ids.source.reason)
    return default_layer_ids(depth, num_layers)


def _block_size(read: Reader, method: Sourced[Method]) -> Sourced[int]:
    said = read.integer("dflash_config/block_size", "dspark_config/block_size", "block_size")
    absent = not any(read.has(f"{home}/block_size" if home else "block_size") for home in _HOMES)
    if absent and method.value in (Method.DFLASH, Method.DFLASH2):
        return default(16, "dflash 0.1.0, SGLang 0.5.23, mistral.rs (vLLM asks for num_speculative_tokens)")
    return said


def _from_anchor(read: Reader, method: Sourced[Method]) -> Sourced[bool]:
    if method.value is Method.DOMINO:
        absent_shift = derived(False, "no shift_label: the anchor slot predicts nothing")
        return read.boolean("dflash_config/shift_label", "shift_label", absent=absent_shift)
    by_method = {
        Method.DSPARK: derived(True, "DSpark drafts from the anchor slot on (SpecForge, DeepSpec)"),
        Method.DFLASH: derived(False, "DFlash discards the anchor slot (dflash 0.1.0)"),
        Method.DFLASH2: derived(False, "DFlash 2 discards the anchor slot (dflash 0.1.0)"),
    }
    absent = by_method[method.value] if method.value in by_method else unknown("the method is not known")
    return read.boolean("dflash_config/sample_from_anchor", "sample_from_anchor", absent=absent)


def _mask_token(read: Reader) -> Sourced[TokenId]:
    return token(
        read.integer(
            "dflash_config/mask_token_id",
            "dspark_config/mask_token_id",
            "mask_token_id",
            "dspark_noise_token_id",
            "pard_token",
            "ptd_token_id",
        )
    )


def _generation(
    read: Reader, method: Sourced[Method], layers: tuple[DrafterLayer, ...], rope: Rope
) -> Sourced[str]:
    if method.value is not Method.DFLASH:
        return unknown("generations are told apart for DFlash only")
    if read.has("dflash_config/block_size"):
        return derived("B", "block_size stands inside dflash_config")
    if not layers or any(layer.kind.value is None for layer in layers):
        return unknown("the kinds of the layers are not known")
    if any(layer.kind.value != FULL for layer in layers):
        return derived("A'", "block_size at the top level, some layers slide")
    style = "flat rope" if rope.theta.is_written else "no rope written"
    return derived("A", f"block_size not inside dflash_config, every layer full, {style}")


def _sharing(read: Reader, vocab_size: Sourced[int]) -> Sharing:
    own = read.integer("draft_vocab_size")
    reduced = own.value is not None and vocab_size.value is not None and own.value != vocab_size.value
    head: Sourced[bool] = (
        derived(False, "draft_vocab_size differs from vocab_size: the drafter carries its own head")
        if reduced
        else derived(True, "native checkpoints carry no head (dflash 0.1.0)")
    )
    return Sharing(derived(True, "native checkpoints carry no embedding (dflash 0.1.0)"), head)


def _extras(read: Reader) -> dict[str, Sourced[JsonValue]]:
    return read.collect(METHOD_KEYS, _HOMES) | read.collect((*_TOP_KEYS, *LAYER_KEYS))
