"""The program that says what is under a path, as any program that opens it would find it.

It shares no state with the writer: another process, the path resolved again, the whole file read.
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH120
from __future__ import annotations

import fcntl
import os
import sys
import time

from draftproof.host.ground import Refused, Wire, machine
from draftproof.host.seeing import see

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["answer", "main", "read"]

FIRST_FRAME_S = 30.0


def wait_quiet(path: str, wait_ms: int) -> bool:
    """Whether no writer of ours holds the directory's lock, waited for; then no late publication can come."""
    until = time.monotonic() + wait_ms / 1000
    try:
        descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return True  # no directory, no writer in it
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    return False
                time.sleep(0.05)
            else:
                return True
    finally:
        os.close(descriptor)


def answer(wire: Wire, examine: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]) -> None:
    """Serve one request; ``examine`` adds what it sees beyond the content."""
    try:
        ask = wire.document()
        wire.nonce = ask["nonce"]
        wire.end()
    except Refused as refused:
        wire.say("refused", code=refused.code, facts=refused.facts)
        return
    facts = read(ask)
    wire.say("seen", **facts, **examine(ask, facts["seen"]))


def read(ask: dict[str, Any]) -> dict[str, Any]:
    """What one request asks for: the file, whether it was quiet around it, the machine."""
    is_quiet = wait_quiet(ask["path"], ask["settle_ms"]) if ask["settle_ms"] else False
    return {"seen": see(ask["path"], ask["keep_bytes"]), "is_quiet": is_quiet, "machine": machine()}


def main() -> int:
    """Serve one request on standard input."""
    answer(Wire(FIRST_FRAME_S), lambda _ask, _seen: {"device": None, "consumer": None})
    return 0


if __name__ == "__main__":
    sys.exit(main())
