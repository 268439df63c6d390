"""Where drafts come from. A proposer guesses; whatever it guesses, the output stays the target's.

Source: prompt lookup: apoorvumang/prompt-lookup-decoding; vLLM 0.33 v1/spec_decode/ngram_proposer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from draftproof.errors import UsageError
from draftproof.names import HiddenIndex
from draftproof.speculation.chance import Chance
from draftproof.speculation.rules import Rule
from draftproof.speculation.sampling import Sampling
from draftproof.speculation.tree import DraftTree

__all__ = [
    "Context",
    "NgramProposer",
    "NoProposer",
    "Proposal",
    "Proposer",
    "StartProposer",
]


@dataclass(frozen=True, slots=True)
class Context:
    """What a proposer may look at before one step."""

    tokens: Sequence[int]
    """The prompt and all tokens emitted; the last is the root, not yet read by the target."""

    max_depth: int
    """The longest path worth drafting: what the request and the model's context leave, less the bonus."""

    captured: Mapping[HiddenIndex, Tensor]
    """For each hidden state asked for: [n, hidden], the target's rows of the tokens read since the last step.

    In the first step they are the prompt's, all but the root.
    """

    sampling: Sampling
    chance: Chance
    normed: Tensor | None = None
    """[n, hidden], the same rows after the target's final norm; None unless asked for."""

    rule: Rule = Rule.BLOCK
    """How the draft will be judged."""

    @property
    def draws(self) -> bool:
        """Whether a chain is to be drawn and carry what it was drawn from, and not be the likeliest one."""
        return self.rule.draws and not self.sampling.is_greedy


@dataclass(frozen=True, slots=True)
class Proposal:
    """A draft, and how its tokens were chosen."""

    tree: DraftTree
    draft_probs: Tensor | None = None
    """[K, V] for a chain whose tokens were drawn from these; None where the tree is a function of the past.

    A deterministic draft must not carry any: it would be judged as if it had been drawn.
    """

    expected: float | None = None
    """Drafted tokens the drafter itself expects to be kept; None where it does not say."""

    limit: int | None = None
    """Nodes the controller allowed; None where nothing was chosen."""


_NOTHING = Proposal(DraftTree.empty())


class Proposer(Protocol):
    """One request's source of drafts; it may remember the request's past."""

    @property
    def captures(self) -> tuple[HiddenIndex, ...]:
        """The target's hidden states it reads."""
        ...

    @property
    def with_normed(self) -> bool:
        """Whether it reads the last hidden state after the target's final norm."""
        ...

    def propose(self, context: Context) -> Proposal:
        """A draft no deeper than ``context.max_depth``; the root alone where there is nothing to guess."""
        ...


StartProposer = Callable[[], Proposer]
"""Makes the proposer of one request."""


class NoProposer:
    """No draft: every step is plain autoregressive decoding."""

    captures: tuple[HiddenIndex, ...] = ()
    with_normed: bool = False

    def propose(self, context: Context) -> Proposal:
        """The root alone."""
        del context
        return _NOTHING


@dataclass(slots=True)
class NgramProposer:
    """Guesses that what followed these last tokens before will follow again."""

    num_draft_tokens: int = 8
    """Tokens drafted at most."""

    longest: int = 4
    """Tokens of the longest suffix looked up; longer matches are trusted before shorter ones."""

    shortest: int = 2
    """Tokens of the shortest one."""

    captures: tuple[HiddenIndex, ...] = ()
    with_normed: bool = False
    _after: dict[tuple[int, ...], int] = field(default_factory=dict, repr=False)
    _num_indexed: int = 0

    def __post_init__(self) -> None:
        """Refuse lengths that describe no suffix.

        Raises:
            UsageError: fewer than one token, or a shortest suffix above the longest.
        """
        if not (self.num_draft_tokens >= 1 and 1 <= self.shortest <= self.longest):
            raise UsageError(
                "n-gram lengths",
                expected="at least 1 token to draft, and 1 <= shortest <= longest",
                found=f"{self.num_draft_tokens} to draft, {self.shortest} to {self.longest}",
                where="n-gram proposer",
                means="there is no suffix to look up",
                next_step="draftproof generate --help",
            )

    def propose(self, context: Context) -> Proposal:
        """The continuation of the latest earlier occurrence of the longest known suffix."""
        tokens = context.tokens
        self._index(tokens)
        depth = min(self.num_draft_tokens, context.max_depth)
        for length in range(min(self.longest, len(tokens)), self.shortest - 1, -1):
            start = self._after.get(tuple(tokens[-length:]))
            if start is not None:
                return Proposal(DraftTree.chain(_continued(tokens, start, depth)))
        return _NOTHING

    def _index(self, tokens: Sequence[int]) -> None:
        """Note where every suffix seen so far was followed, up to the token before the last."""
        for end in range(max(self._num_indexed, 1), len(tokens)):
            for length in range(self.shortest, min(self.longest, end) + 1):
                self._after[tuple(tokens[end - length : end])] = end
        self._num_indexed = len(tokens)


def _continued(tokens: Sequence[int], start: int, count: int) -> list[int]:
    """``count`` tokens from ``start`` on; past the end the copy goes on with what it copied."""
    copied = list(tokens[start : start + count])
    period = len(copied)
    while len(copied) < count:
        copied.append(copied[len(copied) - period])
    return copied
