"""Losslessness, proved on what is installed here: rules, trees, memory and whole texts.

Each check measures one number and holds it against a bound with a reason. ``--sabotage`` breaks one thing on
purpose: a proof that cannot fail proves nothing.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from draftproof.cache.session import Session
from draftproof.engine.engine import Engine
from draftproof.engine.proof.adversary import Adversary, random_tree
from draftproof.engine.proof.tiny import TINY, write_tiny_target
from draftproof.engine.proof.tree_law import BlindTree, ColumnTree, Scene, memory_distance, node_distance
from draftproof.engine.proposers.propose import NgramProposer, StartProposer
from draftproof.engine.text.stopping import Stopping
from draftproof.errors import UsageError
from draftproof.speculation import trials
from draftproof.speculation.sampling import Sampling
from draftproof.speculation.tree import DraftTree

__all__ = ["SABOTAGES", "Check", "run_selftest"]

_LAW_BOUND = 1e-12
"""Total variation: float64 sums of 256 products of 4 factors."""

_TREE_BOUND = 1e-9
"""Logits and memory in float64 along paths of a dozen tokens; a wrong ancestor shows as 1e-2 and more."""

_NUM_TREES = 6
_NUM_TEXTS = 4
_NUM_TOKENS = 60

SABOTAGES: Mapping[str, str] = MappingProxyType(
    {
        "siblings-visible": "every node of a tree sees all nodes before it",
        "conv-over-columns": "the short convolution reads columns instead of ancestors",
        "state-at-wrong-node": "memory is committed at another node of the same depth",
        "greedy-scored-as-drawn": "an arg-max draft is judged as if drawn from its softmax",
        "other-temperature": "the draft is drawn at one temperature and judged at another",
        "typical-lossy": "tokens are kept for being likely",
    }
)
"""What can be broken, and how."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing measured."""

    name: str
    measured: float
    bound: float
    """Held if the measured number is no larger."""

    @property
    def holds(self) -> bool:
        """Whether it is as it must be; never for NaN."""
        return self.measured <= self.bound


def run_selftest(folder: Path, *, sabotage: str | None = None, device: str = "cpu") -> Iterator[Check]:
    """Every check, as soon as it is done.

    Args:
        folder: an empty place for two tiny checkpoints.
        sabotage: one of ``SABOTAGES``, to break on purpose.
        device: where the models run.

    Raises:
        UsageError: no such sabotage, or no such device.
    """
    if sabotage is not None and sabotage not in SABOTAGES:
        raise UsageError(
            "--sabotage",
            expected=" or ".join(SABOTAGES),
            found=repr(sabotage),
            where="command line",
            means="there is no such thing to break",
            next_step="draftproof selftest --help",
        )
    yield from _rules(sabotage)
    for kind in TINY:
        write_tiny_target(folder / kind, kind)
        engine = Engine.load(folder / kind, device=device, dtype="float64", with_text=False)
        yield from _trees(kind, engine, sabotage)
        yield from _texts(kind, engine)


def _rules(sabotage: str | None) -> Iterator[Check]:
    """The law of what each rule emits, summed over all its branches."""
    for name, trial in trials.EXACT.items():
        yield Check(f"rule {name}: total variation to the target's law", trials.distance(trial), _LAW_BOUND)
    if sabotage is not None and sabotage in trials.FAULTY:
        found = trials.distance(trials.FAULTY[sabotage])
        yield Check(f"rule {sabotage}: total variation to the target's law", found, _LAW_BOUND)


def _trees(kind: str, engine: Engine, sabotage: str | None) -> Iterator[Check]:
    """Nodes know their ancestors alone, and a committed path is what reading it would have left."""
    chance = random.Random(7)  # noqa: S311 - cases, not secrets
    vocab_size = engine.target.shape.vocab_size
    for number in range(_NUM_TREES):
        prompt = [chance.randrange(vocab_size) for _ in range(chance.choice((1, 5, 90)))]
        scene = Scene(engine.target, prompt)
        tree = _forked_tree(chance, vocab_size)
        name = f"{kind} tree {number}, {tree.num_draft_tokens} nodes after {len(prompt)} tokens"
        shown = _shown(tree, sabotage)
        yield Check(
            f"{name}: logits against paths alone", node_distance(scene, tree, shown=shown), _TREE_BOUND
        )
        node = next(n for n in range(1, tree.num_draft_tokens + 1) if _cousins(tree, n))
        commit = _commit_a_cousin if sabotage == "state-at-wrong-node" else None
        found = memory_distance(scene, tree, node, commit=commit)
        yield Check(f"{name}: memory against reading one by one", found, _TREE_BOUND)


def _forked_tree(chance: random.Random, vocab_size: int) -> DraftTree:
    """A random tree with at least two nodes of one depth."""
    while True:
        tree = random_tree(chance, max_nodes=24, vocab_size=vocab_size)
        if any(_cousins(tree, node) for node in range(1, tree.num_draft_tokens + 1)):
            return tree


def _cousins(tree: DraftTree, node: int) -> list[int]:
    """The other nodes of the same depth."""
    return [n for n in range(1, tree.num_draft_tokens + 1) if n != node and tree.depth(n) == tree.depth(node)]


def _commit_a_cousin(session: Session, tree: DraftTree, node: int) -> None:
    session.commit(tree.path(_cousins(tree, node)[0]))


def _shown(tree: DraftTree, sabotage: str | None) -> DraftTree | None:
    kinds: dict[str | None, Callable[..., DraftTree]] = {
        "siblings-visible": BlindTree,
        "conv-over-columns": ColumnTree,
    }
    return kinds[sabotage](tree.tokens, tree.parents) if sabotage in kinds else None


def _texts(kind: str, engine: Engine) -> Iterator[Check]:
    """Whole texts are the same tokens whatever is proposed, greedy and drawn."""
    chance = random.Random(11)  # noqa: S311 - cases, not secrets
    vocab_size = engine.target.shape.vocab_size
    for number in range(_NUM_TEXTS):
        prompt = [chance.randrange(vocab_size) for _ in range(12)]
        sampling = Sampling(temperature=0.9 * (number % 2), top_p=0.95, seed=number)
        alone = _text(engine, None, prompt, sampling)
        truth = [*prompt, *alone]
        starts: dict[str, StartProposer] = {
            "n-gram": NgramProposer,
            "half-true chain": lambda truth=truth, number=number: Adversary(  # type: ignore[misc]
                truth, vocab_size, number, branches=False
            ),
            "half-true tree": lambda truth=truth, number=number: Adversary(truth, vocab_size, number),  # type: ignore[misc]
        }
        for name, start in starts.items():
            differing = sum(
                a != b for a, b in zip(alone, _text(engine, start, prompt, sampling), strict=True)
            )
            drawn = "drawn" if sampling.temperature else "greedy"
            yield Check(f"{kind} {drawn} text {number} with {name}: tokens that differ", differing, 0)


def _text(
    engine: Engine, start: StartProposer | None, prompt: list[int], sampling: Sampling
) -> tuple[int, ...]:
    running = engine if start is None else Engine(engine.target, None, engine.endings, start)
    return running.generate(
        prompt, stopping=Stopping(_NUM_TOKENS, ignore_eos=True), sampling=sampling
    ).token_ids
