"""Drafts of an EAGLE-3 drafter: a chain, or a tree that grows where it is most probable.

Every step reads the pairs that became true since the last one, with features of the target's own states, and
guesses on from the last of them; the memory of guesses is dropped before the next step.

Source: EAGLE-3, arXiv:2503.01840; dynamic tree: EAGLE-2, arXiv:2406.16858, SafeAILab/EAGLE cnets.py.
"""

from collections.abc import Callable

from torch import Tensor

from draftproof.config.parse import find_config, parse_config
from draftproof.config.raw import read_raw
from draftproof.engine.pairing import RefusedPair, refuse_mismatch
from draftproof.engine.proposers.chain import draft_chain
from draftproof.engine.proposers.grow_tree import grow_tree
from draftproof.engine.proposers.options import DraftOptions
from draftproof.engine.proposers.paced import Paceable
from draftproof.engine.proposers.propose import Context, Proposal, StartProposer
from draftproof.findings.catalogue import found
from draftproof.findings.place import Place
from draftproof.models.decoder import Decoder
from draftproof.models.eagle3.drafter import Eagle3Drafter, Eagle3Read
from draftproof.models.eagle3.load import load_eagle3
from draftproof.models.eagle3.shape import Eagle3Shape, require_eagle3
from draftproof.models.gguf.file import is_gguf
from draftproof.names import HiddenIndex
from draftproof.speculation.tree import DraftTree

__all__ = ["Eagle3Proposer", "prepare_eagle3"]

CHAIN_LENGTH, TREE_DEPTH, TOP_K = 4, 8, 10
"""Unless asked otherwise. The tree's are EaModel's: a first level and depth=7 more, top_k=10."""

MOST_DRAFT_TOKENS = 8
"""The longest chain that the controller chooses."""

_FATAL = frozenset(
    {
        "d2t-absolute",
        "d2t-degenerate",
        "d2t-duplicate-target",
        "d2t-not-integer",
        "d2t-out-of-range",
        "draft-map-absent",
        "head-missing",
        "hidden-size-mismatch",
        "shape-conflict",
        "taps-out-of-range",
        "taps-width-conflict",
        "target-depth-mismatch",
        "tensor-unfilled",
        "tokenizer-mismatch",
        "vocabulary-mismatch",
    }
)
"""Findings with which the drafter cannot run, or drafts other tokens than it was trained to."""


class Eagle3Proposer:
    """One request's drafts."""

    with_normed: bool = False

    def __init__(
        self,
        drafter: Eagle3Drafter,
        *,
        num_draft_tokens: int | None = None,
        budget: int | None = None,
        top_k: int = TOP_K,
    ) -> None:
        """Start a request.

        Args:
            drafter: shared by all requests.
            num_draft_tokens: the longest path; None for the method's own.
            budget: nodes of a tree, the root not counted (EAGLE's total_token less 1); None drafts a chain.
            top_k: guesses of a level that are followed, and children of each.
        """
        depth = CHAIN_LENGTH if budget is None else TREE_DEPTH
        self._depth = depth if num_draft_tokens is None else num_draft_tokens
        self._drafter, self._budget, self._top_k = drafter, budget, top_k
        self._session = drafter.new_session()
        self._true = self._session.mark()
        self.captures: tuple[HiddenIndex, ...] = tuple(dict.fromkeys(drafter.shape.taps))

    def propose(self, context: Context) -> Proposal:
        """A draft; nothing in the first step of a prompt of one token, which has no feature yet."""
        self._session.rewind(self._true)
        if not context.captured:
            return Proposal(DraftTree.empty())
        states = [context.captured[tap] for tap in self._drafter.shape.taps]
        tokens = context.tokens[-len(states[0]) :]
        read = self._drafter.read(self._session, self._drafter.fused(states), tokens)
        self._true = self._session.mark()
        depth = min(self._depth, context.max_depth)
        if depth < 1:
            return Proposal(DraftTree.empty())
        last = Eagle3Read(read.features[-1:], read.normed[-1:])
        if self._budget is None:
            return self._chain(last, context, depth)
        tree = grow_tree(
            self._drafter, self._session, last, depth=depth, top_k=self._top_k, budget=self._budget
        )
        return Proposal(tree)

    def _chain(self, last: Eagle3Read, context: Context, depth: int) -> Proposal:
        def read_on(token: int) -> Tensor:
            nonlocal last
            last = self._drafter.read(self._session, last.features, [token])
            return self._drafter.logits(last.normed)[0]

        return draft_chain(self._drafter.logits(last.normed)[0], read_on, context, depth)


def prepare_eagle3(options: DraftOptions) -> Callable[[Decoder], StartProposer]:
    """Hold the drafter against the target, then load it beside the target.

    Raises:
        RefusedPair: drafter and target do not belong together.
        CouldNotLook, RefusedInput: the drafter is not there or not what it must be.
    """
    directory = options.drafter
    if directory is None:
        raise RuntimeError("EAGLE-3 without a drafter")
    config = find_config(directory)
    require_eagle3(parse_config(read_raw(config)), str(config))
    refuse_mismatch(directory, None if is_gguf(options.target) else options.target, _FATAL)
    count, budget = options.num_draft_tokens, options.budget

    def attach(target: Decoder) -> StartProposer:
        drafter = load_eagle3(directory, target)
        _refuse_other_target(drafter.shape, target, str(directory))
        if options.is_sized:
            return lambda: Eagle3Proposer(drafter, num_draft_tokens=count, budget=budget)
        most = MOST_DRAFT_TOKENS
        return Paceable(lambda _: Eagle3Proposer(drafter, num_draft_tokens=most), most, one_pass=False)

    return attach


def _refuse_other_target(shape: Eagle3Shape, target: Decoder, where: str) -> None:
    """The same as the rules of ``check``, against the model as loaded: a GGUF file has no config to check."""
    width, depth, rows = target.shape.hidden_size, target.num_layers, target.shape.vocab_size
    deepest = max(shape.taps)
    for is_fault, kind, subject, expected, value in (
        (
            shape.target_hidden_size != width,
            "hidden-size-mismatch",
            "hidden_size",
            width,
            shape.target_hidden_size,
        ),
        (deepest > depth, "taps-out-of-range", "taps", f"hidden states 0 to {depth}", deepest),
        (
            shape.decoder.vocab_size > rows,
            "vocabulary-mismatch",
            "vocab_size",
            rows,
            shape.decoder.vocab_size,
        ),
    ):
        if is_fault:
            raise RefusedPair(found(kind, subject, expected=expected, found=value, at=Place(where)))
