"""Drawn drafts of real drafters on tiny targets: what a step emits has the target's own law.

DFlash, DDTree, EAGLE-3 with a reduced vocabulary and a three-layered MTP head, each of two seeds, none ever
trained: drafters as random as any, right about half the time because there are six tokens in all. What they
draft after every text is computed once, by the proposer in use; steps are then judged again and again.

First exactly, every branch of a step with its probability, in 64-bit floats. Then by 100,800 draws: texts of
three tokens over one to three steps, chi-square tests of tokens, pairs and triples, corrected after Holm,
an eighth of 1e-6 for each of the eight runs; and acceptance at each position within six standard deviations,
two in a thousand million each. By chance alone this file fails once in a million choices of seeds; with those
below never.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import pytest
import torch
from torch import Tensor

from dflash_drafters import native_config, tensors_of, write_drafter
from draftproof.engine.judge import judge
from draftproof.engine.proof.tiny import TINY, write_tiny_target
from draftproof.engine.proposers.dflash import DflashProposer
from draftproof.engine.proposers.eagle3 import Eagle3Proposer
from draftproof.engine.proposers.mtp import MtpProposer
from draftproof.engine.proposers.propose import Context, Proposal, StartProposer
from draftproof.models.decoder import Decoder
from draftproof.models.dflash.load import load_dflash
from draftproof.models.eagle3.load import load_eagle3
from draftproof.models.mtp.load import load_mtp
from draftproof.models.target.load import load_decoder
from draftproof.speculation.accept import Acceptance
from draftproof.speculation.chance import Chance, Purpose, SeededChance, outcomes
from draftproof.speculation.proof import Law, total_variation
from draftproof.speculation.rules import Rule
from draftproof.speculation.sampling import History, Sampling, distribution
from draftproof.speculation.tree import DraftTree
from laws import holm_rejects, marginal, p_value
from tiny_eagle3 import write_tiny_eagle3
from tiny_mtp import write_tiny_mtp

pytestmark = [pytest.mark.engine, pytest.mark.slow]

VOCAB, LENGTH = 6, 3
PROMPT = (1, 4, 2, 2, 5)
SAMPLING = Sampling(temperature=0.8, top_k=5)
"""One token of six is never drawn, by the target one and by a drafter another."""

NUM_TEXTS = 4_200
"""Of each method and drafter."""

FALSE_ALARM = 1e-6
SIGMAS = 6
METHODS = ("dflash", "ddtree", "eagle3", "mtp")
SEEDS = (0, 1)
NUM_RUNS = len(METHODS) * len(SEEDS)
PLACES = ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2))
Text = tuple[int, ...]


@dataclass
class Pair:
    """A target and a drafter after every continuation of the prompt, each computed once."""

    target: Decoder
    start: StartProposer
    _logits: dict[Text, Tensor] = field(default_factory=dict)
    _drafts: dict[Text, dict[Text, Tensor] | DraftTree] = field(default_factory=dict)
    _rows: dict[tuple[Text, DraftTree], Tensor] = field(default_factory=dict)

    def logits(self, text: Text) -> Tensor:
        """[V] of the target after the prompt and these tokens."""
        if text not in self._logits:
            session = self.target.new_session()
            self._logits[text] = self.target.prefill(session, (*PROMPT, *text)).logits[-1]
        return self._logits[text]

    def probs(self, text: Text) -> Tensor:
        """[V] that the next token is drawn from."""
        return distribution(self.logits(text), SAMPLING)

    def rows(self, text: Text, tree: DraftTree) -> Tensor:
        """[N + 1, V] after each node."""
        if (text, tree) not in self._rows:
            paths = [tree.path(node)[1:] for node in range(tree.num_draft_tokens + 1)]
            found = [self.logits((*text, *map(tree.token, path))) for path in paths]
            self._rows[text, tree] = torch.stack(found)
        return self._rows[text, tree]

    def drafts(self, text: Text) -> dict[Text, Tensor] | DraftTree:
        """A tree, or what each token of a chain is drawn from after those drafted before it."""
        if text not in self._drafts:
            self._drafts[text] = self._asked((*PROMPT, *text), LENGTH - len(text) - 1)
        return self._drafts[text]

    def _asked(self, tokens: Text, depth: int) -> dict[Text, Tensor] | DraftTree:
        """Every draft that the proposer in use can make here."""
        fresh = self.start()
        session = self.target.new_session()
        read = self.target.prefill(
            session, tokens[:-1], capture=fresh.captures, with_normed=fresh.with_normed
        )

        def drafted(chance: Chance) -> Proposal:
            context = Context(tokens, depth, read.hidden, SAMPLING, chance, read.normed)
            return self.start().propose(context)

        drawn_from: dict[Text, Tensor] = {}
        for proposal, _ in outcomes(drafted):
            if proposal.draft_probs is None:
                return proposal.tree
            path = tuple(proposal.tree.tokens.tolist())
            drawn_from |= {path[:i]: q for i, q in enumerate(proposal.draft_probs)}
        return drawn_from

    def propose(self, text: Text, chance: Chance) -> Proposal:
        """One of them."""
        known = self.drafts(text)
        if isinstance(known, DraftTree):
            return Proposal(known)
        path: Text = ()
        if not known:
            return Proposal(DraftTree.empty())
        while len(text) + len(path) < LENGTH - 1:
            path += (chance.draw(known[path], len(PROMPT) + len(text) + len(path), Purpose.DRAFT),)
        return Proposal(DraftTree.chain(path), torch.stack([known[path[:i]] for i in range(len(path))]))

    def step(self, text: Text, chance: Chance, rule: Rule) -> Acceptance:
        """One step as the engine decides it."""
        proposal = self.propose(text, chance)
        tokens = (*PROMPT, *text)
        context = Context(tokens, LENGTH - len(text) - 1, {}, SAMPLING, chance, rule=rule)
        return judge(proposal, self.rows(text, proposal.tree), context=context, history=History([*tokens]))

    def law(self) -> Law:
        """What the target writes alone."""
        return {text: self.chance_of(text) for text in product(range(VOCAB), repeat=LENGTH)}

    def chance_of(self, text: Text, *, since: int = 0) -> float:
        """Of the tokens behind the first ``since``."""
        return math.prod(float(self.probs(text[:i])[text[i]]) for i in range(since, len(text)))

    def kept(self, num_kept: int, path: Text = ()) -> float:
        """The chance that so many tokens are kept after ``path``: the sum of min(p, q), place by place.

        Of a tree that is what the target gives to the children.
        """
        if num_kept == 0:
            return 1.0
        p, known = self.probs(path), self.drafts(())
        if isinstance(known, DraftTree):
            node = node_at(known, path)
            return sum(float(p[x]) * self.kept(num_kept - 1, (*path, x)) for x in known.children[node])
        least = torch.minimum(p, known[path])
        both = least.nonzero().flatten().tolist()
        return sum(float(least[x]) * self.kept(num_kept - 1, (*path, x)) for x in both)


def node_at(tree: DraftTree, path: Text) -> int:
    """The node where these tokens lead."""
    node = 0
    for token in path:
        node = tree.children[node][token]
    return node


Pairs = dict[tuple[str, int], Pair]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """Every method with two drafters, in float64."""
    folder = tmp_path_factory.mktemp("laws")
    for kind in ("dense", "hybrid"):
        write_tiny_target(folder / kind, kind, config={**TINY[kind], "vocab_size": VOCAB})
    hybrid, dense = (load_decoder(folder / kind, dtype=torch.float64) for kind in ("hybrid", "dense"))
    config = native_config(hybrid.num_layers, vocab_size=VOCAB, dflash_config={"mask_token_id": VOCAB - 1})
    found: Pairs = {}
    for seed in SEEDS:
        here = folder / str(seed)
        block = load_dflash(write_drafter(here / "dflash", config, tensors_of(config, seed=seed)), hybrid)
        found["dflash", seed] = Pair(hybrid, partial(DflashProposer, block))
        found["ddtree", seed] = Pair(hybrid, partial(DflashProposer, block, budget=5))
        few = {"vocab_size": VOCAB, "draft_vocab_size": VOCAB - 2}
        write_tiny_eagle3(here / "eagle3", "speculators", seed=seed, changes=few)
        eagle = load_eagle3(here / "eagle3", dense)
        found["eagle3", seed] = Pair(dense, partial(Eagle3Proposer, eagle))
        write_tiny_mtp(here / "mtp", "three layers", seed=seed, changes={"vocab_size": VOCAB})
        own = load_decoder(here / "mtp", dtype=torch.float64)
        found["mtp", seed] = Pair(own, partial(MtpProposer, load_mtp(here / "mtp", own)))
    return found


def rules(method: str) -> tuple[Rule, ...]:
    """Those that judge the method's drafts; a tree is matched whatever is asked for."""
    return (Rule.BLOCK,) if method == "ddtree" else (Rule.BLOCK, Rule.REJECTION)


CASES = [(method, seed, rule) for method in METHODS for seed in SEEDS for rule in rules(method)]


@pytest.mark.parametrize(("method", "seed", "rule"), CASES)
def test_every_branch_of_a_step_adds_up_to_the_target_s_law(
    method: str, seed: int, rule: Rule, pairs: Pairs
) -> None:
    """Exact: total variation below 1e-12, and each position kept as often as min(p, q) says."""
    pair = pairs[method, seed]
    law: Law = dict.fromkeys(product(range(VOCAB), repeat=LENGTH), 0.0)
    kept = [0.0] * (LENGTH - 1)
    for acceptance, probability in outcomes(lambda chance: pair.step((), chance, rule)):
        emitted = acceptance.tokens
        for rest in product(range(VOCAB), repeat=LENGTH - len(emitted)):
            text = (*emitted, *rest)
            law[text] += probability * pair.chance_of(text, since=len(emitted))
        kept[: acceptance.num_accepted] = [k + probability for k in kept[: acceptance.num_accepted]]
    assert total_variation(law, pair.law()) < 1e-12
    if method == "ddtree" or rule is Rule.REJECTION:
        assert kept == pytest.approx([pair.kept(1), pair.kept(2)], abs=1e-12)
    else:  # a block is judged as a whole: no fewer tokens in all
        assert sum(kept) >= pair.kept(1) + pair.kept(2) - 1e-12
    assert 0.01 < kept[1] < kept[0] < 0.99


def test_control_a_drafter_that_hides_what_it_drew_from_is_caught(pairs: Pairs) -> None:
    """The same sum is another law where the drafts of one DFlash drafter are scored as the other's."""
    pair, other = pairs["dflash", 0], pairs["dflash", 1]

    def wrong(chance: Chance) -> Acceptance:
        drawn, scored = pair.propose((), chance), other.drafts(())
        assert isinstance(scored, dict)
        path = tuple(drawn.tree.tokens.tolist())
        probs = torch.stack([scored[path[:i]] for i in range(len(path))])
        context = Context(PROMPT, LENGTH - 1, {}, SAMPLING, chance, rule=Rule.REJECTION)
        rows = pair.rows((), drawn.tree)
        return judge(Proposal(drawn.tree, probs), rows, context=context, history=History([*PROMPT]))

    first = [0.0] * VOCAB
    for acceptance, probability in outcomes(wrong):
        first[acceptance.tokens[0]] += probability
    assert max(abs(a - float(b)) for a, b in zip(first, pair.probs(()), strict=True)) > 1e-3


def texts(pair: Pair, rule: Rule, seeds: range) -> Iterator[tuple[Text, int]]:
    """Whole texts, and how many drafted tokens each one's first step kept."""
    for seed in seeds:
        chance, kept, text = SeededChance(seed), -1, Text()
        while len(text) < LENGTH:
            acceptance = pair.step(text, chance.of_step(len(PROMPT) + len(text)), rule)
            text += acceptance.tokens
            kept = acceptance.num_accepted if kept < 0 else kept
        yield text, kept


@pytest.mark.parametrize(("method", "seed"), list(product(METHODS, SEEDS)))
def test_drawn_texts_have_the_target_s_law_whoever_drafts(method: str, seed: int, pairs: Pairs) -> None:
    """One drafter's blocks are judged as a whole, the other's tokens one by one; trees are matched."""
    pair, rule = pairs[method, seed], rules(method)[seed % len(rules(method))]
    counts: Counter[Text] = Counter()
    kept: Counter[int] = Counter()
    first = (METHODS.index(method) * len(SEEDS) + seed) * NUM_TEXTS
    for text, num_kept in texts(pair, rule, range(first, first + NUM_TEXTS)):
        counts[text] += 1
        kept.update(range(num_kept))
    law = pair.law()
    found = [p_value(marginal(counts, *places), marginal(law, *places)) for places in PLACES]
    assert not holm_rejects(found, FALSE_ALARM / NUM_RUNS), found
    if method == "ddtree" or rule is Rule.REJECTION:
        for position in range(LENGTH - 1):
            share = pair.kept(position + 1)
            spread = math.sqrt(NUM_TEXTS * share * (1 - share))
            assert abs(kept[position] - NUM_TEXTS * share) < SIGMAS * spread


def test_the_drafters_are_right_about_different_things(pairs: Pairs) -> None:
    """Two seeds are two drafters: the first token is kept with another probability."""
    for method in METHODS:
        assert abs(pairs[method, 0].kept(1) - pairs[method, 1].kept(1)) > 0.003
