"""Writes the canonical drafter as a speculators file: layers whole, never as a difference to a class."""

from collections.abc import Mapping

from draftproof.config.dialects.attention import SLIDING
from draftproof.config.dialects.speculators import BLOCK_METHODS
from draftproof.config.dialects.values import METHOD_KEYS
from draftproof.config.dialects.write_layers import known, layer_fields, list_of
from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.raw import JsonValue
from draftproof.config.target import MtpHead

__all__ = ["proposal_methods", "write_mtp_head", "write_speculators"]

_ARCHITECTURES = {
    Method.DFLASH: "DFlashDraftModel",
    Method.DFLASH2: "DFlash2DraftModel",
    Method.DSPARK: "DSparkSpeculator",
    Method.DOMINO: "DFlashDraftModel",
    Method.EAGLE3: "Eagle3Speculator",
    Method.PEAGLE: "PEagleSpeculator",
}
_MADE_FROM_LAYERS = ("use_swa", "swa_window_size", "causal", "projector_type", "mask_token")
_IN_LAYERS = ("tie_word_embeddings", "mlp_bias")
_OUTER = (
    "quantization_config",
    "num_nextn_predict_layers",
    "parallel_drafting",
    "ptd_token_id",
    "max_seq_len",
)


def write_speculators(config: DrafterConfig, method: Method) -> dict[str, JsonValue]:
    """The config of a speculators file; what has no place in it is left out."""
    # Domino is written as a DFlash speculator with another projector.
    model_type = "dflash" if method is Method.DOMINO else method.value
    written: dict[str, JsonValue] = {
        "architectures": [_ARCHITECTURES[method]],
        "speculators_model_type": model_type,
        "speculators_config": {
            "algorithm": model_type,
            "default_proposal_method": "greedy",
            "proposal_methods": proposal_methods(config.num_draft_tokens.value),
            "verifier": {"name_or_path": config.verifier.value, "architectures": []},
        },
        "transformer_layer_config": layer_fields(config)
        | known({key: said for key, said in config.extras.items() if key in _IN_LAYERS})
        | known(config.advisory),
        "target_hidden_size": _other_width(config),
    }
    if config.draft_vocab_size.value is not None:
        written["draft_vocab_size"] = config.draft_vocab_size.value
    if config.num_target_layers.value is not None:
        written["num_target_layers"] = config.num_target_layers.value
    indexes = config.taps.hidden_indexes.value
    key = "aux_hidden_state_layer_ids" if method in BLOCK_METHODS else "eagle_aux_hidden_state_layer_ids"
    if indexes is not None:
        written[key] = list_of(indexes)
    if config.mask_token_id.value is not None:
        written["mask_token_id"] = config.mask_token_id.value
    outer = {key: said for key, said in config.extras.items() if _is_outer(key)}
    return written | known(outer) | (_block(config, method) if method in BLOCK_METHODS else _norms(config))


def write_mtp_head(
    head: MtpHead, text_config: Mapping[str, JsonValue], architectures: JsonValue
) -> dict[str, JsonValue]:
    """The speculators file of a head that is part of a target: its layers are the target's own."""
    written: dict[str, JsonValue] = {
        "architectures": ["MTPDraftModel"],
        "speculators_model_type": "mtp",
        "speculators_config": {
            "algorithm": "mtp",
            "default_proposal_method": "greedy",
            "proposal_methods": [],
            "verifier": {"name_or_path": None, "architectures": architectures},
        },
        "transformer_layer_config": dict(text_config),
        "num_nextn_predict_layers": head.num_layers.value,
    }
    if head.drafter.num_target_layers.value is not None:
        written["num_target_layers"] = head.drafter.num_target_layers.value
    return written


def proposal_methods(num_draft_tokens: int | None) -> list[JsonValue]:
    """Greedy drafting of that many tokens, as every format but this one takes for granted."""
    if num_draft_tokens is None:
        return []
    return [
        {
            "proposal_type": "greedy",
            "speculative_tokens": num_draft_tokens,
            "verifier_accept_k": 1,
            "accept_tolerance": 0.0,
        }
    ]


def _other_width(config: DrafterConfig) -> int | None:
    width = config.target_hidden_size.value
    return None if width == config.geometry.hidden_size.value else width


def _is_outer(key: str) -> bool:
    return key in _OUTER or (key in METHOD_KEYS and key not in _MADE_FROM_LAYERS)


def _block(config: DrafterConfig, method: Method) -> dict[str, JsonValue]:
    written: dict[str, JsonValue] = {}
    if config.block_size.value is not None:
        written["block_size"] = config.block_size.value
    if method is Method.DOMINO:
        # Domino has shift_label instead of sample_from_anchor; where it was derived it is written out.
        written |= {"projector_type": "domino", "shift_label": config.sample_from_anchor.value}
    elif config.sample_from_anchor.value is not None:
        written["sample_from_anchor"] = config.sample_from_anchor.value
    sliding = [layer.causal.value for layer in config.layers if layer.kind.value == SLIDING]
    if sliding and sliding[0] is not None:
        # The one flag of this format speaks of all sliding layers; full ones are never causal.
        written["sliding_window_non_causal"] = not sliding[0]
    return written


def _norms(config: DrafterConfig) -> dict[str, JsonValue]:
    norms = config.norms
    flags = {
        "norm_before_residual": norms.before_residual.value,
        "norm_before_fc": norms.before_fc.value,
        "norm_output": norms.output.value,
        "fc_norm": norms.fc_norm.value,
    }
    return {key: value for key, value in flags.items() if value is not None}
