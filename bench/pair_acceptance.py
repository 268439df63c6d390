"""Acceptance on the shipped pair: every method with its interval, and what each fault of a DFlash file costs.

Greedy, on held-out prompts, drafts of a fixed size. tau is emitted tokens over steps, pooled; its interval is
a percentile bootstrap over prompts. A fault's interval is of the difference to the right drafter on the same
prompts, which are drawn together.

    python bench/pair_acceptance.py arms   [--target hybrid|dense] [--prompts 200] [--set procedural|real]
    python bench/pair_acceptance.py faults [--target hybrid|dense] [--prompts 100]
    python bench/pair_acceptance.py page

``arms`` and ``faults`` add their counts to ``docs/reference/pair.json``; ``page`` writes ``pair.md`` from it.
"""

import argparse
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from pair_page import Counts, interval, page, tau

from draftproof.engine.engine import Engine
from draftproof.engine.proposers.propose import Context, Proposal, Proposer
from draftproof.engine.text.stopping import Stopping

PAIR = Path(__file__).parents[1] / "src" / "draftproof" / "pair"
RESULTS = Path(__file__).parents[1] / "docs" / "reference" / "pair.json"
MAX_NEW = 96


@dataclass(frozen=True)
class Arm:
    """One way to draft."""

    name: str
    method: str
    drafter: str | None = None
    num_draft_tokens: int | None = None
    budget: int | None = None
    only: str | None = None


ARMS = (
    Arm("dflash", "dflash", "dflash", 15),
    Arm("ddtree, budget 32", "ddtree", "dflash", 15, 32),
    Arm("eagle3, K = 4", "eagle3", "eagle3", 4, only="hybrid"),
    Arm("mtp, K = 4", "mtp", None, 4, only="hybrid"),
    Arm("ngram, K = 15", "ngram", None, 15),
)

FAULTS: Mapping[str, Mapping[str, Any]] = {
    "mask token of another trained row": {"dflash_config/mask_token_id": lambda token: token - 2},
    "mask token of another untrained row": {"dflash_config/mask_token_id": lambda token: token - 1},
    "taps permuted": {"dflash_config/target_layer_ids": lambda ids: ids[::-1]},
    "layer ids off by -1": {"dflash_config/target_layer_ids": lambda ids: [max(i - 1, 0) for i in ids]},
    "layer ids off by +1": {"dflash_config/target_layer_ids": lambda ids: [i + 1 for i in ids]},
    "rope base times 100": {"rope_theta": lambda theta: theta * 100},
    "window dropped": {"sliding_window": lambda _: 4096},
    "sliding layers run full": {"layer_types": lambda kinds: ["full_attention"] * len(kinds)},
}
ZEROED = "context zeroed"


class Blind:
    """A proposer whose every row of the target is zero."""

    def __init__(self, inner: Proposer) -> None:
        """Stand before ``inner``."""
        self._inner = inner
        self.captures, self.with_normed = inner.captures, inner.with_normed

    def propose(self, context: Context) -> Proposal:
        """What it drafts without context."""
        zeroed = {index: torch.zeros_like(rows) for index, rows in context.captured.items()}
        return self._inner.propose(replace(context, captured=zeroed))

    def __getattr__(self, name: str) -> Any:
        """Everything else is the inner one's."""
        return getattr(self._inner, name)


def prompts_of(name: str, count: int) -> list[dict[str, Any]]:
    """The first held-out prompts of a set."""
    lines = (PAIR / "prompts" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[:count]]


def loaded(target: str, arm: Arm, drafter: Path | None = None) -> Engine:
    """An engine of the pair."""
    if drafter is None and arm.drafter is not None:
        drafter = PAIR / f"{target}-{arm.drafter}"
    return Engine.load(
        PAIR / target,
        drafter,
        method=arm.method,
        num_draft_tokens=arm.num_draft_tokens,
        budget=arm.budget,
    )


def decoded(engine: Engine, prompts: Sequence[Mapping[str, Any]]) -> tuple[Counts, list[tuple[int, ...]]]:
    """Counts and texts."""
    counts, texts = [], []
    if engine.text is None:
        raise RuntimeError("an engine without its tokenizer")
    for prompt in prompts:
        said = prompt["prompt"]
        chat = [{"role": "user", "content": said}]
        ids = engine.text.encode_chat(chat) if prompt["is_chat"] else engine.text.encode(said)
        generation = engine.generate(ids, stopping=Stopping(MAX_NEW))
        counts.append((len(generation.token_ids), len(generation.steps)))
        texts.append(generation.token_ids)
    return counts, texts


def faulty(folder: Path, drafter: Path, changes: Mapping[str, Any]) -> Path:
    """The drafter with some fields of its config changed."""
    made = folder / "faulty"
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(drafter, made)
    config = json.loads((made / "config.json").read_text())
    for path, change in changes.items():
        *outer, last = path.split("/")
        table = config
        for key in outer:
            table = table[key]
        table[last] = change(table[last])
    (made / "config.json").write_text(json.dumps(config))
    return made


def keep(section: str, found: Mapping[str, Any]) -> None:
    """Add results to the file."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    machine = f"{platform.machine()}, torch {torch.__version__}"
    stamp = datetime.now(UTC).strftime("%Y-%m-%d")
    kept[section] = {"date": stamp, "machine": machine, **found}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def run_arms(target: str, name: str, count: int, only: str | None) -> None:
    """Every method on one set."""
    prompts, texts, found = prompts_of(name, count), {}, {}
    for arm in ARMS:
        if (arm.only not in (None, target)) or (only is not None and only not in arm.name):
            continue
        counts, texts[arm.name] = decoded(loaded(target, arm), prompts)
        found[arm.name] = counts
        low, high = interval(counts)
        print(f"{target} {name} {arm.name}: tau {tau(counts):.2f} [{low:.2f}, {high:.2f}]", flush=True)
    first = next(iter(texts))
    for arm_name, said in texts.items():
        differing = sum(a != b for a, b in zip(texts[first], said, strict=True))
        print(f"{arm_name}: {differing} texts differ from {first}")
    if only is None:
        keep(f"arms/{target}/{name}", {"counts": found})


def run_faults(target: str, count: int) -> None:
    """Every fault on the procedural set."""
    prompts, arm = prompts_of("procedural", count), ARMS[0]
    right, texts = decoded(loaded(target, arm), prompts)
    found = {"right": right}
    print(f"right: tau {tau(right):.2f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, changes in {ZEROED: {}, **FAULTS}.items():
            drafter = faulty(Path(folder), PAIR / f"{target}-dflash", changes)
            engine = loaded(target, arm, drafter)
            if name == ZEROED:
                start = engine.start_proposer
                engine = replace(engine, start_proposer=lambda start=start: Blind(start()))
            counts, said = decoded(engine, prompts)
            found[name] = counts
            low, high = interval(right, counts)
            other = sum(a != b for a, b in zip(texts, said, strict=True))
            print(
                f"{name}: tau {tau(counts):.2f}, {tau(counts) - tau(right):+.2f} [{low:+.2f}, {high:+.2f}], "
                f"{other} texts differ",
                flush=True,
            )
    keep(f"faults/{target}", {"counts": found})


def main() -> int:
    """Do what is asked."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("what", choices=("arms", "faults", "page"))
    asked.add_argument("--target", choices=("hybrid", "dense"), default="hybrid")
    asked.add_argument("--set", choices=("procedural", "real"), default="procedural")
    asked.add_argument("--prompts", type=int, default=200)
    asked.add_argument("--only", help="methods whose name holds this; nothing is kept")
    asked.add_argument("--pair", type=Path, help="another directory laid out like the pair's")
    given = asked.parse_args()
    torch.set_num_threads(1)
    if given.pair:
        globals()["PAIR"] = given.pair
    if given.what == "page":
        RESULTS.with_suffix(".md").write_text(page(json.loads(RESULTS.read_text())))
    elif given.what == "arms":
        run_arms(given.target, given.set, given.prompts, given.only)
    else:
        run_faults(given.target, given.prompts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
