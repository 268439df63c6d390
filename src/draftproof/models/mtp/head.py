"""The multi-token-prediction head of Qwen3-Next, 3.5 and 3.6: one more layer that guesses one token further.

It reads pairs: what the target's head reads at position i, and the token at i + 1; from pair i it guesses the
token at i + 2. What it puts out takes the place of the target's row when it guesses further. Its keys and
values of true pairs stay; those of guesses are forgotten by going back to a mark.

Source: vLLM 0.33 qwen3_5_mtp, qwen3_next_mtp; SGLang 0.5.23 qwen3_5_mtp.
Dimensions: N pairs, H hidden, V vocabulary.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.cache.session import Session
from draftproof.cache.shapes import SessionShape
from draftproof.models.decoder import Decoder, Layer
from draftproof.models.draft_rows import chain_rows, close_rows, open_rows
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rope import RopeTable
from draftproof.models.parts.rows import RmsNorm

__all__ = ["MtpHead"]


class MtpHead:
    """A head beside its target, whose embedding and output head it uses.

    Attributes:
        session_shape: what it remembers of one sequence.
    """

    __slots__ = (
        "_embedding_norm",
        "_exact",
        "_fc",
        "_hidden_norm",
        "_layer",
        "_norm",
        "_rope",
        "_target",
        "session_shape",
    )

    def __init__(
        self,
        target: Decoder,
        session_shape: SessionShape,
        *,
        fc: Linear,
        embedding_norm: RmsNorm,
        hidden_norm: RmsNorm,
        layer: Layer,
        norm: RmsNorm,
    ) -> None:
        """Put the parts together; ``models.mtp.load`` makes them."""
        self.session_shape = session_shape
        self._target, self._fc, self._layer, self._norm = target, fc, layer, norm
        self._embedding_norm, self._hidden_norm = embedding_norm, hidden_norm
        self._exact = session_shape.state_dtype
        shape = target.shape
        self._rope = RopeTable(
            shape.rope, shape.attention.head_dim, dtype=self._exact, device=session_shape.device
        )

    def new_session(self) -> Session:
        """An empty memory of one sequence."""
        return Session(self.session_shape)

    @torch.inference_mode()
    def read(self, session: Session, hidden: Tensor, tokens: Sequence[int]) -> Tensor:
        """Read pairs behind those the session holds, and commit them.

        Args:
            session: of this head; pair i is its row i.
            hidden: [N, H] after a norm: the target's final one, or the head's own where it guesses on.
            tokens: [N], each the token after the one its row belongs to.

        Returns:
            [N, H], after the head's own norm: what ``logits`` reads, and the next guess's ``hidden``.
        """
        ids = torch.tensor(list(tokens), device=session.shape.device)
        embedded = F.embedding(ids, self._target.embedding).to(self._exact)
        both = (self._embedding_norm(embedded), self._hidden_norm(hidden.to(self._exact)))
        x = self._fc(torch.cat(both, 1)).to(self._exact)
        rows = chain_rows(session, self._rope, len(ids))
        open_rows(rows)
        x = self._layer.mixer(x, self._layer.norm(x), rows)
        close_rows(rows)
        return self._norm(self._layer.mlp(x, self._layer.mlp_norm(x)))

    @torch.inference_mode()
    def logits(self, rows: Tensor) -> Tensor:
        """[N, V] of rows that ``read`` gave."""
        return self._target.head(rows)
