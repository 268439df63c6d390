"""What the tests of the drafters share: requests over the tiny targets, and proposers that are watched."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from draftproof.engine.engine import Engine
from draftproof.engine.generation import Generation
from draftproof.engine.proposers.propose import Context, Proposal, Proposer, StartProposer
from draftproof.engine.text.stopping import Stopping
from draftproof.names import HiddenIndex
from draftproof.speculation.sampling import Sampling

__all__ = ["Watched", "prompt_of", "run", "same_proposal", "tau"]


def prompt_of(seed: int, length: int) -> list[int]:
    """Random ids of the tiny vocabulary."""
    chance = random.Random(seed)  # noqa: S311 - cases, not secrets
    return [chance.randrange(128) for _ in range(length)]


def run(
    engine: Engine,
    prompt: list[int],
    num_tokens: int,
    start: StartProposer | None = None,
    sampling: Sampling | None = None,
) -> Generation:
    """The generation with a proposer, or as the engine was loaded."""
    if start is not None:
        engine = replace(engine, start_proposer=start)
    return engine.generate(prompt, stopping=Stopping(num_tokens, ignore_eos=True), sampling=sampling)


def tau(generation: Generation) -> float:
    """Emitted tokens for each step."""
    return len(generation.token_ids) / len(generation.steps)


@dataclass
class Watched:
    """A proposer whose every proposal is shown to ``look`` before it is verified, or replaced."""

    inner: Proposer
    look: Callable[[Context, Proposal], None]
    instead: Proposer | None = None
    """What is verified in its place: drives it through patterns of keeping that it would never meet."""

    num_looks: int = field(default=0, init=False)

    @property
    def captures(self) -> tuple[HiddenIndex, ...]:
        """As the proposer watched."""
        return self.inner.captures

    @property
    def with_normed(self) -> bool:
        """As the proposer watched."""
        return self.inner.with_normed

    def propose(self, context: Context) -> Proposal:
        """As the proposer watched."""
        proposal = self.inner.propose(context)
        self.look(context, proposal)
        self.num_looks += 1
        return proposal if self.instead is None else self.instead.propose(context)


def same_proposal(left: Proposal, right: Proposal) -> bool:
    """Whether two proposals draft the same tokens from the same distributions, up to rounding in float64."""
    if left.tree != right.tree or (left.draft_probs is None) != (right.draft_probs is None):
        return False
    if left.draft_probs is None or right.draft_probs is None:
        return True
    return bool(torch.allclose(left.draft_probs, right.draft_probs, rtol=0, atol=1e-9))
