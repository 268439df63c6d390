"""Decoder: one forward for every target, over a chain or a tree, with its commit left to the caller.

The public calls, in the order of a decoding loop::

    session = model.new_session(room=prompt + new tokens)
    first = model.prefill(session, prompt)                   # committed; logits of the last token
    ahead = model.verify(session, root, tree)                # logits[i] follow node i; nothing committed yet
    session.commit(path)                                     # or session.rollback()

``forward_batch`` takes any number of sessions of any lengths at once; the calls above are batches of one.
Dimensions: N nodes, H hidden, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.cache.session import Session
from draftproof.cache.shapes import SessionShape
from draftproof.errors import UsageError
from draftproof.models.batch import Item, Rows
from draftproof.models.forward import Block, Forward, check_capture, check_tokens
from draftproof.models.nodes import Nodes
from draftproof.models.parts.attention import Attention
from draftproof.models.parts.gated_delta import GatedDelta
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rope import RopeTable
from draftproof.models.parts.rows import Mlp, RmsNorm
from draftproof.models.readout import Readout
from draftproof.models.target.shape import DecoderShape
from draftproof.names import HiddenIndex
from draftproof.speculation.tree import DraftTree

__all__ = ["Decoder", "Layer"]

PREFILL_CHUNK = 512
"""Prompt tokens of one forward: large enough for fast products, small enough for the attention mask."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer."""

    norm: RmsNorm
    mixer: Attention | GatedDelta
    mlp_norm: RmsNorm
    mlp: Mlp


class Decoder:
    """A target model, ready to run.

    Attributes:
        shape: the numbers it was built from.
        session_shape: what one sequence of it remembers.
        dtype: precision of weights, keys and values.
        device: where it runs.
        embedding: [V, H]
    """

    __slots__ = (
        "_exact",
        "_head",
        "_layers",
        "_norm",
        "_rope",
        "device",
        "dtype",
        "embedding",
        "session_shape",
        "shape",
    )

    def __init__(
        self,
        shape: DecoderShape,
        session_shape: SessionShape,
        *,
        embedding: Tensor,
        layers: Sequence[Layer],
        norm: RmsNorm,
        head: Linear,
    ) -> None:
        """Put the parts together; ``models.target.load`` makes them."""
        self.shape, self.session_shape = shape, session_shape
        self.dtype, self.device = session_shape.dtype, session_shape.device
        self.embedding, self._norm, self._head = embedding, norm, head
        self._layers = tuple(layers)
        self._exact = session_shape.state_dtype
        self._rope = RopeTable(shape.rope, shape.attention.head_dim, dtype=self._exact, device=self.device)

    @property
    def num_layers(self) -> int:
        """Layers; also the index of the hidden state that the final norm reads."""
        return len(self._layers)

    def new_session(self, *, room: int = 0) -> Session:
        """An empty sequence; ``room`` tokens of memory are allocated at once."""
        return Session(self.session_shape, room=room)

    def head(self, normed: Tensor) -> Tensor:
        """[N, V] float32 logits of rows that the final norm, or a drafter's own, has left."""
        return self._head(normed).to(self._exact)

    def forward(
        self,
        session: Session,
        tokens: Sequence[int],
        tree: DraftTree | None = None,
        *,
        capture: Sequence[HiddenIndex] = (),
        num_logits: int | None = None,
        with_normed: bool = False,
    ) -> Forward:
        """Run the nodes behind the committed tokens and commit none of them.

        Args:
            session: the sequence; it must have nothing pending.
            tokens: of all nodes, root first.
            tree: who follows whom; None for a chain.
            capture: hidden states to return.
            num_logits: how many of the last nodes need logits; None for all.
            with_normed: return the last hidden state after the final norm as well.

        Raises:
            RefusedInput: a token id outside the vocabulary, more tokens than the context has room for, or
                tokens that do not fit the tree.
            UsageError: a hidden state the model does not have.
            SessionFault: the session has a forward pending.
        """
        block = Block(session, tokens, tree)
        return self.forward_batch((block,), capture=capture, num_logits=num_logits, with_normed=with_normed)[
            0
        ]

    def verify(
        self,
        session: Session,
        root: int,
        tree: DraftTree,
        *,
        capture: Sequence[HiddenIndex] = (),
        with_normed: bool = False,
    ) -> Forward:
        """``forward`` over the root's token and a draft's."""
        tokens = (root, *tree.tokens.tolist())
        return self.forward(session, tokens, tree, capture=capture, with_normed=with_normed)

    def prefill(
        self,
        session: Session,
        tokens: Sequence[int],
        *,
        capture: Sequence[HiddenIndex] = (),
        with_normed: bool = False,
        chunk: int = PREFILL_CHUNK,
    ) -> Forward:
        """Read a prompt and commit all of it; the logits are those after its last token.

        Args:
            session: the sequence; it must have nothing pending.
            tokens: one at least; they follow what is committed already.
            capture: hidden states to return, of all the tokens.
            with_normed: return the last hidden state after the final norm as well, of all the tokens.
            chunk: tokens of one forward.

        Raises:
            RefusedInput, UsageError, SessionFault: as ``forward``; a prompt that cannot be read leaves the
                session as it was.
        """
        check_tokens(self.shape, session, tokens, len(tokens))
        parts = [
            self.forward_batch(
                (Block(session, tokens[at : at + chunk]),),
                capture=capture,
                num_logits=1 if at + chunk >= len(tokens) else 0,
                with_normed=with_normed,
                advance=True,
            )[0]
            for at in range(0, len(tokens), chunk)
        ]
        if len(parts) == 1:
            return parts[0]
        normed = [part.normed for part in parts if part.normed is not None]
        return Forward(
            parts[-1].logits,
            {index: torch.cat([part.hidden[index] for part in parts]) for index in parts[0].hidden},
            torch.cat(normed) if normed else None,
        )

    @torch.inference_mode()
    def forward_batch(
        self,
        blocks: Sequence[Block],
        *,
        capture: Sequence[HiddenIndex] = (),
        num_logits: int | None = None,
        with_normed: bool = False,
        advance: bool = False,
    ) -> list[Forward]:
        """Run several sequences at once, each behind its own committed tokens.

        Args:
            blocks: one for each sequence; no session twice.
            capture: hidden states to return.
            num_logits: how many of the last nodes of each sequence need logits; None for all.
            with_normed: return the last hidden state after the final norm as well.
            advance: commit all nodes of all blocks, which must be chains, and move recurrent states at once.

        Returns:
            One for each block.

        Raises:
            RefusedInput, UsageError, SessionFault: as ``forward``.
        """
        check_capture(len(self._layers), capture)
        items = self._items(blocks, advance=advance)
        found: list[Forward] = []
        begun: list[Session] = []
        try:
            for item in items:
                item.session.begin(item.nodes.parents, advance=advance)
                begun.append(item.session)
            rows = Rows(items, self._turns(items))
            found = self._run(blocks, rows, capture, num_logits, with_normed=with_normed)
        finally:
            if not found:  # something was raised on the way
                for session in begun:
                    session.abandon()
        if advance:
            for item in items:
                item.session.finish()
        return found

    def _run(
        self,
        blocks: Sequence[Block],
        rows: Rows,
        capture: Sequence[HiddenIndex],
        num_logits: int | None,
        *,
        with_normed: bool,
    ) -> list[Forward]:
        x = self._embedded([token for block in blocks for token in block.tokens])
        wanted, kept = set(capture), dict[int, Tensor]()
        for index, layer in enumerate(self._layers):
            if index in wanted:
                kept[index] = x
            x = layer.mixer(x, layer.norm(x), rows)
            x = layer.mlp(x, layer.mlp_norm(x))
        if len(self._layers) in wanted:
            kept[len(self._layers)] = x
        readout = Readout(self._norm, self.head, num_logits, with_normed)
        return readout.of(rows.items, x, kept)

    def _embedded(self, tokens: list[int]) -> Tensor:
        """[N, H] in full precision."""
        if len(tokens) == 1:
            return self.embedding[tokens[0] : tokens[0] + 1].to(self._exact, copy=True)
        return F.embedding(torch.tensor(tokens, device=self.device), self.embedding).to(self._exact)

    def _items(self, blocks: Sequence[Block], *, advance: bool) -> tuple[Item, ...]:
        items, at = [], 0
        for block in blocks:
            count, start = len(block.tokens), block.session.length
            nodes = Nodes(start, count, block.tree, dtype=self.dtype, device=self.device)
            if advance and not nodes.is_chain:
                raise UsageError(
                    "advance",
                    expected="a chain",
                    found="a tree",
                    where="a forward",
                    means="there is no one path to commit",
                    next_step="call forward without advance and commit a path",
                )
            check_tokens(self.shape, block.session, block.tokens, nodes.end - start)
            items.append(Item(block.session, nodes, at, at + count, advance))
            at += count
        return tuple(items)

    def _turns(self, items: Sequence[Item]) -> Tensor:
        parts = [
            self._rope.span(item.nodes.start, item.nodes.count)
            if item.nodes.is_chain
            else self._rope.at([item.nodes.start + depth for depth in item.nodes.depths])
            for item in items
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts)
