"""Requests side by side in one forward: each writes what it writes alone, by every method, drawn and greedy.

Four requests of other prompts, lengths and seeds go through the target together, chains and trees of any size
in one batch, and come and go. In float64 their tokens and what was kept of every draft are those of each
alone: a row's tokens and draws do not depend on its neighbours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from torch import Tensor

from drafting import prompt_of, run
from draftproof.cache.session import Session
from draftproof.engine.engine import Engine
from draftproof.engine.judge import judge
from draftproof.engine.proof.adversary import Adversary
from draftproof.engine.proposers.propose import (
    Context,
    Proposal,
    Proposer,
    StartProposer,
)
from draftproof.models.forward import Block, Forward
from draftproof.names import HiddenIndex
from draftproof.speculation.chance import SeededChance
from draftproof.speculation.sampling import History, Sampling
from hybrid_methods import methods_beside
from tiny_eagle3 import TAPS
from tiny_mtp import write_tiny_mtp

pytestmark = pytest.mark.engine

METHODS = ("ar", "ngram", "draft", "mtp", "eagle3", "eagle3-tree", "dflash", "ddtree")
LENGTHS = (9, 17, 4, 13)
"""Tokens of the answers: requests end at different steps, and the batch shrinks."""

DRAWN = Sampling(temperature=0.7, top_k=20, repetition_penalty=1.1)
CAPTURES = tuple(HiddenIndex(tap) for tap in TAPS)
"""What any of the drafters asks for; a batch is asked for it as a whole."""


@dataclass
class Row:
    """One request of a batch."""

    proposer: Proposer
    session: Session
    tokens: list[int]
    left: int
    sampling: Sampling
    history: History
    captured: Mapping[HiddenIndex, Tensor]
    normed: Tensor | None
    kept: list[int] = field(default_factory=list)
    proposal: Proposal | None = None

    def block(self) -> Block:
        """What it wants verified."""
        captured = {index: self.captured[index] for index in self.proposer.captures} if self.captured else {}
        self.proposal = self.proposer.propose(self.context(captured))
        tree = self.proposal.tree
        return Block(self.session, (self.tokens[-1], *tree.tokens.tolist()), tree)

    def context(self, captured: Mapping[HiddenIndex, Tensor]) -> Context:
        """Before this step."""
        chance = SeededChance(self.sampling.seed).of_step(len(self.tokens))
        return Context(self.tokens, self.left - 1, captured, self.sampling, chance, self.normed)

    def take(self, seen: Forward) -> None:
        """Judge, commit, emit."""
        assert self.proposal is not None
        acceptance = judge(self.proposal, seen.logits, context=self.context({}), history=self.history)
        nodes = list(acceptance.nodes)
        self.session.commit(nodes)
        self.captured = {index: rows[nodes] for index, rows in seen.hidden.items()}
        assert seen.normed is not None
        self.normed = seen.normed[nodes]
        emitted = list(acceptance.tokens)
        self.tokens.extend(emitted)
        self.history.add(emitted)
        self.left -= len(emitted)
        self.kept.append(acceptance.num_accepted)


def together(engine: Engine, requests: Sequence[tuple[list[int], int, Sampling, Proposer]]) -> list[Row]:
    """All requests, one batch a step."""
    rows = []
    for prompt, length, sampling, proposer in requests:
        session = engine.target.new_session()
        read = engine.target.prefill(session, prompt[:-1], capture=CAPTURES, with_normed=True)
        history = History(prompt)
        rows.append(Row(proposer, session, [*prompt], length, sampling, history, read.hidden, read.normed))
    while running := [row for row in rows if row.left > 0]:
        blocks = [row.block() for row in running]
        found = engine.target.forward_batch(blocks, capture=CAPTURES, with_normed=True)
        for row, seen in zip(running, found, strict=True):
            row.take(seen)
    return rows


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
    return methods_beside(engine.target, tiny_targets["hybrid"], tmp_path_factory.mktemp("drafters"))


@pytest.mark.parametrize("sampling", [Sampling(), DRAWN], ids=["greedy", "drawn"])
@pytest.mark.parametrize("method", METHODS)
def test_neighbours_change_nothing(
    method: str, sampling: Sampling, engine: Engine, starts: dict[str, StartProposer]
) -> None:
    """Tokens, and what each step kept, are those of the request alone."""
    requests = []
    alone = []
    for number, length in enumerate(LENGTHS):
        seeded = replace(sampling, seed=number)
        prompt = prompt_of(number, 6 + 5 * number) * 2
        requests.append((prompt, length, seeded, starts[method]()))
        alone.append(run(engine, prompt, length, starts[method], seeded))
    for row, single in zip(together(engine, requests), alone, strict=True):
        assert tuple(row.tokens[-len(single.token_ids) :]) == single.token_ids
        assert row.kept == [step.num_accepted for step in single.steps]


def test_neighbours_that_are_half_right_change_nothing(engine: Engine) -> None:
    """Beside each other: adversaries that are kept in part, so that sessions grow by different lengths."""
    requests = []
    alone = []
    for number, length in enumerate(LENGTHS):
        prompt = prompt_of(number, 6 + 5 * number)
        truth = [*prompt, *run(engine, prompt, length).token_ids]
        made = partial(Adversary, truth, 128, number)
        requests.append((prompt, length, Sampling(), made()))
        alone.append(run(engine, prompt, length, made))
    rows = together(engine, requests)
    for row, single in zip(rows, alone, strict=True):
        assert tuple(row.tokens[-len(single.token_ids) :]) == single.token_ids
        assert row.kept == [step.num_accepted for step in single.steps]
    assert len({kept for row in rows for kept in row.kept}) > 2
