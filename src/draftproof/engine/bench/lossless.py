"""Whether an arm wrote the baseline's tokens, and where not, whether the target itself was undecided there.

Forwards of different shapes add the same numbers in another order. How far that moves a logit is measured on
the target at hand; where its two best logits are closer than that, either token is the right one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from draftproof.engine.bench.arms import BASELINE
from draftproof.engine.bench.run import Run
from draftproof.models.decoder import Decoder
from draftproof.speculation.tree import DraftTree

__all__ = ["Divergence", "divergences", "noise_bound"]

_ROOM = 4.0
"""The bound over the largest movement seen in the few rows looked at."""

_NUM_TEXTS, _NUM_TOKENS = 4, 24


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first token of a prompt at which an arm left the baseline."""

    arm: str
    prompt: str
    at: int
    """Its place among the new tokens."""

    gap: float
    """From the largest logit down to that of the arm's token, in plain decoding."""

    bound: float

    @property
    def is_near_tie(self) -> bool:
        """Whether rounding alone explains it."""
        return self.gap < self.bound


def noise_bound(target: Decoder, runs: Sequence[Run]) -> float:
    """How far apart the logits of one token can be in forwards of different shapes: four times what is seen.

    Args:
        target: the model.
        runs: of the baseline, whose texts are read again, one by one and at once.
    """
    texts = [run.generation for run in runs if run.arm == BASELINE and run.round == 0][:_NUM_TEXTS]
    worst = 0.0
    for text in texts:
        tokens = text.token_ids[:_NUM_TOKENS]
        single = target.new_session()
        whole = target.new_session()
        for session in (single, whole):
            if len(text.prompt_ids) > 1:
                target.prefill(session, text.prompt_ids[:-1])
        at_once = target.verify(whole, text.prompt_ids[-1], DraftTree.chain(tokens[:-1])).logits
        for place, token in enumerate((text.prompt_ids[-1], *tokens[:-1])):
            row = target.verify(single, token, DraftTree.empty()).logits[0]
            single.commit([0])
            worst = max(worst, float((row - at_once[place]).abs().max()))
    return _ROOM * worst


def divergences(target: Decoder, runs: Sequence[Run], bound: float) -> list[Divergence]:
    """Where each arm first wrote another token than the baseline, if anywhere."""
    plain = {run.prompt: run.generation for run in runs if run.arm == BASELINE and run.round == 0}
    found = {}
    for run in runs:
        truth = plain[run.prompt]
        mine, theirs = run.generation.token_ids, truth.token_ids
        if mine == theirs or (run.arm, run.prompt) in found:
            continue
        pairs = zip(mine, theirs, strict=False)
        at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(mine), len(theirs)))
        gap = float("inf")  # one text ends where the other goes on
        if at < min(len(mine), len(theirs)):
            row = _row(target, [*truth.prompt_ids, *theirs[:at]])
            gap = float(row.max() - row[mine[at]])
        found[run.arm, run.prompt] = Divergence(run.arm, run.prompt, at, gap, bound)
    return list(found.values())


def _row(target: Decoder, tokens: Sequence[int]) -> Tensor:
    session = target.new_session(room=len(tokens))
    if len(tokens) > 1:
        target.prefill(session, tokens[:-1])
    return target.verify(session, tokens[-1], DraftTree.empty()).logits[0]
