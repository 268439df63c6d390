"""What a step costs by the size of its draft, measured in the decoding loop itself, once for a pair."""

import random
from collections.abc import Mapping

from torch import Tensor

from draftproof.engine.generation import Seconds
from draftproof.engine.proposers.paced import Paceable
from draftproof.engine.proposers.propose import Context
from draftproof.engine.step import decode_step
from draftproof.models.decoder import Decoder
from draftproof.names import HiddenIndex
from draftproof.speculation.chance import SeededChance
from draftproof.speculation.pace import StepCosts
from draftproof.speculation.sampling import History, Sampling

__all__ = ["measure_costs"]

_PROMPT_LENGTH = 32
_REPEATS = 3
"""Steps timed for each size, after one that is not."""


def measure_costs(target: Decoder, drafting: Paceable) -> StepCosts:
    """Times of real steps behind a random prompt, drafts of 0, 1, 3, 7, .. nodes, the least of three.

    The text is noise, so hardly anything is kept; a step costs the same all the same. Sizes take turns, so
    that a busy moment of the machine falls on all of them.
    """
    sizes = _sizes(drafting.most, room=target.shape.max_length - _PROMPT_LENGTH)
    runs = {size: _Run(target, drafting, size) for size in sizes}
    for _ in range(_REPEATS + 1):
        for run in runs.values():
            run.step()
    draft = {size: min(run.draft_s[1:]) for size, run in runs.items() if size > 0}
    if drafting.one_pass:
        draft = dict.fromkeys(draft, min(draft.values()))
    return StepCosts.from_points(draft, {size: min(run.rest_s[1:]) for size, run in runs.items()})


def _sizes(most: int, room: int) -> list[int]:
    """0, powers of two less one, and the most itself."""
    sizes = {0, most} | {2**power - 1 for power in range(1, most.bit_length())}
    fitting = [size for size in sizes if size + _REPEATS + 2 <= room]
    return sorted(fitting)


class _Run:
    """A request whose drafts all have one size."""

    def __init__(self, target: Decoder, drafting: Paceable, size: int) -> None:
        """Read a prompt."""
        chance = random.Random(size)  # noqa: S311 - a text, not a secret
        self._target, self._most = target, drafting.most
        self._tokens = [chance.randrange(target.shape.vocab_size) for _ in range(_PROMPT_LENGTH)]
        self._history = History(self._tokens)
        self._proposer, self._session = drafting.fixed(size), target.new_session(room=2 * _PROMPT_LENGTH)
        read = target.prefill(
            self._session,
            self._tokens[:-1],
            capture=self._proposer.captures,
            with_normed=self._proposer.with_normed,
        )
        self._captured: Mapping[HiddenIndex, Tensor] = read.hidden
        self._normed = read.normed
        self.draft_s: list[float] = []
        self.rest_s: list[float] = []

    def step(self) -> None:
        """One step, timed."""
        seconds = Seconds()
        context = Context(self._tokens, self._most, self._captured, Sampling(), SeededChance(0), self._normed)
        decided = decode_step(
            self._target, self._session, self._proposer, context, history=self._history, seconds=seconds
        )
        self._captured, self._normed = decided.captured, decided.normed
        self._tokens.extend(decided.acceptance.tokens)
        self.draft_s.append(seconds.draft)
        self.rest_s.append(seconds.decode - seconds.draft)
