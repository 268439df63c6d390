"""EAGLE-3: a small decoder over the target's features that guesses on from its own.

It reads pairs: a feature of position i and the token at i + 1; from pair i it guesses the token at i + 2. The
feature of a true pair is made of tapped hidden states of the target, that of a guess is what the drafter put
out for the pair before.

Source: Li et al. 2025, arXiv:2503.01840; SafeAILab/EAGLE cnets.py; vLLM 0.33 llama_eagle3.py.
Dimensions: N pairs, n taps, H_t target hidden, H hidden, D rows of the head, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.cache.session import Session
from draftproof.cache.shapes import SessionShape
from draftproof.models.decoder import Layer
from draftproof.models.draft_rows import chain_rows, close_rows, open_rows, tree_rows
from draftproof.models.draft_vocabulary import DraftVocabulary
from draftproof.models.eagle3.shape import Eagle3Shape
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rope import RopeTable
from draftproof.models.parts.rows import RmsNorm

__all__ = ["Eagle3Drafter", "Eagle3Ends", "Eagle3Read", "Fusion"]


@dataclass(frozen=True, slots=True)
class Fusion:
    """Tapped hidden states to features."""

    fc: Linear
    whole: RmsNorm | None
    """Over all states side by side."""

    each: tuple[RmsNorm, ...]
    """One for each state, or none."""


@dataclass(frozen=True, slots=True)
class Eagle3Ends:
    """What stands before and behind the layers."""

    embedding: Tensor
    """[V, H]"""

    hidden_norm: RmsNorm
    norm: RmsNorm
    head: Callable[[Tensor], Tensor]
    """[N, H] to D rows: its own, or the target's."""

    vocabulary: DraftVocabulary | None
    """None where the head's rows are the target's ids."""


@dataclass(frozen=True, slots=True)
class Eagle3Read:
    """What the drafter put out for some pairs."""

    features: Tensor
    """[N, H]: in the place of the target's for the pairs that follow these."""

    normed: Tensor
    """[N, H]: what ``logits`` reads."""


class Eagle3Drafter:
    """A drafter beside its target.

    Attributes:
        shape: the numbers it was built from.
        session_shape: what it remembers of one sequence.
    """

    __slots__ = ("_ends", "_exact", "_fusion", "_layers", "_rope", "session_shape", "shape")

    def __init__(
        self,
        shape: Eagle3Shape,
        session_shape: SessionShape,
        *,
        fusion: Fusion,
        layers: Sequence[Layer],
        ends: Eagle3Ends,
    ) -> None:
        """Put the parts together; ``models.eagle3.load`` makes them."""
        self.shape, self.session_shape = shape, session_shape
        self._fusion, self._layers, self._ends = fusion, tuple(layers), ends
        self._exact = session_shape.state_dtype
        rope, head_dim = shape.decoder.rope, shape.decoder.attention.head_dim
        self._rope = RopeTable(rope, head_dim, dtype=self._exact, device=session_shape.device)

    def new_session(self) -> Session:
        """An empty memory of one sequence."""
        return Session(self.session_shape)

    @torch.inference_mode()
    def fused(self, states: Sequence[Tensor]) -> Tensor:
        """[N, H] features of true pairs, from the tapped states [N, H_t] in the order of the taps."""
        parts = list(states)
        if (whole := self._fusion.whole) is not None:
            normed = whole(torch.cat(parts, 1)).to(self._exact)
            parts = list(normed.chunk(len(parts), 1))
        if self._fusion.each:
            parts = [norm(part) for norm, part in zip(self._fusion.each, parts, strict=True)]
        return self._fusion.fc(torch.cat(parts, 1).to(self.session_shape.dtype)).to(self._exact)

    def read(self, session: Session, features: Tensor, tokens: Sequence[int]) -> Eagle3Read:
        """Read pairs that follow those the session holds, one after another, and commit them.

        Args:
            session: of this drafter; pair i is its row i.
            features: [N, H]
            tokens: [N], each the token after the one its feature belongs to.
        """
        return self._run(session, features, tokens, None, None)

    def read_level(
        self,
        session: Session,
        features: Tensor,
        tokens: Sequence[int],
        *,
        positions: Sequence[int],
        seen: Tensor,
    ) -> Eagle3Read:
        """Read guesses of a tree side by side, and commit them behind the rows the session holds.

        Args:
            session: of this drafter, with S rows.
            features: [N, H]
            tokens: [N]
            positions: [N], of each pair in its own branch.
            seen: [N, S + N] bool, the rows each guess attends to.
        """
        return self._run(session, features, tokens, positions, seen)

    @torch.inference_mode()
    def _run(
        self,
        session: Session,
        features: Tensor,
        tokens: Sequence[int],
        positions: Sequence[int] | None,
        seen: Tensor | None,
    ) -> Eagle3Read:
        if positions is None or seen is None:
            rows = chain_rows(session, self._rope, len(tokens))
        else:
            attention = self.shape.decoder.attention
            shared = attention.num_heads // attention.num_kv_heads
            rows = tree_rows(session, self._rope, positions, seen, shared=shared)
        ids = torch.tensor(list(tokens), device=session.shape.device)
        embedded = F.embedding(ids, self._ends.embedding).to(self._exact)
        first = self._layers[0]
        normed = self._ends.hidden_norm(features)
        x = normed.to(self._exact) if self.shape.norms.before_residual else features
        open_rows(rows)
        x = first.mixer(x, torch.cat((first.norm(embedded), normed), 1), rows)
        x = first.mlp(x, first.mlp_norm(x))
        for layer in self._layers[1:]:
            x = layer.mixer(x, layer.norm(x), rows)
            x = layer.mlp(x, layer.mlp_norm(x))
        close_rows(rows)
        y = self._ends.norm(x)
        return Eagle3Read(y.to(self._exact) if self.shape.norms.output else x, y)

    @torch.inference_mode()
    def logits(self, normed: Tensor) -> Tensor:
        """[N, V] of normed rows; -inf at ids outside the draft vocabulary."""
        logits = self._ends.head(normed).to(self._exact)
        return logits if self._ends.vocabulary is None else self._ends.vocabulary.widened(logits)
