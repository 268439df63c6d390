"""Drafts of a DFlash drafter: a chain of its most probable (or drawn) tokens, or the best tree of them.

The drafter's memory takes in the captured rows of accepted tokens and of nothing else.
Source: DFlash, arXiv:2602.06036, dflash 0.1.0; DDTree, arXiv:2604.12989, liranringel/ddtree c96427a.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from draftproof.engine.pairing import RefusedPair, refuse_mismatch
from draftproof.engine.proposers.options import DraftOptions
from draftproof.engine.proposers.paced import Paceable
from draftproof.engine.proposers.propose import Context, Proposal, StartProposer
from draftproof.findings.catalogue import found
from draftproof.findings.place import Place
from draftproof.models.decoder import Decoder
from draftproof.models.dflash.drafter import DflashDrafter
from draftproof.models.dflash.load import load_dflash, read_dflash
from draftproof.models.dflash.shape import DflashShape
from draftproof.models.gguf.file import is_gguf
from draftproof.names import HiddenIndex
from draftproof.speculation.chance import Purpose
from draftproof.speculation.ddtree import grow
from draftproof.speculation.pace import TreeAdvice
from draftproof.speculation.sampling import distribution
from draftproof.speculation.tree import DraftTree

__all__ = ["BUDGET", "DflashProposer", "prepare_ddtree", "prepare_dflash", "prepare_either"]

BUDGET, MOST_NODES = 32, 64
"""Nodes of a tree unless asked otherwise, and the most among which the controller draws the line."""

_FATAL = frozenset(
    {
        "block-size-invalid",
        "d2t-absolute",
        "d2t-degenerate",
        "d2t-duplicate-target",
        "d2t-not-integer",
        "d2t-out-of-range",
        "draft-map-absent",
        "head-missing",
        "hidden-size-mismatch",
        "mask-absent",
        "mask-out-of-range",
        "shape-conflict",
        "taps-absent",
        "taps-out-of-range",
        "taps-width-conflict",
        "target-depth-mismatch",
        "tensor-unfilled",
        "tokenizer-mismatch",
        "vocabulary-mismatch",
    }
)
"""Findings with which the drafter cannot run, or drafts other tokens than it was trained to."""


class DflashProposer:
    """One request's drafts."""

    with_normed = False

    def __init__(
        self,
        drafter: DflashDrafter,
        *,
        num_draft_tokens: int | None = None,
        budget: int | None = None,
        spine: bool = False,
        pace: TreeAdvice | None = None,
    ) -> None:
        """Start with an empty context.

        Args:
            drafter: shared by all requests.
            num_draft_tokens: drafted at most; None for all that a block holds.
            budget: nodes of the tree; None drafts a chain.
            spine: begin the tree with the chain, whatever its chance.
            pace: says whether it is a tree this time, and ends it where a node more does not pay.
        """
        self._drafter, self._budget, self._spine, self._pace = drafter, budget, spine, pace
        self._most = drafter.shape.num_draft_tokens if num_draft_tokens is None else num_draft_tokens
        self._memory = drafter.new_memory()
        self.captures: tuple[HiddenIndex, ...] = tuple(dict.fromkeys(drafter.shape.taps))

    @property
    def num_context_rows(self) -> int:
        """Accepted tokens whose rows the drafter has taken in."""
        return self._memory.length

    def propose(self, context: Context) -> Proposal:
        """What the drafter thinks follows the root."""
        # A block is cut where the request ends, the bonus token's slot still in it (dflash 0.1.0 does so).
        num_drafted = min(self._most, context.max_depth + 1)
        marginals = self._drafter.draft(self._memory, self._rows(context), context.tokens[-1], num_drafted)[
            : context.max_depth
        ]
        if self._budget is not None and (self._pace is None or self._pace.is_tree):
            return self._tree(marginals, self._budget)
        if not context.draws:
            return Proposal(DraftTree.chain(marginals.argmax(-1).tolist()))
        probs, first = distribution(marginals, context.sampling), len(context.tokens)
        drawn = [context.chance.draw(q, first + i, Purpose.DRAFT) for i, q in enumerate(probs)]
        return Proposal(DraftTree.chain(drawn), probs)

    def _tree(self, marginals: Tensor, budget: int) -> Proposal:
        if self._pace is None:
            grown = grow(marginals, budget, spine=self._spine)
        else:
            costs, trust = self._pace.round_cost, self._pace.trust
            if costs is not None:  # measured for as many nodes as a short context holds, or given for fewer
                budget = min(budget, len(costs.verify_s) - 1)
            grown = grow(marginals, budget, spine=self._spine, round_cost=costs, trust=trust)
        return Proposal(grown.tree, expected=grown.expected)

    def _rows(self, context: Context) -> Tensor:
        """[C, n H_t]: the tapped states of the tokens read since the last step, side by side."""
        shape = self._drafter.shape
        if not context.captured:
            return torch.empty(0, len(shape.taps) * shape.target_hidden_size, device=self._drafter.device)
        return torch.cat([context.captured[tap] for tap in shape.taps], -1)


def prepare_dflash(options: DraftOptions) -> Callable[[Decoder], StartProposer]:
    """A chain of what one block holds, or fewer tokens.

    Raises:
        CouldNotLook: there is no drafter.
        RefusedInput: it is none that can be run here, or does not belong to this target.
    """
    return _prepare(options, budget=None)


def prepare_either(options: DraftOptions) -> Callable[[Decoder], StartProposer]:
    """Chains or trees, whichever the controller finds to be faster.

    Raises:
        CouldNotLook, RefusedInput: as ``prepare_dflash``.
    """
    return _prepare(options, budget=MOST_NODES, or_chain=True)


def prepare_ddtree(options: DraftOptions) -> Callable[[Decoder], StartProposer]:
    """The best tree of ``budget`` nodes under the block's marginals.

    Raises:
        CouldNotLook, RefusedInput: as ``prepare_dflash``.
    """
    budget = BUDGET if options.is_sized else MOST_NODES
    return _prepare(options, budget=budget if options.budget is None else options.budget)


def _prepare(
    options: DraftOptions, budget: int | None, *, or_chain: bool = False
) -> Callable[[Decoder], StartProposer]:
    directory = options.drafter
    if directory is None:
        raise RuntimeError("a block drafter without a directory")
    refuse_mismatch(directory, None if is_gguf(options.target) else options.target, _FATAL)
    shape, count = read_dflash(directory), options.num_draft_tokens
    if count is not None and count > shape.num_draft_tokens:
        finding = found(
            "block-size-conflict",
            "--num-draft-tokens",
            expected=f"{shape.num_draft_tokens} at most",
            found=count,
            at=Place(str(directory)),
            detail=f"block_size {shape.block_size} drafts {shape.num_draft_tokens} tokens",
        )
        raise RefusedPair(finding)

    def attach(target: Decoder) -> StartProposer:
        _refuse_other_target(shape, target, str(directory))
        drafter = load_dflash(directory, target)

        def make(pace: TreeAdvice | None) -> DflashProposer:
            return DflashProposer(
                drafter, num_draft_tokens=count, budget=budget, spine=options.spine, pace=pace
            )

        if options.is_sized:
            return lambda: make(None)
        depth = shape.num_draft_tokens
        if budget is None:
            return Paceable(make, depth, one_pass=True)
        return Paceable(make, budget, one_pass=True, is_tree=True, most_in_chain=depth if or_chain else None)

    return attach


def _refuse_other_target(shape: DflashShape, target: Decoder, where: str) -> None:
    """The same as the rules of ``check``, against the model as loaded: a GGUF file has no config to check."""
    width, depth, rows = target.shape.hidden_size, target.num_layers, target.shape.vocab_size
    for is_fault, kind, subject, expected, value in (
        (
            shape.target_hidden_size != width,
            "hidden-size-mismatch",
            "target_hidden_size",
            width,
            shape.target_hidden_size,
        ),
        (
            max(shape.taps) > depth,
            "taps-out-of-range",
            "taps",
            f"hidden states 0 to {depth}",
            max(shape.taps),
        ),
        (
            shape.mask_token_id >= rows,
            "mask-out-of-range",
            "mask_token_id",
            f"0 to {rows - 1}",
            shape.mask_token_id,
        ),
    ):
        if is_fault:
            raise RefusedPair(found(kind, subject, expected=expected, found=value, at=Place(where)))
