"""A small language model of the same vocabulary as a source of drafts, with a memory of its own.

Source: Leviathan, Kalman, Matias 2023, arXiv:2211.17192; Chen et al. 2023, arXiv:2302.01318.
Dimensions: V the target's vocabulary.
"""

from collections.abc import Callable, Sequence

import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from draftproof.cache.session import Mark, Session
from draftproof.engine.pairing import RefusedPair, refuse_mismatch
from draftproof.engine.proposers.chain import draft_chain
from draftproof.engine.proposers.options import DraftOptions
from draftproof.engine.proposers.paced import Paceable
from draftproof.engine.proposers.propose import Context, Proposal, StartProposer
from draftproof.findings.catalogue import found
from draftproof.findings.place import Place
from draftproof.models.decoder import Decoder
from draftproof.models.gguf.file import is_gguf
from draftproof.models.target.load import load_decoder
from draftproof.names import HiddenIndex
from draftproof.speculation.tree import DraftTree

__all__ = ["DraftModelProposer", "prepare_draft"]

NUM_DRAFT_TOKENS, MOST_DRAFT_TOKENS = 4, 8
"""Tokens drafted unless asked otherwise, and the most that the controller chooses."""

_PADDING = 1024
"""Tables of one vocabulary are padded to multiples of 64 to 512; further apart they belong to others."""

_FATAL = frozenset({"vocabulary-mismatch", "tokenizer-mismatch"})
"""Findings with which every drafted id would mean another text."""


class DraftModelProposer:
    """Writes on from the root with a model of its own; what it wrote in vain it forgets.

    Its session holds the tokens in ``_read``. A mark stands after what was emitted and after each drafted
    token, so that the next step starts behind the last token the target kept and reads the rest in one go.
    """

    captures: tuple[HiddenIndex, ...] = ()
    with_normed: bool = False

    def __init__(self, model: Decoder, vocab_size: int, num_draft_tokens: int = NUM_DRAFT_TOKENS) -> None:
        """Take the drafter and the size of the target's vocabulary, which may be padded differently."""
        self._model, self._vocab_size, self._count = model, vocab_size, num_draft_tokens
        self._session: Session = model.new_session()
        self._marks: list[Mark] = [self._session.mark()]
        self._read: list[int] = []

    def propose(self, context: Context) -> Proposal:
        """A chain from the drafter's own distribution; none where its context or vocabulary ends."""
        depth = min(self._count, context.max_depth, self._model.shape.max_length - len(context.tokens) + 1)
        row = self._caught_up(context.tokens) if depth > 0 else None
        if row is None:
            return Proposal(DraftTree.empty())

        def read_on(token: int) -> Tensor:
            return _fitted(self._read_on([token]), self._vocab_size)

        return draft_chain(_fitted(row, self._vocab_size), read_on, context, depth)

    def _caught_up(self, tokens: Sequence[int]) -> Tensor | None:
        """[V'] the drafter's logits after ``tokens``; None where it does not know one of them.

        What was drafted and not kept is forgotten.
        """
        agreed = _agreed(self._read, tokens)
        while self._marks[-1].length > agreed:
            self._marks.pop()
        mark = self._marks[-1]
        del self._marks[:-1]
        self._session.rewind(mark)
        del self._read[mark.length :]
        new = tokens[mark.length :]
        return self._read_on(new) if max(new) < self._model.shape.vocab_size else None

    def _read_on(self, tokens: Sequence[int]) -> Tensor:
        row = self._model.prefill(self._session, tokens).logits[0]
        self._read.extend(tokens)
        self._marks.append(self._session.mark())
        return row


def _agreed(read: Sequence[int], tokens: Sequence[int]) -> int:
    """How many tokens both begin with; one at least is left to read, for its logits are wanted."""
    most = min(len(read), len(tokens) - 1)
    return next((place for place in range(most) if read[place] != tokens[place]), most)


def _fitted(row: Tensor, vocab_size: int) -> Tensor:
    """The row over the target's ids: padding rows cut off, missing ones impossible."""
    missing = vocab_size - len(row)
    return row[:vocab_size] if missing <= 0 else F.pad(row, (0, missing), value=float("-inf"))


def prepare_draft(options: DraftOptions) -> Callable[[Decoder], StartProposer]:
    """Hold the drafter against the target, then load it beside the target.

    Raises:
        RefusedPair: other vocabularies.
        CouldNotLook, RefusedInput: the drafter is not there or not what it must be.
    """
    folder = options.drafter
    if folder is None:
        raise RuntimeError("a draft model without a drafter")
    if not is_gguf(folder) and not is_gguf(options.target):
        refuse_mismatch(folder, options.target, _FATAL)
    count = options.num_draft_tokens

    def attach(target: Decoder) -> StartProposer:
        model = load_decoder(folder, dtype=target.dtype, device=target.device)
        _check_sizes(model.shape.vocab_size, target.shape.vocab_size, str(folder))
        vocab_size = target.shape.vocab_size
        if count is not None:
            return lambda: DraftModelProposer(model, vocab_size, count)
        most = MOST_DRAFT_TOKENS
        return Paceable(lambda _: DraftModelProposer(model, vocab_size, most), most, one_pass=False)

    return attach


def _check_sizes(mine: int, wanted: int, where: str) -> None:
    """GGUF files are not read by ``check``: at least the sizes must be those of one vocabulary."""
    if abs(mine - wanted) >= _PADDING:
        place = Place(where)
        raise RefusedPair(found("vocabulary-mismatch", "vocab_size", expected=wanted, found=mine, at=place))
