"""Fields that no engine reads while drafting: kept as provenance, never compared as if they mattered.

Source: the readers of vLLM 0.33, SGLang 0.5.23, dflash 0.1.0 and transformers 5.24.0; none of these keys
changes a drafter's forward pass. A bos copied from the target is such a fingerprint.
"""

from draftproof.config.raw import JsonValue
from draftproof.config.reader import Reader
from draftproof.config.source import Sourced

__all__ = ["parse_advisory"]

_KEYS = (
    "_name_or_path",
    "_attn_implementation_autoset",
    "attention_dropout",
    "auto_map",
    "bos_token_id",
    "decoder_start_token_id",
    "dtype",
    "embd_pdrop",
    "eos_token_id",
    "has_no_defaults_at_init",
    "initial_context_length",
    "initializer_range",
    "layer_norm_epsilon",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "pad_token_id",
    "pretraining_tp",
    "resid_pdrop",
    "return_dict",
    "router_aux_loss_coef",
    "sep_token_id",
    "torch_dtype",
    "transformers_version",
    "use_cache",
)


def parse_advisory(read: Reader, also: tuple[str, ...] = ()) -> dict[str, Sourced[JsonValue]]:
    """The advisory fields the object has; ``also`` are further keys that are advisory in this dialect."""
    return read.collect(_KEYS + also)
