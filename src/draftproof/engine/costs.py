"""What a step costs by the size of its draft, measured in the decoding loop itself, once for a pair.

Steps are timed behind a short text and behind a longer one; between and beyond the two costs lie on a line.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from draftproof.engine.generation import Seconds
from draftproof.engine.proposers.paced import Paceable
from draftproof.engine.proposers.propose import Context, Proposer
from draftproof.engine.step import decode_step
from draftproof.models.decoder import Decoder
from draftproof.models.forward import Forward
from draftproof.names import HiddenIndex
from draftproof.speculation.chance import SeededChance
from draftproof.speculation.costs import StepCosts
from draftproof.speculation.sampling import History, Sampling

__all__ = ["measure_costs"]

_NEAR, _FAR = 32, 512
"""Tokens before the steps that are timed; the second only where the model's context holds it."""

_REPEATS = 3
"""Steps timed for each size, after one that is not."""


def measure_costs(target: Decoder, drafting: Paceable) -> StepCosts:
    """Times of real steps behind random texts, drafts of 0, 1, 3, 7, .. nodes, the least of three.

    The text is noise, so hardly anything is kept; a step costs the same all the same. Sizes take turns, so
    that a busy moment of the machine falls on all of them.
    """
    costs = _measured(target, drafting, drafting.most, is_tree=drafting.is_tree)
    if drafting.most_in_chain is None:
        return costs
    return replace(costs, chain=_measured(target, drafting, drafting.most_in_chain, is_tree=False))


def _measured(target: Decoder, drafting: Paceable, most: int, *, is_tree: bool) -> StepCosts:
    """Both lengths of one kind of drafts; behind the longer text only few sizes, the others between them."""
    sizes = _sizes(most, room=target.shape.max_length - _NEAR)
    near = _behind(_NEAR, target, drafting, sizes, is_tree=is_tree)
    if near.most + _REPEATS + 2 > target.shape.max_length - _FAR:
        return near
    few = sorted({0, 1, near.most // 2, near.most})
    return replace(near, far=_behind(_FAR, target, drafting, few, is_tree=is_tree))


def _behind(
    length: int, target: Decoder, drafting: Paceable, sizes: Sequence[int], *, is_tree: bool
) -> StepCosts:
    """The table behind so many tokens, which the target reads once for all sizes."""
    start = _Start(length, target, lambda size: drafting.fixed(size, is_tree=is_tree))
    runs = {size: _Run(start, size) for size in sizes}
    for _ in range(_REPEATS + 1):
        for run in runs.values():
            run.step()
    draft = {size: min(run.draft_s[1:]) for size, run in runs.items() if size > 0}
    if drafting.one_pass:
        draft = dict.fromkeys(draft, min(draft.values()))
    verify = {size: min(run.rest_s[1:]) for size, run in runs.items()}
    return StepCosts.from_points(draft, verify, length=length)


def _sizes(most: int, room: int) -> list[int]:
    """0, powers of two less one, and the most itself."""
    sizes = {0, most} | {2**power - 1 for power in range(1, most.bit_length())}
    fitting = [size for size in sizes if size + _REPEATS + 2 <= room]
    return sorted(fitting)


class _Start:
    """A text that the target has read, all but its last token."""

    def __init__(self, length: int, target: Decoder, propose: Callable[[int], Proposer]) -> None:
        """Read it."""
        chance = random.Random(length)  # noqa: S311 - a text, not a secret
        self.target, self.propose = target, propose
        self.tokens = [chance.randrange(target.shape.vocab_size) for _ in range(length)]
        self.session, proposer = target.new_session(), propose(1)
        self.read: Forward = target.prefill(
            self.session, self.tokens[:-1], capture=proposer.captures, with_normed=proposer.with_normed
        )


class _Run:
    """A request whose drafts all have one size."""

    def __init__(self, start: _Start, size: int) -> None:
        """Go on from a text that was read, with a proposer and a memory of its own."""
        self._target, self._tokens = start.target, list(start.tokens)
        self._history = History(self._tokens)
        self._proposer, self._session = start.propose(size), start.session.fork()
        self._captured: Mapping[HiddenIndex, Tensor] = start.read.hidden
        self._normed = start.read.normed
        self.draft_s: list[float] = []
        self.rest_s: list[float] = []

    def step(self) -> None:
        """One step, timed."""
        seconds = Seconds()
        context = Context(
            self._tokens,
            self._target.shape.max_length,
            self._captured,
            Sampling(),
            SeededChance(0),
            self._normed,
        )
        decided = decode_step(
            self._target, self._session, self._proposer, context, history=self._history, seconds=seconds
        )
        self._captured, self._normed = decided.captured, decided.normed
        self._tokens.extend(decided.acceptance.tokens)
        self.draft_s.append(seconds.draft)
        self.rest_s.append(seconds.decode - seconds.draft)
