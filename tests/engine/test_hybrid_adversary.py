"""Every method on a tiny Qwen3.5 target, driven through patterns of keeping that no drafter would meet.

An adversary tells the truth to a random depth and then lies, in chains and trees; in between the method's own
drafts are verified. The method is asked in every step, so its memory follows all of it. In float64 the text
is that of plain decoding, token for token: nothing is left to rounding.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from drafting import prompt_of, run
from draftproof.engine.engine import Engine
from draftproof.engine.proof.adversary import Adversary
from draftproof.engine.proposers.paced import Paced
from draftproof.engine.proposers.propose import Context, Proposal, Proposer, StartProposer
from draftproof.names import HiddenIndex
from draftproof.speculation.pace import ChainPace, StepCosts
from hybrid_methods import methods_beside
from tiny_mtp import write_tiny_mtp

pytestmark = pytest.mark.engine

METHODS = ("ngram", "draft", "mtp", "eagle3", "eagle3-tree", "dflash", "dflash-paced", "ddtree")
COSTS = StepCosts((0.0, *[0.2] * 5), (1.0, 1.0, 1.1, 1.2, 1.3, 1.4))


class Torn:
    """Asks a method for every draft, and verifies it one time in three; else an adversary's."""

    def __init__(self, inner: Proposer, adversary: Adversary) -> None:
        """The adversary's seed decides whose draft it is."""
        self._inner, self._adversary = inner, adversary
        self._chance = random.Random(adversary.seed)  # noqa: S311 - a pattern, not a secret

    @property
    def captures(self) -> tuple[HiddenIndex, ...]:
        """As the method."""
        return self._inner.captures

    @property
    def with_normed(self) -> bool:
        """As the method."""
        return self._inner.with_normed

    def propose(self, context: Context) -> Proposal:
        """One of the two."""
        own, other = self._inner.propose(context), self._adversary.propose(context)
        return own if self._chance.random() < 1 / 3 else other


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A hybrid target with a head of its own, in float64."""
    folder = tmp_path_factory.mktemp("target")
    write_tiny_mtp(folder, "hybrid")
    return Engine.load(folder, dtype="float64", with_text=False)


@pytest.fixture(scope="module")
def starts(
    engine: Engine, tiny_targets: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, StartProposer]:
    """Every method beside that target."""
    found = methods_beside(engine.target, tiny_targets["hybrid"], tmp_path_factory.mktemp("drafters"))
    block = found["dflash"]
    return found | {"dflash-paced": lambda: Paced(block(), ChainPace(COSTS, 5), one_pass=True)}


def patterns(
    engine: Engine, start: Callable[[], Proposer], num_texts: int, length: int
) -> Counter[tuple[int, ...]]:
    """The steps of many texts by what was drafted and kept; every text is checked."""
    found: Counter[tuple[int, ...]] = Counter()
    for number in range(num_texts):
        prompt = prompt_of(number % 4, (1, 5, 33, 70)[number % 4])
        alone = run(engine, prompt, length)
        truth = [*prompt, *alone.token_ids]
        adversary = partial(Adversary, truth, 128, number, branches=number % 2 == 0)
        drafted = run(engine, prompt, length, lambda made=adversary: Torn(start(), made()))  # type: ignore[misc]
        assert drafted.token_ids == alone.token_ids
        found.update((step.num_drafted, step.depth, step.num_accepted) for step in drafted.steps)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_half_true_drafts_leave_the_text(
    method: str, engine: Engine, starts: dict[str, StartProposer]
) -> None:
    """Two texts of 60 tokens: chains and trees, kept whole, in part and not at all."""
    found = patterns(engine, starts[method], num_texts=2, length=60)
    assert len(found) > 12
    assert {kept for _, _, kept in found} >= {0, 1, 2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_hundreds_of_steps_leave_the_text(
    method: str, engine: Engine, starts: dict[str, StartProposer]
) -> None:
    """More than six hundred steps each, more than five thousand in all."""
    found = patterns(engine, starts[method], num_texts=24, length=130)
    assert found.total() > 600
    assert {kept for _, _, kept in found} == set(range(9))
    assert len(found) > 40
