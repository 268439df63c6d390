"""The loop of an engine's process: a line of JSON asks, a line of JSON answers. Standard library only.

A peer's module calls ``serve`` with its class; nothing of draftproof is imported there. The first line says
what to load, each further one what to run. Both clocks are read here, so that no engine is timed otherwise
than the others; standard output belongs to the answers, whatever the engine prints goes to standard error.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["PeerEngine", "Refused", "serve"]


class Refused(Exception):
    """The engine cannot run what was asked; the reason becomes a row of the table."""


class PeerEngine(Protocol):
    """What a peer's module offers."""

    about: str
    """Package and version, and what else decides its speed."""

    def generate(self, prompt: Sequence[int], tokens: int) -> Sequence[int]:
        """So many greedy tokens behind the prompt, whatever they are."""

    def forward(self, prompt: Sequence[int], rows: int) -> Callable[[], object]:
        """Behind the prompt, a call that runs one forward over ``rows`` tokens."""


def serve(load: Callable[[dict[str, Any]], PeerEngine]) -> None:
    """Answer until standard input ends.

    Args:
        load: from {"path", "dtype", "threads", ...} to an engine; it may raise ``Refused``.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    engine: PeerEngine | None = None
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            if engine is None:
                engine = load(ask)
                answer: dict[str, Any] = {"about": engine.about}
            else:
                answer = _run(engine, ask)
        except Exception as error:  # noqa: BLE001 - whatever stops a peer is its row's reason
            traceback.print_exc()
            answer = {"refused": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _run(engine: PeerEngine, ask: dict[str, Any]) -> dict[str, Any]:
    if ask["do"] == "forward":
        call = engine.forward(ask["prompt"], ask["rows"])
        times = [_timed(call)[:2] for _ in range(ask["repeats"])]
        return {"wall_s": [wall for wall, _ in times], "cpu_s": [cpu for _, cpu in times]}
    wall, cpu, made = _timed(lambda: engine.generate(ask["prompt"], ask["tokens"]))
    extra: dict[str, Any] = getattr(engine, "notes", dict)()
    return {"wall_s": wall, "cpu_s": cpu, "tokens": list(made), **extra}


def _timed(call: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    made = call()
    return time.perf_counter() - wall, time.process_time() - cpu, made
