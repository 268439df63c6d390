"""A target and its multi-token-prediction head over batches of whole sequences, differentiable.

Dimensions: B sequences, T tokens, H hidden, V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.models.target.shape import DecoderShape
from draftproof.training.nets.layers import Layers

__all__ = ["Read", "TargetNet"]

PREFIX = "model."
"""What the names of the trunk's tensors begin with."""


@dataclass(frozen=True, slots=True)
class Read:
    """What the trunk made of a batch."""

    hidden: tuple[Tensor, ...]
    """[B, T, H] each: embeddings, then the residual stream after every layer."""

    normed: Tensor
    """[B, T, H], after the final norm."""


class TargetNet:
    """The forward pass of a decoder of one shape over weights held by someone else.

    Source: the same as ``models.decoder``; the tests hold the two against each other.
    """

    def __init__(self, shape: DecoderShape, weights: Mapping[str, Tensor]) -> None:
        """``weights``: by the checkpoint's names, with ``mtp.*`` where the head is asked for."""
        self.shape, self.weights = shape, weights
        self._layers = Layers(shape, weights)
        head = f"{PREFIX}embed_tokens.weight" if shape.is_tied else "lm_head.weight"
        self._head = head

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.weights[f"{PREFIX}embed_tokens.weight"].device

    def read(self, ids: Tensor) -> Read:
        """The trunk over ids [B, T], each row a sequence from its first token."""
        x = F.embedding(ids, self.weights[f"{PREFIX}embed_tokens.weight"])
        hidden = [x]
        for index, layer in enumerate(self.shape.layers):
            name = f"{PREFIX}layers.{index}"
            x = self._layers.layer(x, name, is_recurrent=layer.is_recurrent, window=layer.window)
            hidden.append(x)
        return Read(tuple(hidden), self._layers.norm(x, f"{PREFIX}norm"))

    def logits(self, normed: Tensor) -> Tensor:
        """[..., V] of rows a final norm has left."""
        return F.linear(normed, self.weights[self._head])

    def mtp(self, normed: Tensor, following: Tensor) -> Tensor:
        """The head's rows [B, T, H] over pairs: the trunk's normed row, and the next token's id [B, T].

        Row i, put through ``logits``, guesses the token two after the one that row i of the trunk belongs to.
        """
        embedded = F.embedding(following, self.weights[f"{PREFIX}embed_tokens.weight"])
        layers = self._layers
        both = (
            layers.norm(embedded, "mtp.pre_fc_norm_embedding"),
            layers.norm(normed, "mtp.pre_fc_norm_hidden"),
        )
        x = layers.linear(torch.cat(both, -1), "mtp.fc")
        x = layers.layer(x, "mtp.layers.0", is_recurrent=False, window=None)
        return layers.norm(x, "mtp.norm")
