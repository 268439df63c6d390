"""What the parts of a drafted step cost beside a plain step of the same target, on a shipped pair.

    python bench/draft_speed.py [--target hybrid|dense] [--context 128] [--rounds 40]

One thread. The parts take turns; of each the least and the median CPU time over rounds are printed, so that
other work on the machine counts for little. A block drafter speeds decoding up by tau over the ratio printed
last, which is held against the goals: a whole block in 2 plain steps (speedup of half tau), a tree of 32
nodes in 2.5 (0.4 tau). Exit 1 if one is missed.
"""

import argparse
import sys
import time
from collections.abc import Callable
from statistics import median

import torch

from draftproof.engine.bench.shipped import SHIPPED, shipped_pair
from draftproof.engine.engine import Engine
from draftproof.models.dflash.load import load_dflash
from draftproof.speculation.ddtree import build
from draftproof.speculation.tree import DraftTree

BUDGET, GOAL_CHAIN, GOAL_TREE = 32, 2.0, 2.5
KEPT = 3
"""Drafted tokens that a step keeps: their rows are what the next draft takes in."""

Parts = dict[str, Callable[[], object]]


def parts(name: str, context: int) -> Parts:
    """Every part as a call that leaves the memory as it was."""
    folder, drafters = shipped_pair(name)
    target = Engine.load(folder, with_text=False).target
    drafter = load_dflash(next(each for each in drafters if "dflash" in each.name), target)
    taps, count = drafter.shape.taps, drafter.shape.num_draft_tokens
    generator = torch.Generator().manual_seed(0)
    prompt = torch.randint(0, target.shape.vocab_size, (context,), generator=generator).tolist()
    session, memory = target.new_session(room=2 * context), drafter.new_memory()
    read = target.prefill(session, prompt, capture=taps)
    rows = torch.cat([read.hidden[tap] for tap in taps], -1)
    drafter.draft(memory, rows, prompt[0], count)
    logits = 3 * torch.randn(count, target.shape.vocab_size, generator=generator)
    chain, tree = DraftTree.chain(logits.argmax(-1)), build(logits, BUDGET)
    before = session.snapshot()
    starts = [(store.start, store.count) for store in memory.stores]

    def verify(drafted: DraftTree) -> None:
        target.verify(session, prompt[0], drafted, capture=taps)
        session.rollback()

    def commit(drafted: DraftTree) -> float:
        target.verify(session, prompt[0], drafted, capture=taps)
        begun = time.thread_time()
        session.commit(drafted.path(min(KEPT, drafted.num_draft_tokens)))
        spent = time.thread_time() - begun
        session.restore(before)
        return spent

    def draft() -> None:
        drafter.draft(memory, rows[: KEPT + 1], prompt[0], count)
        memory.length -= KEPT + 1
        for store, (start, kept) in zip(memory.stores, starts, strict=True):
            store.start, store.count = start, kept

    return {
        "plain": lambda: verify(DraftTree.empty()),
        "plain commit": lambda: commit(DraftTree.empty()),
        "draft": draft,
        "verify a block": lambda: verify(chain),
        "commit of a block": lambda: commit(chain),
        f"build {BUDGET} nodes": lambda: build(logits, BUDGET),
        f"verify {BUDGET} nodes": lambda: verify(tree),
        f"commit of {BUDGET} nodes": lambda: commit(tree),
    }


def timed(found: Parts, rounds: int) -> dict[str, list[float]]:
    """CPU seconds of every part in every round; a part that times itself says them."""
    times: dict[str, list[float]] = {name: [] for name in found}
    for number in range(rounds + 3):
        for name, call in found.items():
            begun = time.thread_time()
            said = call()
            spent = time.thread_time() - begun
            if number >= 3:  # noqa: PLR2004 - the first rounds warm up
                times[name].append(said if isinstance(said, float) else spent)
    return times


def main() -> int:
    """Measure, print, hold against the goals."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", choices=SHIPPED, default="hybrid")
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    times = timed(parts(options.target, options.context), options.rounds)
    for name, values in times.items():
        print(f"{name}: {1e3 * min(values):.2f} ms, median {1e3 * median(values):.2f}")
    least = {name: min(values) for name, values in times.items()}
    plain, missed = least["plain"] + least["plain commit"], 0
    for what, names, goal in (
        ("block", ("draft", "verify a block", "commit of a block"), GOAL_CHAIN),
        (
            f"{BUDGET} nodes",
            ("draft", f"build {BUDGET} nodes", f"verify {BUDGET} nodes", f"commit of {BUDGET} nodes"),
            GOAL_TREE,
        ),
    ):
        ratio = sum(least[name] for name in names) / plain
        print(f"a step of a {what}: {ratio:.2f} plain steps, goal {goal:g}")
        missed += ratio > goal
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
