"""Waiting for an engine: until it answers, ends, or has had its time."""

import re
import time
from collections.abc import Callable

from draftproof.deploy.launching.process import Running, tail
from draftproof.errors import CouldNotLook
from draftproof.printable import printable
from draftproof.runtimes.observed.http import Address, exchange

__all__ = ["DidNotStart", "until_healthy"]

_POLL_SECONDS = 0.5
_ANSWER_SECONDS = 5.0
_TOLD_LINES = 400
_SHOWN_LINES = 12
_ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Exception): ")


class DidNotStart(CouldNotLook):
    """The engine ended, or gave no answer in its time, so nothing can be said of it."""

    id = "engine-did-not-start"


def until_healthy(
    running: Running, address: Address, *, timeout_seconds: float, told: Callable[[str], None]
) -> float:
    """Seconds until ``/health`` answered.

    Raises:
        DidNotStart: it ended before, or did not answer in time; the last lines of its log are told.
    """
    began = time.monotonic()
    next_word = began + 30.0
    while True:
        if running.ended is not None:
            raise _failed(running, f"it ended with status {running.ended}", told)
        if _answers(address):
            return time.monotonic() - began
        now = time.monotonic()
        if now - began > timeout_seconds:
            raise _failed(
                running, f"no answer from {address.shown}/health within {timeout_seconds:g} s", told
            )
        if now > next_word:
            last = tail(running.log, 1)
            told(f"waiting, {now - began:.0f} s: {last[0] if last else 'nothing logged yet'}")
            next_word = now + 30.0
        time.sleep(_POLL_SECONDS)


def _answers(address: Address) -> bool:
    try:
        exchange(address, "/health", timeout_seconds=_ANSWER_SECONDS)
    except CouldNotLook:
        return False
    return True


def _failed(running: Running, why: str, told: Callable[[str], None]) -> DidNotStart:
    """The last lines are told one by one; its first error goes into the message itself."""
    lines = [printable(line) for line in tail(running.log, _TOLD_LINES)]
    for line in lines[-_SHOWN_LINES:]:
        told(f"  | {line}")
    return DidNotStart(
        running.argv[0],
        expected="an engine that answers",
        found=f"{why}; {_own_words(lines)}",
        where=str(running.log),
        means="it was stopped and nothing is known of what it would have served",
        next_step=f"less {running.log}",
    )


def _own_words(lines: list[str]) -> str:
    """The first error is the cause: processes above only report that one below has failed."""
    errors = [line for line in lines if _ERROR.search(line) and "WARNING" not in line]
    if errors:
        return f"it said: {errors[0]}"
    return f"its last line: {lines[-1]}" if lines else "it said nothing"
