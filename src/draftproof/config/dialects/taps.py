"""Taps in both numberings, whichever of the two the file uses; and the rules for files that are silent."""

from draftproof.config.drafter import Taps
from draftproof.config.reader import derived, unknown
from draftproof.config.source import Sourced
from draftproof.names import HiddenIndex, LayerId, hidden_index, layer_id

__all__ = [
    "default_layer_ids",
    "eagle_default_indexes",
    "from_hidden_indexes",
    "from_layer_ids",
    "last_hidden_state",
    "no_taps",
    "spread_layer_ids",
]


def from_layer_ids(ids: Sourced[tuple[LayerId, ...]]) -> Taps:
    """Taps from a list of layers whose output is read."""
    known = ids.value or ()
    return Taps(
        layer_ids=Sourced(known, ids.source),
        hidden_indexes=derived(tuple(map(hidden_index, known)), "layer id + 1: the output of that layer"),
    )


def from_hidden_indexes(indexes: Sourced[tuple[HiddenIndex, ...]]) -> Taps:
    """Taps from a list of hidden states; the embeddings (0) are no layer's output."""
    known = indexes.value or ()
    return Taps(
        layer_ids=derived(tuple(map(layer_id, known)), "hidden index - 1; null for the embeddings"),
        hidden_indexes=Sourced(known, indexes.source),
    )


def no_taps(reason: str) -> Taps:
    """Taps that are not known."""
    return Taps(layer_ids=unknown(reason), hidden_indexes=unknown(reason))


def spread_layer_ids(num_target_layers: int, num_taps: int) -> tuple[LayerId, ...]:
    """z-lab's default: spread evenly from layer 1 to the third last, halves rounded to even.

    Source: dflash 0.1.0 build_target_layer_ids; SGLang 0.5.23 and SpecForge use the same rule.
    """
    if num_taps == 1:
        return (LayerId(num_target_layers // 2),)
    span = num_target_layers - 4
    return tuple(LayerId(round(1 + i * span / (num_taps - 1))) for i in range(num_taps))


def default_layer_ids(depth: Sourced[int], num_taps: Sourced[int]) -> Taps:
    """The taps of a native DFlash file that lists none: one a drafter layer, by z-lab's rule."""
    if depth.value is None or num_taps.value is None:
        return no_taps(
            "no target_layer_ids, and the default rule needs num_target_layers and num_hidden_layers"
        )
    if not (1 <= depth.value <= _MAX_LAYERS and 1 <= num_taps.value <= _MAX_LAYERS):
        return no_taps(f"no target_layer_ids, and no rule for {num_taps.value} taps of {depth.value} layers")
    rule = f"no target_layer_ids: {num_taps.value} of {depth.value} layers, spread evenly (dflash 0.1.0)"
    ids = spread_layer_ids(depth.value, num_taps.value)
    return from_layer_ids(derived(ids, rule))


def eagle_default_indexes(depth: Sourced[int]) -> Taps:
    """The taps of an EAGLE-3 file that lists none: hidden states 2, L // 2 and L - 3 of L layers."""
    if depth.value is None:
        return no_taps(
            "no layer ids are written; the default is hidden states 2, L//2 and L-3 of the target's L "
            "layers (vLLM 0.33, SGLang 0.5.23), and the file does not give L"
        )
    if not _MIN_EAGLE_DEPTH <= depth.value <= _MAX_LAYERS:
        return no_taps(f"no layer ids, and no default for a target of {depth.value} layers")
    picks = (HiddenIndex(2), HiddenIndex(depth.value // 2), HiddenIndex(depth.value - 3))
    rule = f"no layer ids: hidden states 2, L//2 and L-3 of L={depth.value} layers (vLLM 0.33, SGLang 0.5.23)"
    return from_hidden_indexes(derived(picks, rule))


def last_hidden_state(depth: Sourced[int]) -> Taps:
    """The one tap of an MTP head: the trunk's output, after its final norm."""
    if depth.value is None:
        return no_taps("the head reads the last hidden state, and the depth of the target is not known")
    if not 1 <= depth.value <= _MAX_LAYERS:
        return no_taps(f"the head reads the last hidden state, and {depth.value} layers are no target")
    rule = "MTP reads the target's last hidden state, after the final norm (vLLM 0.33 qwen3_5_mtp)"
    return from_hidden_indexes(derived((HiddenIndex(depth.value),), rule))


_MIN_EAGLE_DEPTH = 4
_MAX_LAYERS = 4096
