"""The target's own multi-token-prediction head as a source of drafts.

Every step reads the pairs that became true since the last one, with the target's own rows, and guesses on
from the last of them; the memory of guesses is dropped before the next step.

Source: DeepSeek-V3, arXiv:2412.19437, section 2.2; vLLM 0.33 qwen3_5_mtp, multi_module_mtp.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
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
from draftproof.models.mtp.load import head_names, load_mtp
from draftproof.models.target.reading import read_shape
from draftproof.names import HiddenIndex
from draftproof.speculation.tree import DraftTree

__all__ = ["MtpProposer", "prepare_mtp"]

NUM_DRAFT_TOKENS, MOST_DRAFT_TOKENS = 3, 6
"""Tokens drafted unless asked otherwise, and the most that the controller chooses.

A head of one layer is run again for each; of more, each layer guesses one of them, then they begin anew.
"""

_FATAL = frozenset({"mtp-missing", "norm-convention-mixed"})


class MtpProposer:
    """Guesses a chain, one run of a layer for each token."""

    captures: tuple[HiddenIndex, ...] = ()
    with_normed: bool = True

    def __init__(self, head: MtpHead, num_draft_tokens: int = NUM_DRAFT_TOKENS) -> None:
        """Start a request."""
        self._head, self._count = head, num_draft_tokens
        self._sessions = [head.new_session() for _ in head.layers]
        self._true = [session.mark() for session in self._sessions]
        # For each layer: the true row before it whose token, one further on, is not known yet.
        self._waiting = [head.no_rows() for _ in head.layers]

    def propose(self, context: Context) -> Proposal:
        """A chain; nothing in the first step of a prompt of one token, which has no row yet."""
        for session, mark in zip(self._sessions, self._true, strict=True):
            session.rewind(mark)
        if context.normed is None:
            return Proposal(DraftTree.empty())
        last = self._read_true(context.normed, context.tokens)
        self._true = [session.mark() for session in self._sessions]
        depth = min(self._count, context.max_depth)
        if depth < 1:
            return Proposal(DraftTree.empty())
        return draft_chain(self._head.logits(last)[0], self._guesses(last), context, depth)

    def _read_true(self, rows: Tensor, tokens: Sequence[int]) -> Tensor:
        """Every layer reads the pairs that became true; the row that guesses first."""
        last = rows[-1:]
        for layer in range(self._head.num_layers):
            if layer:
                rows = torch.cat((self._waiting[layer], rows))
                self._waiting[layer], rows = rows[-1:], rows[:-1]
            if len(rows):
                rows = self._read(layer, rows, tokens)
            if not layer:
                last = rows[-1:]
        return last

    def _guesses(self, last: Tensor) -> Callable[[int], Tensor]:
        """The logits after each guess: layer after layer over rows whose tokens are guesses.

        After the last layer the first reads on behind them, with what was put out for each guess as its row.
        """
        drafted: list[int] = []
        putting_out, rows = [last], last[:0]

        def read_on(token: int) -> Tensor:
            nonlocal rows
            drafted.append(token)
            turn, layer = divmod(len(drafted), self._head.num_layers)
            if layer == 0:
                rows = torch.cat(putting_out[-self._head.num_layers :])
            elif turn == 0:
                rows = torch.cat((self._waiting[layer], rows))
            rows = self._read(layer, rows, drafted)
            putting_out.append(rows[-1:])
            return self._head.logits(rows[-1:], layer=layer)[0]

        return read_on

    def _read(self, layer: int, rows: Tensor, tokens: Sequence[int]) -> Tensor:
        return self._head.read(self._sessions[layer], rows, tokens[len(tokens) - len(rows) :], layer=layer)


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
    _check_head(folder)
    count = options.num_draft_tokens

    def attach(target: Decoder) -> StartProposer:
        head = load_mtp(folder, target)
        if count is not None:
            return lambda: MtpProposer(head, count)
        return Paceable(lambda _: MtpProposer(head, MOST_DRAFT_TOKENS), MOST_DRAFT_TOKENS, one_pass=False)

    return attach


def _check_head(folder: Path) -> None:
    """Refuse a head that is not there, or is of another making than those built here.

    Raises:
        RefusedPair: no layer of a head is there.
        RefusedInput: another number of layers than announced, or an embedding beside the target's.
        CouldNotLook: there is no config or no checkpoint.
    """
    config = find_config(folder)
    parsed = parse_config(read_raw(config))
    shape = read_shape(parsed, str(config))
    names = head_names(folder, len(shape.layers))
    if names is None:
        raise _no_head(str(folder), "0 of its tensors")
    head = parsed.config.mtp if isinstance(parsed.config, TargetConfig) else None
    if head is None:  # not announced: the tensors decide
        return
    for subject, expected, said, means in (
        (
            "number of MTP layers",
            names.num_layers,
            head.num_layers.value,
            "config and tensors tell of two different heads",
        ),
        (
            "mtp_use_dedicated_embeddings",
            False,
            head.dedicated_embeddings.value,
            "a head of this making is not built here",
        ),
    ):
        if said != expected:
            raise RefusedInput(
                subject,
                expected=f"{expected}, as the tensors are",
                found=repr(said),
                where=str(config),
                means=means,
                next_step=f"draftproof check {folder}",
            )


def _no_head(where: str, said: str) -> RefusedPair:
    return RefusedPair(
        found("mtp-missing", "mtp.*", expected="the tensors of a head", found=said, at=Place(where))
    )
