"""DflashDrafter: one pass over the target's new context rows and a block of mask tokens gives a whole draft.

    memory = drafter.new_memory()
    logits = drafter.draft(memory, rows, anchor, num_slots)   # rows: tapped states of newly accepted tokens

A slot at position p predicts the token at p, from context strictly before the anchor and from the block
[anchor, mask, mask, ..]. Only context rows are remembered, so a refused draft leaves nothing to undo.
Source: DFlash, arXiv:2602.06036; dflash 0.1.0 model.py.
Dimensions: C context rows, B slots, K drafted tokens, n taps, H hidden, H_t target hidden, V vocabulary.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.models.dflash.attention import BlockMasks, ContextMemory, DflashAttention, Pass
from draftproof.models.dflash.shape import DflashShape
from draftproof.models.draft_vocabulary import DraftVocabulary
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rope import RopeTable
from draftproof.models.parts.rows import Mlp, RmsNorm

__all__ = ["DflashDrafter", "DflashLayerParts", "Fusion", "Surface"]


class DflashLayerParts(NamedTuple):
    """One drafter layer."""

    norm: RmsNorm
    attention: DflashAttention
    mlp_norm: RmsNorm
    mlp: Mlp


class Fusion(NamedTuple):
    """How tapped states become a context row."""

    fc: Linear
    """[n H_t] to [H], columns in the order of the taps."""

    norm: RmsNorm


class Surface(NamedTuple):
    """Where tokens enter and leave: the target's, or the drafter's own."""

    embedding: Tensor
    """[V, H]"""

    head: Callable[[Tensor], Tensor]
    """[K, H] normed to [K, rows of the head] logits."""

    vocabulary: DraftVocabulary | None
    """Leads from rows of the head to the target's ids; None where they are the same."""


class DflashDrafter:
    """A drafter, ready to run beside its target.

    Attributes:
        shape: the numbers it was built from.
        dtype: precision of weights, keys and values: the target's.
        device: where it runs.
    """

    __slots__ = (
        "_exact",
        "_fusion",
        "_layers",
        "_masks",
        "_norm",
        "_rope",
        "_surface",
        "device",
        "dtype",
        "shape",
    )

    def __init__(
        self,
        shape: DflashShape,
        *,
        fusion: Fusion,
        layers: Sequence[DflashLayerParts],
        norm: RmsNorm,
        surface: Surface,
        dtype: torch.dtype,
    ) -> None:
        """Put the parts together; ``models.dflash.load`` makes them."""
        self.shape, self.dtype, self.device = shape, dtype, surface.embedding.device
        self._fusion, self._layers, self._norm, self._surface = fusion, tuple(layers), norm, surface
        self._exact = torch.float64 if dtype == torch.float64 else torch.float32
        self._rope = RopeTable(shape.rope, shape.head_dim, dtype=self._exact, device=self.device)
        self._masks = BlockMasks(shape, dtype=dtype, device=self.device)

    def new_memory(self) -> ContextMemory:
        """The memory of one sequence, empty."""
        return ContextMemory(self.shape, dtype=self.dtype, device=self.device)

    @torch.inference_mode()
    def hidden(self, memory: ContextMemory, rows: Tensor, tokens: Sequence[int]) -> Tensor:
        """Take in new context rows and run a block behind them.

        Args:
            memory: of the sequence; afterwards it holds the rows and nothing of the block.
            rows: [C, n H_t], the tapped states side by side, of the tokens that follow what is remembered.
            tokens: [B] of the block: the anchor, which stands right behind the rows, and mask tokens.

        Returns:
            [B, H] after the final norm, in the model's precision.
        """
        fused = self._fusion.fc(rows.to(self.dtype)).to(self._exact)
        count = len(rows) + len(tokens)
        turns = self._rope.span(memory.length, count)
        now = Pass(memory, self._fusion.norm(fused), turns, self._masks)
        block = torch.tensor(tokens, device=self.device)
        x = F.embedding(block, self._surface.embedding).to(self._exact)
        if self.shape.embedding_scale != 1:
            x = x * self.shape.embedding_scale
        memory.begin(count)
        for layer in self._layers:
            x = layer.attention(x, layer.norm(x), now)
            x = layer.mlp(x, layer.mlp_norm(x))
        memory.keep(len(rows))
        return self._norm(x)

    @torch.inference_mode()
    def draft(self, memory: ContextMemory, rows: Tensor, anchor: int, num_drafted: int) -> Tensor:
        """The marginals of the next tokens, each of which knows nothing of the others' choice.

        Args:
            memory: of the sequence; advanced by the rows.
            rows: [C, n H_t], as ``hidden``.
            anchor: the last token emitted, which the target has not read.
            num_drafted: K, how many tokens; the block has one slot more, the anchor's, unless that predicts.

        Returns:
            [K, V] logits of the target's ids in full precision; row k is of the token at anchor + 1 + k.
        """
        num_masks = num_drafted - 1 if self.shape.samples_from_anchor else num_drafted
        normed = self.hidden(memory, rows, [anchor, *[self.shape.mask_token_id] * num_masks])
        logits = self._surface.head(normed[len(normed) - num_drafted :]).to(self._exact)
        if self.shape.output_multiplier != 1:
            logits = logits * self.shape.output_multiplier
        if self.shape.softcap is not None:
            logits = torch.tanh(logits / self.shape.softcap) * self.shape.softcap
        vocabulary = self._surface.vocabulary
        return logits if vocabulary is None else vocabulary.widened(logits)
