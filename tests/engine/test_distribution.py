"""engine.judge on a real target: drawn tokens, alone and in pairs, have the target's distribution.

100,000 steps, a quarter for each way of drafting, each with a seed of its own. Chi-square tests of the first
token and of the first pair, corrected after Holm over all of them at 1e-6: by chance alone this file fails
once in a million choices of seeds, and with the seeds below never.
"""

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from draftproof.engine.engine import Engine
from draftproof.engine.judge import judge
from draftproof.engine.proposers.propose import Context, Proposal
from draftproof.speculation.chance import Purpose, SeededChance
from draftproof.speculation.rules import Rule
from draftproof.speculation.sampling import History, Sampling, distribution
from draftproof.speculation.tree import DraftTree
from laws import holm_rejects, marginal, p_value

pytestmark = [pytest.mark.engine, pytest.mark.slow]

NUM_STEPS = 25_000
"""For each way of drafting."""

FALSE_ALARM = 1e-6
PROMPT = [5, 17, 99, 3]
TARGET_OPTIONS = Sampling(temperature=1.0, top_k=5)
DRAFT_OPTIONS = Sampling(temperature=1.3, top_k=3)
"""A drafter that is often right and never exact: warmer than the target, and blind to two of its tokens."""

MakeEngine = Callable[[str, str], Engine]
Draft = Callable[[SeededChance], Proposal]


class Model:
    """A tiny target's logits after any continuation of the prompt, each computed once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[tuple[int, ...], Tensor] = {}
        self._probs: dict[tuple[float, ...], Tensor] = {}
        self._rows: dict[DraftTree, Tensor] = {}

    def logits(self, continued: tuple[int, ...]) -> Tensor:
        """[V] after the prompt and these tokens."""
        if continued not in self._known:
            session = self._engine.target.new_session()
            self._engine.target.prefill(session, PROMPT[:-1])
            chain = DraftTree.chain(continued)
            self._known[continued] = self._engine.target.verify(session, PROMPT[-1], chain).logits[-1]
        return self._known[continued]

    def probs(self, continued: tuple[int, ...], options: Sampling) -> Tensor:
        """[V], what a token is drawn from there."""
        key = (*continued, options.temperature)
        if key not in self._probs:
            self._probs[key] = distribution(self.logits(continued), options)
        return self._probs[key]

    def rows(self, tree: DraftTree) -> Tensor:
        """[N + 1, V], the logits after each node."""
        if tree not in self._rows:
            paths = [tree.path(node)[1:] for node in range(tree.num_draft_tokens + 1)]
            self._rows[tree] = torch.stack([self.logits(tuple(map(tree.token, path))) for path in paths])
        return self._rows[tree]


def drawn_chain(target: Model, *, scored: Sampling) -> Draft:
    """Two tokens drawn from the target at the drafter's options, with the distributions of ``scored``."""

    def draft(chance: SeededChance) -> Proposal:
        tokens: tuple[int, ...] = ()
        rows = []
        for position in range(2):
            q = target.probs(tokens, DRAFT_OPTIONS)
            rows.append(target.probs(tokens, scored))
            tokens += (chance.draw(q, len(PROMPT) + position, Purpose.DRAFT),)
        return Proposal(DraftTree.chain(tokens), torch.stack(rows))

    return draft


def fixed_tree(target: Model) -> Draft:
    """The three likeliest tokens, and two below the first of them."""
    first = target.logits(()).topk(3).indices.tolist()
    second = target.logits((first[0],)).topk(2).indices.tolist()
    tree = DraftTree([*first, *second], [-1, 0, 0, 0, 1, 1])
    return lambda _: Proposal(tree)


def pairs(
    target: Model, draft: Draft, *, rule: Rule = Rule.BLOCK, num_steps: int = NUM_STEPS
) -> Counter[tuple[int, int]]:
    """The first two tokens of many steps, the second drawn by the target where a step emits but one."""
    counts: Counter[tuple[int, int]] = Counter()
    history = History(PROMPT)
    for seed in range(num_steps):
        chance = SeededChance(seed)
        proposal = draft(chance)
        rows = target.rows(proposal.tree)
        context = Context(PROMPT, 2, {}, TARGET_OPTIONS, chance, rule=rule)
        emitted = judge(proposal, rows, context=context, history=history).tokens
        if len(emitted) == 1:
            p = target.probs(emitted, TARGET_OPTIONS)
            emitted += (chance.draw(p, len(PROMPT) + 1, Purpose.TARGET),)
        counts[emitted[0], emitted[1]] += 1
    return counts


def expected_pairs(target: Model) -> dict[tuple[int, int], float]:
    """The target's own joint distribution of two tokens."""
    first = target.probs((), TARGET_OPTIONS)
    law: dict[tuple[int, int], float] = {}
    for a in first.nonzero().flatten().tolist():
        second = target.probs((a,), TARGET_OPTIONS)
        for b in second.nonzero().flatten().tolist():
            law[a, b] = float(first[a]) * float(second[b])
    return law


def p_values(counts: Counter[tuple[int, int]], law: dict[tuple[int, int], float]) -> list[float]:
    """Of the first token and of the pair."""
    return [p_value(marginal(counts, 0), marginal(law, 0)), p_value(counts, law)]


def test_every_way_of_drafting_leaves_the_distribution(tiny_engine: MakeEngine) -> None:
    """Nothing drafted, a fixed tree, a drawn chain judged whole and token by token: one law."""
    target = Model(tiny_engine("hybrid", "float32"))
    law = expected_pairs(target)
    chain = drawn_chain(target, scored=DRAFT_OPTIONS)
    found = [
        *p_values(pairs(target, lambda _: Proposal(DraftTree.empty())), law),
        *p_values(pairs(target, fixed_tree(target)), law),
        *p_values(pairs(target, chain), law),
        *p_values(pairs(target, chain, rule=Rule.REJECTION), law),
    ]
    assert not holm_rejects(found, FALSE_ALARM), found


def test_control_a_draft_scored_at_another_temperature_is_caught(tiny_engine: MakeEngine) -> None:
    """The same test rejects a drawn chain whose distributions are not those it was drawn from."""
    target = Model(tiny_engine("hybrid", "float32"))
    wrong = drawn_chain(target, scored=Sampling(temperature=0.4, top_k=3))
    assert holm_rejects(p_values(pairs(target, wrong, num_steps=8_000), expected_pairs(target)), FALSE_ALARM)


def test_the_drafts_are_often_kept_and_often_refused(tiny_engine: MakeEngine) -> None:
    """Of 500 drawn chains and of 500 steps on the tree, between a tenth and nine tenths keep something."""
    target = Model(tiny_engine("hybrid", "float32"))
    for draft in (fixed_tree(target), drawn_chain(target, scored=DRAFT_OPTIONS)):
        kept = 0
        for seed in range(500):
            chance = SeededChance(seed)
            proposal = draft(chance)
            context = Context(PROMPT, 2, {}, TARGET_OPTIONS, chance)
            found = judge(proposal, target.rows(proposal.tree), context=context, history=History(PROMPT))
            kept += found.num_accepted > 0
        assert 50 < kept < 450
