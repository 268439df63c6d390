"""The target's own multi-token-prediction head as a source of drafts.

Every step reads the pairs that became true since the last one, with the target's own rows, and guesses on
from the last of them; the memory of guesses is dropped before the next step.

Source: DeepSeek-V3, arXiv:2412.19437, section 2.2; vLLM 0.33 qwen3_5_mtp.
"""

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from draftproof.config.parse import find_config, parse_config
from draftproof.config.raw import read_raw
from draftproof.config.target import TargetConfig
from draftproof.engine.pairing import RefusedPair, refuse_mismatch
from draftproof.engine.proposers.chain import draft_chain
from draftproof.engine.proposers.options import DraftOptions
from draftproof.engine.proposers.paced import Paceable
from draftproof.engine.proposers.propose import Context, Proposal, StartProposer
from draftproof.errors import RefusedInput
from draftproof.findings.catalogue import found
from draftproof.findings.place import Place
from draftproof.models.decoder import Decoder
from draftproof.models.gguf.file import is_gguf
from draftproof.models.mtp.head import MtpHead
from draftproof.models.mtp.load import PREFIX, load_mtp
from draftproof.models.target.shards import ShardSource
from draftproof.names import HiddenIndex
from draftproof.speculation.tree import DraftTree

__all__ = ["MtpProposer", "prepare_mtp"]

NUM_DRAFT_TOKENS, MOST_DRAFT_TOKENS = 3, 6
"""Tokens drafted unless asked otherwise, and the most that the controller chooses.

The one layer is run again for each.
"""

_FATAL = frozenset({"mtp-missing", "norm-convention-mixed"})


class MtpProposer:
    """Guesses a chain, one run of the head for each token."""

    captures: tuple[HiddenIndex, ...] = ()
    with_normed: bool = True

    def __init__(self, head: MtpHead, num_draft_tokens: int = NUM_DRAFT_TOKENS) -> None:
        """Start a request."""
        self._head, self._count = head, num_draft_tokens
        self._session = head.new_session()
        self._true = self._session.mark()

    def propose(self, context: Context) -> Proposal:
        """A chain; nothing in the first step of a prompt of one token, which has no row yet."""
        self._session.rewind(self._true)
        if context.normed is None:
            return Proposal(DraftTree.empty())
        read = len(context.normed)
        rows = self._head.read(self._session, context.normed, context.tokens[-read:])
        self._true = self._session.mark()
        depth = min(self._count, context.max_depth)
        if depth < 1:
            return Proposal(DraftTree.empty())
        row = rows[-1:]

        def read_on(token: int) -> Tensor:
            nonlocal row
            row = self._head.read(self._session, row, [token])
            return self._head.logits(row)[0]

        return draft_chain(self._head.logits(row)[0], read_on, context, depth)


def prepare_mtp(options: DraftOptions) -> Callable[[Decoder], StartProposer]:
    """See that the target carries a head, then load it beside the target.

    Raises:
        RefusedPair: there is no head, or its norms are of two conventions.
        CouldNotLook, RefusedInput: the checkpoint is not what it must be.
    """
    folder = options.target
    if is_gguf(folder):
        raise _no_head(str(folder), "a GGUF file, whose heads are not read here")
    refuse_mismatch(folder, None, _FATAL)
    if not any(name.startswith(PREFIX) for name in ShardSource(folder).shapes()):
        raise _no_head(str(folder), "0 of its tensors")
    _check_one_layer(folder)
    count = options.num_draft_tokens

    def attach(target: Decoder) -> StartProposer:
        head = load_mtp(folder, target)
        if count is not None:
            return lambda: MtpProposer(head, count)
        return Paceable(lambda _: MtpProposer(head, MOST_DRAFT_TOKENS), MOST_DRAFT_TOKENS, one_pass=False)

    return attach


def _check_one_layer(folder: Path) -> None:
    """Refuse a head of another making than the one built here."""
    config = find_config(folder)
    parsed = parse_config(read_raw(config)).config
    head = parsed.mtp if isinstance(parsed, TargetConfig) else None
    if head is None:  # not announced: the tensors decide, and the loader holds them to one layer
        return
    for subject, expected, said in (
        ("number of MTP layers", "1", head.num_layers.value),
        ("mtp_use_dedicated_embeddings", "false", head.dedicated_embeddings.value),
    ):
        if str(said).lower() != expected:
            raise RefusedInput(
                subject,
                expected=expected,
                found=repr(said),
                where=str(config),
                means="a head of this making is not built here",
                next_step="draft with --method ngram",
            )


def _no_head(where: str, said: str) -> RefusedPair:
    return RefusedPair(
        found("mtp-missing", "mtp.*", expected="the tensors of a head", found=said, at=Place(where))
    )
