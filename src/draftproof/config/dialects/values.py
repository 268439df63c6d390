"""Values that every drafter dialect reads or derives in the same way."""

from draftproof.config.drafter import Method, Norms
from draftproof.config.reader import Reader, derived, unknown
from draftproof.config.source import Sourced, Unknown
from draftproof.names import TokenId

__all__ = [
    "LAYER_KEYS",
    "METHOD_KEYS",
    "first_architecture",
    "no_norms",
    "num_draft_tokens",
    "or_same",
    "token",
]

METHOD_KEYS = (
    # DFlash 2
    "conv_kernel_size",
    "conv_group_size",
    "selector_rank",
    "selector_top_k",
    # Domino and DSpark
    "projector_type",
    "pure_draft_prefix_len",
    "emb_dim",
    "gru_hidden_dim",
    "shift_label",
    "markov_rank",
    "markov_head_type",
    "enable_confidence_head",
    "confidence_head_with_markov",
    "confidence_head_alpha",
    "attention_mode",
    # MiMo, ModelOpt, Gemma, Muse
    "use_swa",
    "swa_window_size",
    "causal",
    "mask_token",
    "final_logit_softcapping",
    "output_multiplier",
    "input_embedding_scale",
    "attention_sink_bias",
    "attention_value_scale",
    "v_head_dim",
)
"""Fields that change a method's forward pass and have no canonical field of their own."""

LAYER_KEYS = ("use_sliding_window", "max_window_layers", "sliding_window", "tie_word_embeddings", "mlp_bias")
"""Fields of the drafter's layers that its canonical layers are made from, kept as written."""


def first_architecture(read: Reader) -> Sourced[str]:
    """The first name under ``architectures``."""
    names = read.strings("architectures")
    if names.value:
        return Sourced(names.value[0], read.item("architectures", 0))
    if isinstance(names.source, Unknown):
        return unknown(names.source.reason)
    return Sourced(None, names.source)


def or_same(read: Reader, paths: tuple[str, ...], other: Sourced[int], rule: str) -> Sourced[int]:
    """The integer at one of the paths; where none is written, or null, the other value by the rule named."""
    said = read.integer(*paths)
    if read.says(*paths):
        return said
    if other.value is None:
        return unknown(f"no {read.pointer(paths[-1])}, and what stands in for it is not known: {rule}")
    return derived(other.value, rule)


def num_draft_tokens(
    method: Sourced[Method], block_size: Sourced[int], from_anchor: Sourced[bool]
) -> Sourced[int]:
    """Tokens proposed per step by a block of this size."""
    if block_size.value is None:
        return unknown("block_size is not known")
    if block_size.value < 1:
        return unknown(f"a block of {block_size.value} slots is none: the anchor alone takes one")
    if method.value is Method.DOMINO:
        return derived(
            block_size.value - 1,
            "block_size - 1, whichever slot Domino starts at (SGLang 0.5.23 domino_utils)",
        )
    if from_anchor.value is None:
        return unknown("whether the anchor slot predicts is not known")
    if from_anchor.value:
        return derived(block_size.value, "block_size: the anchor slot predicts too")
    return derived(block_size.value - 1, "block_size - 1: the first slot is the anchor")


def no_norms(reason: str) -> Norms:
    """Norm flags of a drafter that has none of them."""
    return Norms(
        before_residual=unknown(reason),
        before_fc=unknown(reason),
        output=unknown(reason),
        fc_norm=unknown(reason),
    )


def token(said: Sourced[int]) -> Sourced[TokenId]:
    """The same integer as a token id."""
    return Sourced(None if said.value is None else TokenId(said.value), said.source)
