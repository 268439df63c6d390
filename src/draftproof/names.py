"""The product's typed words: a decoder layer, a hidden state, a layer of evidence.

The one ``+ 1`` between a decoder layer and the hidden state it produces lives here and nowhere else.
"""

from enum import StrEnum
from typing import NewType

__all__ = ["HiddenIndex", "Layer", "LayerId", "Sha256", "TokenId", "hidden_index", "layer_id"]

LayerId = NewType("LayerId", int)
"""A decoder layer, counted from 0. z-lab's ``target_layer_ids`` are these: "the output of layer k"."""

HiddenIndex = NewType("HiddenIndex", int)
"""An entry of the hidden states: 0 is the embeddings, j is the residual stream after j decoder layers.

speculators' ``aux_hidden_state_layer_ids`` and vLLM's capture ids are these.
"""

TokenId = NewType("TokenId", int)
"""A row of the target's embedding."""

Sha256 = NewType("Sha256", str)
"""Sixty-four lower-case hex digits."""


class Layer(StrEnum):
    """Where a statement about a deployment comes from, lowest first; BUILD stands beside them.

    A fault is reported at the lowest layer that shows it: whatever is above only repeats it.
    """

    INTENT = "INTENT"
    BYTES = "BYTES"
    PARSED = "PARSED"
    EFFECTIVE = "EFFECTIVE"
    OBSERVED = "OBSERVED"
    BUILD = "BUILD"


def hidden_index(layer: LayerId) -> HiddenIndex:
    """The hidden state that decoder layer ``layer`` puts out.

    Source: Hugging Face numbering, where hidden_states[0] is the embedding output.
    """
    return HiddenIndex(layer + 1)


def layer_id(index: HiddenIndex) -> LayerId | None:
    """The decoder layer whose output is hidden state ``index``; None for 0, the embeddings."""
    return LayerId(index - 1) if index > 0 else None
