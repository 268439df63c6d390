"""A multi-token-prediction head: one layer more, or a few, each of which guesses one token further.

The first layer reads pairs: what the target's head reads at position i, and the token at i + 1; from pair i
it guesses the token at i + 2. The layer after it reads what it put out at i and the token at i + 2, and so
on: each layer knows all positions, one token further ahead than the layer before. Its keys and values of
true pairs stay; those of guesses are forgotten by going back to a mark.

Source: DeepSeek-V3, arXiv:2412.19437, section 2.2; vLLM 0.33 qwen3_5_mtp, qwen3_next_mtp, deepseek_mtp,
v1/worker/gpu/spec_decode/multi_module_mtp; transformers 5.24 MtpModel.
Dimensions: N pairs, H hidden, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.cache.session import Session
from draftproof.cache.shapes import SessionShape
from draftproof.models.decoder import Layer
from draftproof.models.draft_rows import chain_rows, close_rows, open_rows
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rope import RopeTable
from draftproof.models.parts.rows import RmsNorm

__all__ = ["MtpHead", "MtpLayer"]


@dataclass(frozen=True, slots=True)
class MtpLayer:
    """What guesses one token further."""

    embedding: Tensor
    """[V, H]"""

    embedding_norm: RmsNorm
    hidden_norm: RmsNorm
    fc: Linear
    block: Layer
    norm: RmsNorm
    head: Callable[[Tensor], Tensor]
    """[N, H] after the norm to [N, V]."""


class MtpHead:
    """A head beside its target.

    Attributes:
        layers: the first guesses from the target's own rows.
        session_shape: what one layer remembers of one sequence.
    """

    __slots__ = ("_blanks_first", "_exact", "_rope", "layers", "session_shape")

    def __init__(
        self,
        layers: Sequence[MtpLayer],
        session_shape: SessionShape,
        rope: RopeTable,
        *,
        blanks_first: bool,
    ) -> None:
        """Put the parts together; ``models.mtp.load`` makes them.

        Args:
            layers: one at least.
            session_shape: of one layer.
            rope: of all of them.
            blanks_first: the first pair of a sequence has no embedding.
        """
        self.layers, self.session_shape = tuple(layers), session_shape
        self._rope, self._blanks_first = rope, blanks_first
        self._exact = session_shape.state_dtype

    @property
    def num_layers(self) -> int:
        """Layers, each with a session of its own."""
        return len(self.layers)

    def new_session(self) -> Session:
        """An empty memory of one sequence, of one layer."""
        return Session(self.session_shape)

    def no_rows(self) -> Tensor:
        """[0, H] as ``read`` gives them."""
        return self.layers[0].embedding[:0]

    @torch.inference_mode()
    def read(self, session: Session, hidden: Tensor, tokens: Sequence[int], *, layer: int = 0) -> Tensor:
        """Read pairs behind those the session holds, and commit them.

        Args:
            session: of this layer; pair i is its row i.
            hidden: [N, H] after a norm: the target's final one, or the head's own where it guesses on.
            tokens: [N], for layer k the one k + 1 places behind that of its row.
            layer: which one reads.

        Returns:
            [N, H], after the head's own norm: what ``logits`` reads, and the next guess's ``hidden``.
        """
        at = self.layers[layer]
        ids = torch.tensor(list(tokens), device=session.shape.device)
        embedded = F.embedding(ids, at.embedding).to(self._exact)
        if self._blanks_first and session.length == 0:
            embedded = torch.cat((torch.zeros_like(embedded[:1]), embedded[1:]))
        both = (at.embedding_norm(embedded), at.hidden_norm(hidden.to(self._exact)))
        x = at.fc(torch.cat(both, 1)).to(self._exact)
        rows = chain_rows(session, self._rope, len(ids))
        open_rows(rows)
        x = at.block.mixer(x, at.block.norm(x), rows)
        close_rows(rows)
        return at.norm(at.block.mlp(x, at.block.mlp_norm(x)))

    @torch.inference_mode()
    def logits(self, rows: Tensor, *, layer: int = 0) -> Tensor:
        """[N, V] of rows that ``read`` of this layer gave."""
        return self.layers[layer].head(rows).to(self._exact)
