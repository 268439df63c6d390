"""Tokens a second: every engine that can run a model answers the same prompt, round after round."""

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speed.arms import BASELINE, Arm, interpreter, question
from speed.process import Process

__all__ = ["Case", "Say", "counted_round", "prompt_of", "run_forwards", "run_tokens"]

PROMPT_LENGTH = 32
FORWARD_CONTEXT = 124
"""Tokens behind which forwards are timed: those of the table the goals were taken from."""

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
REPEATS = 5
"""Forwards of one size in a row; the first warms its shapes up and is not kept."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One model in one data type on so many threads."""

    model: str
    path: Path
    dtype: str
    threads: int

    @property
    def keys(self) -> dict[str, Any]:
        """What names its records."""
        return {"model": self.model, "dtype": self.dtype, "threads": self.threads}


def prompt_of(length: int, vocab_size: int = 4000) -> list[int]:
    """Seeded token ids, none of them special in any of the models."""
    chance = random.Random(1)  # noqa: S311 - a prompt, not a secret
    return [chance.randrange(5, vocab_size) for _ in range(length)]


def _started(stack: ExitStack, case: Case, arms: Sequence[Arm], logs: Path, say: Say) -> dict[str, Process]:
    """A process for every arm that has a file of the model; all load at once, then each says what it is."""
    found = {}
    for arm in arms:
        if arm.only_models and case.model not in arm.only_models:
            continue
        first = question(arm, case.path, case.dtype, case.threads)
        log = logs / f"{case.model}-{case.dtype}-{case.threads}-{arm.name.replace(' ', '-')}.log"
        found[arm.name] = stack.enter_context(Process(interpreter(arm), arm.module, first, log))
    for name, process in found.items():
        process.settle()
        say(f"{name}: {process.refused or process.about}")
    return found


def run_tokens(
    case: Case, arms: Sequence[Arm], *, rounds: int, tokens: int, logs: Path, say: Say
) -> list[dict[str, Any]]:
    """All rounds of one case, a record each; an arm that cannot is one record that says why.

    A round before the first warms up (a compiler compiles) and is not kept.
    """
    ask = {"do": "generate", "prompt": prompt_of(PROMPT_LENGTH), "tokens": tokens}
    records: list[dict[str, Any]] = []
    with ExitStack() as stack:
        processes = _started(stack, case, arms, logs, say)
        refused = {name: process.refused for name, process in processes.items() if process.refused}
        for number in range(rounds + 1):
            answers: dict[str, dict[str, Any]] = {}
            for name in _turn([name for name in processes if name not in refused], number):
                answers[name] = processes[name].ask(ask)
                if "refused" in answers[name]:
                    refused[name] = answers.pop(name)["refused"]
                    say(f"{name}: {refused[name]}")
            if number > 0:
                about = {name: {"arm": name, "about": processes[name].about} for name in answers}
                counted = counted_round(answers)
                records += [
                    {**case.keys, **about[name], "round": number, **counted[name]} for name in answers
                ]
    kept = [record for record in records if record["arm"] not in refused]
    return kept + [{**case.keys, "arm": name, "refused": why} for name, why in refused.items()]


def counted_round(answers: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Tokens by their number, and how many of the first are transformers' own in this round.

    Engines that run the same weights write the same text until two logits lie closer than rounding.
    """
    theirs = answers[BASELINE]["tokens"] if BASELINE in answers else []
    return {
        name: {**answer, "tokens": len(answer["tokens"]), "shared": _shared(answer["tokens"], theirs)}
        for name, answer in answers.items()
    }


def _shared(mine: Sequence[int], theirs: Sequence[int]) -> int:
    """Leading tokens in common."""
    pairs = enumerate(zip(mine, theirs, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(mine), len(theirs)))


def run_forwards(
    case: Case, arms: Sequence[Arm], *, rounds: int, logs: Path, say: Say
) -> list[dict[str, Any]]:
    """Seconds of a forward over 1 to 32 tokens, a record for every arm and size."""
    prompt = prompt_of(FORWARD_CONTEXT)
    spent: dict[tuple[str, int], dict[str, list[float]]] = {}
    with ExitStack() as stack:
        able = [arm for arm in arms if arm.does_forwards]
        processes = _started(stack, case, able, logs, say)
        running = [name for name, process in processes.items() if not process.refused]
        for number in range(rounds):
            for rows in ROWS:
                for name in _turn(running, number):
                    ask = {"do": "forward", "prompt": prompt, "rows": rows, "repeats": REPEATS}
                    answer = processes[name].ask(ask)
                    if "refused" in answer:
                        say(f"{name}, {rows} tokens: {answer['refused']}")
                        running.remove(name)
                        continue
                    times = spent.setdefault((name, rows), {"wall_s": [], "cpu_s": []})
                    for clock, values in times.items():
                        values.extend(answer[clock][1:])
    return [
        {**case.keys, "arm": name, "about": processes[name].about, "rows": rows, **times}
        for (name, rows), times in spent.items()
        if name in running
    ]


def _turn(names: Sequence[str], number: int) -> list[str]:
    """The names, another one first in each round."""
    at = number % max(len(names), 1)
    return [*names[at:], *names[:at]]
