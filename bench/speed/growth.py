"""Time and memory of one more token behind 256 to 16,384 others."""

import time
from pathlib import Path
from typing import Any

import torch

from draftproof.cache.session import Session
from draftproof.engine.engine import Engine
from draftproof.models.decoder import Decoder
from speed.tokens import Say, prompt_of

__all__ = ["CONTEXTS", "measure_growth"]

CONTEXTS = (256, 1024, 4096, 16384)
TOKENS = 16
"""Tokens decoded behind each context in a round; 0.1 % of the longest."""


def measure_growth(path: Path, dtype: str, *, rounds: int, say: Say) -> list[dict[str, Any]]:
    """A record for every context: prefill once, then rounds of decoding in turns; one thread.

    Sessions get exactly the room they need, so that bytes held are bytes used. A context the model's
    positions do not reach is left out, and said.
    """
    torch.set_num_threads(1)
    target = Engine.load(path, dtype=dtype, with_text=False).target
    room = rounds * TOKENS + TOKENS
    sessions: dict[int, Session] = {}
    records: dict[int, dict[str, Any]] = {}
    for context in CONTEXTS:
        if context + room > target.shape.max_length:
            say(f"{path.name}: {context} tokens and {room} more do not fit {target.shape.max_length}")
            continue
        session = sessions[context] = target.new_session(room=context + room)
        cpu = time.process_time()
        target.prefill(session, prompt_of(context))
        records[context] = {
            "model": path.name,
            "dtype": dtype,
            "context": context,
            "prefill_cpu_s": time.process_time() - cpu,
            "bytes_held": session.size_bytes,
            "bytes_of_state": 0 if session.recurrent is None else session.recurrent.size_bytes,
            "room": context + room,
            "wall_s": [],
            "cpu_s": [],
        }
    for number in range(rounds + 1):
        for context, session in sessions.items():
            wall, cpu = _decode(target, session)
            if number > 0:  # the first round warms up
                records[context]["wall_s"].append(wall)
                records[context]["cpu_s"].append(cpu)
    return list(records.values())


def _decode(target: Decoder, session: Session) -> tuple[float, float]:
    """Wall and CPU seconds of a token, the mean of ``TOKENS``."""
    wall, cpu = time.perf_counter(), time.process_time()
    for token in range(TOKENS):
        target.forward(session, [5 + token])
        session.commit((0,))
    return (time.perf_counter() - wall) / TOKENS, (time.process_time() - cpu) / TOKENS
