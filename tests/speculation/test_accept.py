"""speculation.accept: every rule emits the target's own law, computed exactly; the controls do not.

The laws here are sums over all branches of the rules themselves, not samples: nothing can pass by luck.
"""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.errors import RefusedInput, UsageError
from draftproof.speculation import ddtree, trials
from draftproof.speculation.accept import (
    Acceptance,
    accept_block,
    accept_greedy,
    accept_matching,
    accept_rejection,
)
from draftproof.speculation.chance import Chance, Purpose, SeededChance, outcomes
from draftproof.speculation.proof import (
    ToyModel,
    draw_chain,
    emitted_law,
    expected_accepted,
    total_variation,
)
from draftproof.speculation.tree import DraftTree

pytestmark = pytest.mark.engine

LENGTH = 3
EXACT = 1e-12  # float64 sums of at most 256 products of 4 factors
TARGET = ToyModel(seed=1, vocab_size=4, sharpness=1.0)
BLOCK_DRAFTER = ToyModel(seed=2, vocab_size=4, sharpness=1.0, sees_prefix=False)
CHAIN_DRAFTER = ToyModel(seed=3, vocab_size=4, sharpness=1.0)
SHARP_DRAFTER = ToyModel(seed=4, vocab_size=4, sharpness=4.0)

Rule = Callable[[Chance], Acceptance]


def rejection(draft: ToyModel, target: ToyModel = TARGET) -> Rule:
    """A step of drawing a chain and judging its tokens one by one."""

    def rule(chance: Chance) -> Acceptance:
        tree, probs = draw_chain(draft, LENGTH, chance)
        return accept_rejection(tree, probs, target.rows(tree), chance=chance, position=0)

    return rule


def block(draft: ToyModel, target: ToyModel = TARGET) -> Rule:
    """A step of drawing a chain and judging it as a whole."""

    def rule(chance: Chance) -> Acceptance:
        tree, probs = draw_chain(draft, LENGTH, chance)
        return accept_block(tree, probs, target.rows(tree), chance=chance, position=0)

    return rule


def matching(tree: DraftTree, target: ToyModel = TARGET) -> Rule:
    """A step on a fixed tree."""
    return lambda chance: accept_matching(tree, target.rows(tree), chance=chance, position=0)


def greedy_chain(draft: ToyModel) -> DraftTree:
    """The drafter's arg-max chain."""
    tokens: list[int] = []
    for _ in range(LENGTH):
        tokens.append(int(draft.logits(tuple(tokens)).argmax()))
    return DraftTree.chain(tokens)


def one_hot(tree: DraftTree) -> torch.Tensor:
    """[K, 4], certainty of each token of a chain."""
    return torch.nn.functional.one_hot(tree.tokens, 4).double()


def marginals(draft: ToyModel) -> torch.Tensor:
    """[LENGTH, 4], the logits of a drafter that does not see the prefix."""
    return torch.stack([draft.logits((0,) * depth) for depth in range(LENGTH)])


def distance(rule: Rule, target: ToyModel = TARGET) -> float:
    """Total variation between what the rule emits and what the target writes alone, over 4 tokens."""
    return total_variation(emitted_law(rule, target, LENGTH + 1), target.law(LENGTH + 1))


@pytest.mark.parametrize("draft", [BLOCK_DRAFTER, CHAIN_DRAFTER, SHARP_DRAFTER, TARGET])
@pytest.mark.parametrize("rule", [rejection, block])
def test_drawn_chains_leave_the_targets_law(rule: Callable[[ToyModel], Rule], draft: ToyModel) -> None:
    """Both rules are exact for drafters that see the prefix, that do not, and that are the target."""
    assert distance(rule(draft)) < EXACT


@pytest.mark.parametrize("budget", [0, 1, 3, 6, 12, 24])
def test_matching_on_a_ddtree_leaves_the_targets_law(budget: int) -> None:
    """Sample-and-match is exact on a best-first tree of any size, the root alone included."""
    assert distance(matching(ddtree.build(marginals(BLOCK_DRAFTER), budget))) < EXACT


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0.1, 6.0))
def test_rejection_and_block_are_exact_for_any_pair(seed: int, other: int, sharpness: float) -> None:
    """Whatever target and drafter, two drafted tokens leave the target's law, and block keeps no fewer."""
    target = ToyModel(seed=seed, vocab_size=3, sharpness=2.0)
    draft = ToyModel(seed=other, vocab_size=3, sharpness=sharpness)
    kept = []
    for verify in (accept_rejection, accept_block):

        def rule(chance: Chance, verify: Callable[..., Acceptance] = verify) -> Acceptance:
            tree, probs = draw_chain(draft, 2, chance)
            return verify(tree, probs, target.rows(tree), chance=chance, position=0)

        assert total_variation(emitted_law(rule, target, 3), target.law(3)) < EXACT
        kept.append(expected_accepted(rule))
    assert kept[1] >= kept[0] - EXACT


def text_of(verify: Callable[..., Acceptance], *, own_draws: bool = True) -> Callable[[Chance], Acceptance]:
    """Steps of two drafted tokens each until four are written; the acceptance holds the whole text."""
    target = ToyModel(seed=5, vocab_size=2, sharpness=1.5)
    draft = ToyModel(seed=7, vocab_size=2, sharpness=1.5)

    def rule(chance: Chance) -> Acceptance:
        text: tuple[int, ...] = ()
        while len(text) < LENGTH + 1:
            written, step = text, chance.of_step(len(text)) if own_draws else chance
            drafted: tuple[int, ...] = ()
            rows = []
            for position in range(len(written), len(written) + 2):
                rows.append(draft.probs(written + drafted))
                drafted += (step.draw(rows[-1], position, Purpose.DRAFT),)
            tree = DraftTree.chain(drafted)
            found = verify(
                tree,
                torch.stack(rows),
                lambda node, start=written, guesses=drafted: target.probs(start + guesses[:node]),
                chance=step,
                position=len(written),
            )
            text += found.tokens
        return Acceptance((0,), text)

    return rule


@pytest.mark.parametrize("verify", [accept_rejection, accept_block])
def test_whole_texts_of_many_steps_have_the_targets_law(verify: Callable[..., Acceptance]) -> None:
    """Four tokens in up to four steps: no number is used twice, and the joint law is the target's."""
    assert distance(text_of(verify), ToyModel(seed=5, vocab_size=2, sharpness=1.5)) < EXACT


def test_control_a_number_that_a_later_step_draws_again_is_caught() -> None:
    """With draws by position alone, block verification would judge by numbers that come back."""
    with pytest.raises(RuntimeError, match="used twice"):
        outcomes(text_of(accept_block, own_draws=False))


def test_a_steps_own_draws_leave_target_tokens_as_they_are() -> None:
    """Drafted or not, one seed draws one text: only a step's other draws are its own."""
    one, other = SeededChance(3).of_step(5), SeededChance(3).of_step(6)
    assert one.uniform(9, Purpose.TARGET) == other.uniform(9, Purpose.TARGET)
    for purpose in (Purpose.DRAFT, Purpose.KEEP, Purpose.RESIDUAL):
        assert one.uniform(9, purpose) != other.uniform(9, purpose)


def test_point_masses_make_rejection_matching() -> None:
    """A chain scored as certain is accepted like a tree: the same law and acceptance, also in block."""
    chain = greedy_chain(CHAIN_DRAFTER)
    rows = TARGET.rows(chain)
    rules: list[Rule] = [
        matching(chain),
        lambda chance: accept_rejection(chain, one_hot(chain), rows, chance=chance, position=0),
        lambda chance: accept_block(chain, one_hot(chain), rows, chance=chance, position=0),
    ]
    for rule in rules:
        assert distance(rule) < EXACT
        assert expected_accepted(rule) == pytest.approx(expected_accepted(rules[0]), abs=EXACT)


def test_expected_acceptance_of_the_first_token_is_the_overlap() -> None:
    """The chance of keeping the first drafted token is the sum of min(p, q)."""
    first = sum(p for a, p in outcomes(rejection(BLOCK_DRAFTER)) if a.num_accepted > 0)
    overlap = torch.minimum(TARGET.probs(()), BLOCK_DRAFTER.probs(())).sum()
    assert first == pytest.approx(float(overlap), abs=EXACT)


def test_matching_leaves_a_node_by_the_mass_outside_its_children() -> None:
    """The chance of accepting at the root is the target's mass on its children."""
    tree = DraftTree([0, 2, 1], [-1, 0, 0, 1])
    first = sum(p for a, p in outcomes(matching(tree)) if a.num_accepted > 0)
    assert first == pytest.approx(float(TARGET.probs(())[[0, 2]].sum()), abs=EXACT)


@pytest.mark.parametrize("name", trials.EXACT)
def test_rules_on_trial_leave_the_targets_law(name: str) -> None:
    """What the self-test proves of each lossless rule holds."""
    assert trials.distance(trials.EXACT[name]) < EXACT


@pytest.mark.parametrize("name", trials.FAULTY)
def test_controls_are_caught(name: str) -> None:
    """A greedy draft scored as drawn, one at another temperature, and typical acceptance change the law."""
    assert trials.distance(trials.FAULTY[name]) > 0.05


def test_residual_of_equal_distributions_is_the_target() -> None:
    """Where p and q are equal the draft is kept whole: no residual of mass 0 is ever normalised."""
    tree = DraftTree.chain([1, 2])
    same = torch.tensor([[0.25, 0.5, 0.25]] * 3, dtype=torch.float64)
    for rule in (accept_rejection, accept_block):
        kept = [
            a.num_accepted
            for a, _ in outcomes(
                lambda c, rule=rule: rule(tree, same[:2], same.__getitem__, chance=c, position=0)  # type: ignore[misc]
            )
        ]
        assert kept == [2, 2, 2]


@pytest.mark.parametrize("rule", [accept_rejection, accept_block])
def test_a_token_impossible_for_the_target_is_never_kept(rule: Callable[..., Acceptance]) -> None:
    """p(x) = 0 refuses whatever chance says, also where q(x) underflowed to 0."""
    tree = DraftTree.chain([0])
    p = torch.tensor([0.0, 1.0], dtype=torch.float64)
    for q in ([1.0, 0.0], [0.0, 1.0]):
        for seed in range(50):
            kept = rule(tree, torch.tensor([q]).double(), lambda _: p, chance=SeededChance(seed), position=0)
            assert kept.tokens == (1,)


def test_greedy_follows_the_largest_logits() -> None:
    """The accepted path is the target's arg-max chain for as long as it was drafted."""
    tree = DraftTree([1, 2, 0], [-1, 0, 0, 2])
    logits = torch.eye(4)[[2, 3, 0, 3]]
    found = accept_greedy(tree, logits)
    assert found == Acceptance((0, 2, 3), (2, 0, 3))
    assert (found.num_accepted, found.length, found.bonus_token) == (2, 3, 3)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_greedy_refuses_logits_that_are_no_numbers(bad: float) -> None:
    """NaN or infinity in a row that is met is an error and not a token."""
    logits = torch.zeros(2, 4)
    logits[1, 2] = bad
    assert accept_greedy(DraftTree.chain([3]), logits).tokens == (0,)
    with pytest.raises(RefusedInput):
        accept_greedy(DraftTree.chain([0]), logits)


def test_same_seed_writes_the_same_text_whatever_was_drafted() -> None:
    """Matching draws by position, so a draft changes how many steps a text takes and not the text."""

    def text(draft: ToyModel | None) -> list[int]:
        tokens: list[int] = []
        while len(tokens) < 12:
            prefix = tuple(tokens)
            tree = (
                DraftTree.empty()
                if draft is None
                else DraftTree.chain(draw_chain(draft, 2, chance)[0].tokens)
            )

            def rows(node: int, tree: DraftTree = tree, prefix: tuple[int, ...] = prefix) -> torch.Tensor:
                return TARGET.probs(prefix + tuple(tree.token(n) for n in tree.path(node)[1:]))

            tokens += accept_matching(tree, rows, chance=chance, position=len(tokens)).tokens
        return tokens[:12]

    for seed in range(20):
        chance = SeededChance(seed)
        assert text(None) == text(CHAIN_DRAFTER) == text(BLOCK_DRAFTER)


def test_rules_for_drawn_chains_refuse_what_they_cannot_judge() -> None:
    """A branch, or a token without its distribution, is an error and not a guess."""
    fork = DraftTree([0, 1], [-1, 0, 0])
    for rule in (accept_rejection, accept_block):
        for tree, rows in ((fork, 2), (DraftTree.chain([0, 1]), 1)):
            probs = torch.full((rows, 4), 0.25)
            with pytest.raises(RefusedInput):
                rule(tree, probs, TARGET.rows(tree), chance=SeededChance(0), position=0)


def test_uniform_numbers_are_uniform_and_independent_of_purpose() -> None:
    """Means and lag products of 20,000 numbers are within 5 standard errors; false alarm below 1e-5."""
    chance = SeededChance(-7)
    draws = {p: [chance.uniform(i, p) for i in range(20_000)] for p in Purpose}
    for values in draws.values():
        assert abs(sum(values) / 20_000 - 1 / 2) < 5 * (1 / 12 / 20_000) ** 0.5
    for left, right in ((Purpose.TARGET, Purpose.KEEP), (Purpose.DRAFT, Purpose.TARGET)):
        products = [(a - 0.5) * (b - 0.5) for a, b in zip(draws[left], draws[right], strict=True)]
        assert abs(sum(products) / 20_000) < 5 / 12 / 20_000**0.5


def test_draw_takes_the_index_whose_share_holds_the_number() -> None:
    """Frequencies of 4,000 draws match the weights within 5 standard errors; weight 0 is never drawn."""
    weights = torch.tensor([0.0, 3.0, 0.0, 1.0, 0.0])
    counts = [0] * 5
    for position in range(4_000):
        counts[SeededChance(5).draw(weights, position, Purpose.TARGET)] += 1
    assert counts[0] == counts[2] == counts[4] == 0
    assert abs(counts[1] / 4_000 - 0.75) < 5 * (0.75 * 0.25 / 4_000) ** 0.5


@pytest.mark.parametrize("weights", [[0.0, 0.0], [float("nan"), 1.0], [-1.0, 2.0], [float("inf"), 1.0]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    """All zero, NaN, negative or infinite weights give no draw."""
    with pytest.raises(RefusedInput):
        SeededChance(0).draw(torch.tensor(weights), 0, Purpose.TARGET)


def test_a_seed_of_more_than_64_bits_is_refused() -> None:
    """A seed is never cut short."""
    SeededChance(2**64 - 1)
    SeededChance(-(2**63))
    with pytest.raises(UsageError):
        SeededChance(2**64)


def test_outcomes_are_all_branches_with_their_probabilities() -> None:
    """Two decisions give four outcomes whose probabilities multiply; an impossible one is not listed."""

    def rule(chance: Chance) -> tuple[bool, int]:
        return chance.happens(0.25, 0, Purpose.KEEP), chance.draw(
            torch.tensor([1.0, 0.0, 3.0]), 0, Purpose.DRAFT
        )

    found = dict(outcomes(rule))
    assert found == {(False, 0): 0.1875, (False, 2): 0.5625, (True, 0): 0.0625, (True, 2): 0.1875}
