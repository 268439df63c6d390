"""engine.proposers.paced: a controller changes how much is drafted, never what is written.

The chi-square test draws 20,000 texts of four tokens on a toy small enough to know the law of; at 1e-6, Holm
over its two hypotheses, chance alone fails it once in a million choices of seeds.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dflash_drafters import native_config, tensors_of, write_drafter
from drafting import Watched, prompt_of, run
from draftproof.engine.costs import measure_costs
from draftproof.engine.engine import Engine
from draftproof.engine.judge import judge
from draftproof.engine.proof.adversary import Adversary
from draftproof.engine.proposers.dflash import DflashProposer
from draftproof.engine.proposers.paced import FixedPace, Paceable, Paced
from draftproof.engine.proposers.propose import Context, Proposal
from draftproof.models.dflash.load import load_dflash
from draftproof.names import HiddenIndex
from draftproof.speculation.chance import Purpose, SeededChance
from draftproof.speculation.costs import StepCosts
from draftproof.speculation.pace import ChainPace, RivalPace, TreePace
from draftproof.speculation.proof import Law, ToyModel
from draftproof.speculation.rules import Rule
from draftproof.speculation.sampling import History, Sampling, distribution
from draftproof.speculation.tree import DraftTree

pytestmark = pytest.mark.engine

MakeEngine = Callable[[str, str], Engine]
COSTS = StepCosts((0.0, *[0.3] * 24), tuple(1 + 0.02 * n for n in range(25)))
DEPTHS = {"dense": 3, "hybrid": 4}


class Forgetful:
    """A controller without sense: draws how much is wanted, nothing at all included."""

    def __init__(self, seed: int, most: int) -> None:
        """A pattern of its own for each seed."""
        self.seed, self.most, self.count = seed, most, 0

    def choose(self, length: int) -> int:
        """Anything."""
        del length
        self.count += 1
        return int(SeededChance(self.seed).uniform(self.count, Purpose.KEEP) * (self.most + 1))

    def learn(self, num_drafted: int, num_accepted: int, expected: float | None) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def drafters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A drafter for each tiny target."""
    folder = tmp_path_factory.mktemp("drafters")
    configs = {kind: native_config(depth) for kind, depth in DEPTHS.items()}
    return {kind: write_drafter(folder / kind, c, tensors_of(c, seed=3)) for kind, c in configs.items()}


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
@pytest.mark.parametrize("budget", [None, 24])
def test_whatever_the_controller_wants_the_text_is_that_of_plain_decoding(
    kind: str, budget: int | None, tiny_engine: MakeEngine, drafters: dict[str, Path]
) -> None:
    """Sizes of every kind from step to step, steps without a draft among them, greedy, in float64."""
    engine = tiny_engine(kind, "float64")
    drafter = load_dflash(drafters[kind], engine.target)
    most = drafter.shape.num_draft_tokens if budget is None else budget
    prompt = prompt_of(2, 15)
    alone = run(engine, prompt, 40)
    for seed in range(3):
        pace = Forgetful(seed, most)
        paced = Paced(DflashProposer(drafter, budget=budget), pace, one_pass=True)
        drafted = run(engine, prompt, 40, lambda paced=paced: paced)  # type: ignore[misc]
        assert drafted.token_ids == alone.token_ids
        assert len({step.num_drafted for step in drafted.steps} | {0}) > 3


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_rows_of_steps_without_a_draft_are_read_before_the_next(
    kind: str, tiny_engine: MakeEngine, drafters: dict[str, Path]
) -> None:
    """After any pattern of rests the drafter drafts what it would draft having read every step."""
    engine = tiny_engine(kind, "float64")
    drafter = load_dflash(drafters[kind], engine.target)
    prompt = prompt_of(4, 9)
    truth = [*prompt, *run(engine, prompt, 60).token_ids]
    steady, resting = DflashProposer(drafter), DflashProposer(drafter)
    paced = Paced(resting, Forgetful(5, 2), one_pass=True)
    seen = {0: 0, 1: 0}

    def look(context: Context, proposal: Proposal) -> None:
        wanted = steady.propose(context).tree.tokens.tolist()
        drafted = proposal.tree.tokens.tolist()
        assert drafted == wanted[: len(drafted)]
        seen[min(len(drafted), 1)] += 1

    run(engine, prompt, 60, lambda: Watched(paced, look, Adversary(truth, 128, 3, max_nodes=5)))
    assert min(seen.values()) >= 3


def test_a_learning_controller_repeats_itself(tiny_engine: MakeEngine, drafters: dict[str, Path]) -> None:
    """One table and one prompt: the same sizes, chain and tree, whatever the clock says."""
    engine = tiny_engine("dense", "float64")
    drafter = load_dflash(drafters["dense"], engine.target)
    for is_tree, most in ((False, 5), (True, 24)):
        budget = 24 if is_tree else None
        drafting = Paceable(
            lambda pace, budget=budget: DflashProposer(drafter, budget=budget, pace=pace),  # type: ignore[misc]
            most,
            one_pass=True,
            is_tree=is_tree,
        )
        start = drafting.paced(COSTS)
        sizes = [[step.num_drafted for step in run(engine, prompt_of(3, 8), 40, start).steps] for _ in "ab"]
        assert sizes[0] == sizes[1]
        assert max(sizes[0]) > 0


def test_a_true_drafter_is_asked_for_ever_more(tiny_engine: MakeEngine) -> None:
    """Where all is kept, the chain grows to what is allowed, and steps fall to a fifth."""
    engine = tiny_engine("dense", "float64")
    prompt = prompt_of(8, 6)
    truth = [*prompt, *run(engine, prompt, 100).token_ids]

    class Oracle:
        captures: tuple[HiddenIndex, ...] = ()
        with_normed = False

        def propose(self, context: Context) -> Proposal:
            at = len(context.tokens)
            return Proposal(DraftTree.chain(truth[at : at + context.max_depth]))

    drafted = run(engine, prompt, 100, lambda: Paced(Oracle(), ChainPace(COSTS, 8), one_pass=False))
    assert list(drafted.token_ids) == truth[len(prompt) :]
    assert max(step.num_drafted for step in drafted.steps) == 8
    assert len(drafted.steps) < 20


def test_measured_costs_cover_every_size(tiny_engine: MakeEngine, drafters: dict[str, Path]) -> None:
    """A time for nothing drafted and for each size up to the most, verifying never falling."""
    engine = tiny_engine("hybrid", "float32")
    drafter = load_dflash(drafters["hybrid"], engine.target)
    drafting = Paceable(lambda pace: DflashProposer(drafter, budget=9, pace=pace), 9, one_pass=True)
    costs = measure_costs(engine.target, drafting)
    assert costs.most == 9
    assert costs.chain is None
    for table in (costs, costs.at(300)):
        assert table.draft_s[0] == 0 < min(table.draft_s[1:])
    assert list(costs.verify_s) == sorted(costs.verify_s)
    either = Paceable(drafting.make, 9, one_pass=True, is_tree=True, most_in_chain=4)
    both = measure_costs(engine.target, either)
    assert (both.most, both.chain and both.chain.most) == (9, 4)


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_chains_and_trees_in_turn_write_the_text_of_plain_decoding(
    kind: str, tiny_engine: MakeEngine, drafters: dict[str, Path]
) -> None:
    """``auto``: both kinds are drafted, from one memory of the context, and the text does not know."""
    engine = tiny_engine(kind, "float64")
    drafter = load_dflash(drafters[kind], engine.target)
    prompt, kinds = prompt_of(5, 11), set()

    class Seen(RivalPace):
        """Never in debt, and watched."""

        def choose(self, length: int) -> int:
            self._chain._debt.owed_s = -1.0
            limit = super().choose(length)
            kinds.add(self.is_tree)
            return limit

    pace = Seen(COSTS, 24, 5)
    paced = Paced(DflashProposer(drafter, budget=24, pace=pace), pace, one_pass=True)
    drafted = run(engine, prompt, 60, lambda: paced)
    assert drafted.token_ids == run(engine, prompt, 60).token_ids
    assert kinds == {True, False}
    assert {step.depth < step.num_drafted for step in drafted.steps} == {True, False}


def test_a_given_size_has_no_controller(tiny_targets: dict[str, Path], drafters: dict[str, Path]) -> None:
    """--num-draft-tokens fixes the size; without it the costs are measured, or taken as given."""
    load = Engine.load
    paths = tiny_targets["dense"], drafters["dense"]
    assert load(*paths, method="dflash", num_draft_tokens=2, with_text=False).costs is None
    assert load(*paths, method="ddtree", budget=2, with_text=False).costs is None
    assert load(*paths, method="ddtree", costs=COSTS, with_text=False).costs is COSTS
    assert isinstance(load(*paths, method="dflash", costs=COSTS, with_text=False).start_proposer(), Paced)


@pytest.mark.parametrize("method", ["ddtree", "auto"])
def test_a_table_of_few_nodes_bounds_the_tree(
    method: str, tiny_targets: dict[str, Path], drafters: dict[str, Path]
) -> None:
    """Costs for 24 nodes, as of a model whose context holds no more: no tree outgrows them."""
    paths = tiny_targets["dense"], drafters["dense"]
    engine = Engine.load(*paths, method=method, costs=COSTS, with_text=False)
    steps = run(engine, prompt_of(2, 15), 24, engine.start_proposer).steps
    assert 0 < max(step.num_drafted for step in steps) <= COSTS.most


TARGET = ToyModel(seed=5, vocab_size=3, sharpness=1.5)
DRAFTER = ToyModel(seed=7, vocab_size=3, sharpness=1.5)
NUM_TOKENS = 4
OPTIONS = Sampling(temperature=1.0)


class ToyProposer:
    """Draws chains from the toy drafter, as a drafting model would."""

    captures: tuple[HiddenIndex, ...] = ()
    with_normed = False

    def propose(self, context: Context) -> Proposal:
        """As many as wanted."""
        drafted: tuple[int, ...] = ()
        rows = []
        for place in range(context.max_depth):
            rows.append(DRAFTER.probs((*context.tokens[1:], *drafted)))
            drafted += (context.chance.draw(rows[-1], len(context.tokens) + place, Purpose.DRAFT),)
        return Proposal(DraftTree.chain(drafted), torch.stack(rows))


def toy_text(seed: int, rule: Rule) -> tuple[int, ...]:
    """Four tokens in steps whose size follows what was kept in the steps before; token 0 is the prompt."""
    pace = ChainPace(StepCosts((0.0, 0.4, 0.8, 1.2), (1.0, 1.0, 1.0, 1.0)), 3)
    proposer = Paced(ToyProposer(), pace, one_pass=False)
    tokens, source = [0], SeededChance(seed)
    while len(tokens) <= NUM_TOKENS:
        context = Context(tokens, 3, {}, OPTIONS, source.of_step(len(tokens)), rule=rule)
        proposal = proposer.propose(context)
        path = proposal.tree.tokens.tolist()
        rows = torch.stack([TARGET.logits((*tokens[1:], *path[:n])) for n in range(len(path) + 1)])
        tokens.extend(judge(proposal, rows, context=context, history=History([0])).tokens)
    return tuple(tokens[1 : NUM_TOKENS + 1])


def p_value(counts: Counter[tuple[int, ...]], law: Law) -> float:
    """Chi-square, cells that expect fewer than five pooled."""
    total = sum(counts.values())
    rare = [text for text in law if total * law[text] < 5]
    cells = [(counts[text], total * law[text]) for text in law if text not in rare]
    cells.append((sum(counts[text] for text in rare), total * sum(law[text] for text in rare)))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in cells if expected > 0)
    half = torch.tensor([(len(cells) - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


@pytest.mark.slow
def test_sizes_that_follow_acceptance_leave_the_distribution() -> None:
    """Whole texts of several steps, drawn and judged by both rules under a learning controller."""
    law = TARGET.law(NUM_TOKENS)
    found = [
        p_value(Counter(toy_text(seed, rule) for seed in range(10_000)), law)
        for rule in (Rule.REJECTION, Rule.BLOCK)
    ]
    assert min(found) > 1e-6 / 2, found


def test_a_cut_draft_is_the_beginning_of_the_whole() -> None:
    """Nodes in order of their numbers: parents stay, and so do the distributions."""
    tree = DraftTree([5, 6, 7, 8], [-1, 0, 0, 1, 2])
    whole = Proposal(tree, expected=1.5)

    class Inner:
        captures: tuple[HiddenIndex, ...] = ()
        with_normed = False

        def propose(self, context: Context) -> Proposal:
            assert context.max_depth == 9
            return whole

    context = Context([1], 9, {}, Sampling(), SeededChance(0))
    cut = Paced(Inner(), FixedPace(2), one_pass=True).propose(context)
    assert cut == Proposal(DraftTree([5, 6], [-1, 0, 0]), expected=1.5, limit=2)


def test_a_tree_stops_where_a_node_more_does_not_pay(
    tiny_engine: MakeEngine, drafters: dict[str, Path]
) -> None:
    """Dear nodes make small trees, free ones take the whole budget."""
    engine = tiny_engine("dense", "float64")
    drafter = load_dflash(drafters["dense"], engine.target)
    sizes = []
    for node_s in (0.0, 0.5):
        costs = StepCosts((0.0, *[0.1] * 16), tuple(1 + node_s * n for n in range(17)))
        proposer = DflashProposer(drafter, budget=16, pace=TreePace(costs, 16))
        read = engine.target.prefill(engine.target.new_session(), prompt_of(1, 7), capture=proposer.captures)
        context = Context([*prompt_of(1, 7), 3], 9, read.hidden, Sampling(), SeededChance(0))
        sizes.append(proposer.propose(context).tree.num_draft_tokens)
    assert sizes[0] == 16
    assert sizes[1] < 4


def test_match_draws_no_chain_and_writes_the_text_of_plain_decoding(
    tiny_engine: MakeEngine, drafters: dict[str, Path]
) -> None:
    """--verify match: one seed, one text, drafted or not; block and rejection carry what was drawn."""
    engine = tiny_engine("dense", "float64")
    drafter = load_dflash(drafters["dense"], engine.target)
    sampling = Sampling(temperature=0.9, seed=4)
    alone = run(engine, prompt_of(3, 8), 40, sampling=sampling)
    for rule in Rule:
        proposals: list[Proposal] = []

        def look(_: Context, proposal: Proposal, kept: list[Proposal] = proposals) -> None:
            kept.append(proposal)

        start = lambda look=look: Watched(DflashProposer(drafter), look)  # noqa: E731 - one line, one name
        drafted = run(replace(engine, rule=rule), prompt_of(3, 8), 40, start, sampling)
        assert all((p.draft_probs is not None) == rule.draws for p in proposals if p.tree.num_draft_tokens)
        if rule is Rule.MATCH:
            assert drafted.token_ids == alone.token_ids


def test_the_acceptance_of_every_position_is_the_overlap(
    tiny_engine: MakeEngine, drafters: dict[str, Path]
) -> None:
    """Standard rejection keeps position i of those that reach it as often as the sum of min(p, q) says.

    About 300 steps; each position's deviation is within five standard deviations of its own chances: a false
    alarm in fewer than one of 300,000 choices of the seed.
    """
    engine = replace(tiny_engine("dense", "float64"), rule=Rule.REJECTION)
    drafter = load_dflash(drafters["dense"], engine.target)
    sampling = Sampling(temperature=1.2, top_k=30, seed=11)
    chances: dict[int, list[float]] = {}
    kept: Counter[int] = Counter()
    last: list[tuple[int, Proposal, list[int]]] = []

    def look(context: Context, proposal: Proposal) -> None:
        if last:
            at, before, tokens = last.pop()
            accepted = len(context.tokens) - at - 1
            for position, overlap in enumerate(overlaps(engine, tokens, before, sampling)[: accepted + 1]):
                chances.setdefault(position, []).append(overlap)
                kept[position] += position < accepted
        if proposal.tree.num_draft_tokens:
            last.append((len(context.tokens), proposal, list(context.tokens)))

    start = lambda: Watched(DflashProposer(drafter, num_draft_tokens=3), look)  # noqa: E731 - one line
    for seed in range(4):
        last.clear()
        run(engine, prompt_of(seed, 12), 80, start, replace(sampling, seed=seed))
    assert len(chances[0]) > 150
    for position, mine in chances.items():
        spread = sum(p * (1 - p) for p in mine) ** 0.5
        assert abs(kept[position] - sum(mine)) <= 5 * spread + 1e-9


def overlaps(engine: Engine, tokens: list[int], proposal: Proposal, sampling: Sampling) -> list[float]:
    """The sum of min(p, q) at every position of a drawn chain."""
    assert proposal.draft_probs is not None
    session = engine.target.new_session()
    engine.target.prefill(session, tokens[:-1])
    rows = distribution(engine.target.verify(session, tokens[-1], proposal.tree).logits[:-1], sampling)
    return [float(overlap) for overlap in torch.minimum(rows, proposal.draft_probs).sum(-1)]
