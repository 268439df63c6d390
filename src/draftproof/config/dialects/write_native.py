"""Writes the canonical drafter as z-lab (block methods) or SpecForge and SGLang (EAGLE-3 family) write it."""

from draftproof.config.dialects.values import METHOD_KEYS
from draftproof.config.dialects.write_layers import has_modern_rope, known, layer_fields, list_of
from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.raw import JsonValue

__all__ = ["write_native"]

_ARCHITECTURES = {
    Method.DFLASH: "DFlashDraftModel",
    Method.DFLASH2: "DFlash2DraftModel",
    Method.DSPARK: "DSparkDraftModel",
    Method.DOMINO: "DominoDraftModel",
    Method.EAGLE3: "LlamaForCausalLMEagle3",
    Method.PEAGLE: "PEagleDraftModel",
}
_EAGLE = (Method.EAGLE3, Method.PEAGLE)
_MADE_FROM_LAYERS = ("use_swa", "swa_window_size", "causal")


def write_native(config: DrafterConfig, method: Method) -> dict[str, JsonValue]:
    """The config of a native file; what has no place in it is left out."""
    written: dict[str, JsonValue] = {"architectures": [_ARCHITECTURES[method]]}
    written |= layer_fields(config)
    written |= known({key: said for key, said in config.extras.items() if _is_top(key, written)})
    advisory = {key.removeprefix("transformer_layer_config."): said for key, said in config.advisory.items()}
    written |= known({key: said for key, said in advisory.items() if _is_own_advisory(key)})
    for key, said in (
        ("target_hidden_size", config.target_hidden_size),
        ("num_target_layers", config.num_target_layers),
    ):
        differs = key != "target_hidden_size" or said.value != config.geometry.hidden_size.value
        if said.value is not None and differs:
            written[key] = said.value
    if config.draft_vocab_size.value not in (None, config.vocab_size.value) or method in _EAGLE:
        written["draft_vocab_size"] = config.draft_vocab_size.value
    return written | (_eagle(config) if method in _EAGLE else _block(config, method))


def _is_top(key: str, written: dict[str, JsonValue]) -> bool:
    return (
        key not in METHOD_KEYS
        and key not in written
        and key not in ("is_causal", "sliding_window_non_causal")
    )


def _is_own_advisory(key: str) -> bool:
    """Not the speculators format's own bookkeeping."""
    return not key.startswith("verifier.") and key not in (
        "algorithm",
        "default_proposal_method",
        "proposal_methods",
        "speculators_version",
    )


def _block(config: DrafterConfig, method: Method) -> dict[str, JsonValue]:
    inner: dict[str, JsonValue] = {}
    written: dict[str, JsonValue] = {}
    if config.block_size.value is not None:
        home = inner if has_modern_rope(config) else written
        home["block_size"] = config.block_size.value
    if config.mask_token_id.value is not None:
        inner["mask_token_id"] = config.mask_token_id.value
    ids = config.taps.layer_ids.value
    if ids is not None and None not in ids:
        inner["target_layer_ids"] = list_of(ids)
    elif config.taps.hidden_indexes.value is not None:
        written["eagle_aux_hidden_state_layer_ids"] = list_of(config.taps.hidden_indexes.value)
    is_default = config.sample_from_anchor.value in (None, method is Method.DSPARK)
    if method is not Method.DOMINO and not is_default:
        inner["sample_from_anchor"] = config.sample_from_anchor.value
    inner |= known(
        {
            key: said
            for key, said in config.extras.items()
            if key in METHOD_KEYS and key not in _MADE_FROM_LAYERS
        }
    )
    if method in (Method.DOMINO, Method.DSPARK):
        inner["projector_type"] = method.value
    return written | _causality(config) | {"dflash_config": inner}


def _causality(config: DrafterConfig) -> dict[str, JsonValue]:
    """``is_causal`` only where the layers' own defaults would say something else."""
    said = {layer.causal.value for layer in config.layers}
    by_default = all(
        layer.causal.value is (layer.kind.value == "sliding_attention") for layer in config.layers
    )
    if by_default or len(said) != 1 or None in said:
        return {}
    return {"is_causal": said.pop()}


def _eagle(config: DrafterConfig) -> dict[str, JsonValue]:
    """Layer ids in both numberings: SGLang reads only the inner key, vLLM only the outer."""
    written: dict[str, JsonValue] = {}
    ids, indexes = config.taps.layer_ids.value, config.taps.hidden_indexes.value
    if indexes is not None:
        written["eagle_aux_hidden_state_layer_ids"] = list_of(indexes)
    if ids is not None and None not in ids:
        written["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": list_of(ids)}
    if config.mask_token_id.value is not None:
        written["mask_token_id"] = config.mask_token_id.value
    norms = config.norms
    for key, said in (
        ("norm_before_residual", norms.before_residual),
        ("norm_before_fc", norms.before_fc),
        ("norm_output", norms.output),
        ("fc_norm", norms.fc_norm),
    ):
        if said.value is not None:
            written[key] = said.value
    return written
