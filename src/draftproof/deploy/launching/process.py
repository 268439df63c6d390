"""A process group of our own: started with a log, stopped as a whole, whatever it has started in turn.

Every descendant carries a mark in its environment, so that one that left the group is still found: it is read
from ``/proc/PID/environ``, which the kernel keeps as it was at exec.
"""

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from draftproof.errors import CouldNotLook

__all__ = ["Running", "start", "stop", "tail"]

_MARK = "DRAFTPROOF_LAUNCH"
_PROC = Path("/proc")
_POLL_SECONDS = 0.05
_KILL_SECONDS = 10.0
_TAIL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Running:
    """What was started."""

    process: "subprocess.Popen[bytes]"
    argv: tuple[str, ...]
    log: Path
    mark: str

    @property
    def ended(self) -> int | None:
        """The exit status as subprocess says it; None while it runs."""
        return self.process.poll()

    def members(self) -> list[int]:
        """Every living process that carries the mark, this one's own group first."""
        wanted = f"{_MARK}={self.mark}".encode()
        entries = [entry for entry in _PROC.iterdir() if entry.name.isdigit()]
        found = [int(entry.name) for entry in entries if _carries(entry, wanted)]
        return sorted(found, key=lambda pid: (pid != self.process.pid, pid))

    def leave(self) -> int:
        """Let it run on when this program ends; its number. Nobody waits for it any more, as is meant."""
        self.process.returncode = 0
        return self.process.pid


def start(argv: Sequence[str], env: Mapping[str, str], log: Path, folder: Path) -> Running:
    """Start a program in a session of its own, both streams into ``log``, in an empty directory.

    Raises:
        CouldNotLook: it cannot be started at all.
    """
    mark = secrets.token_hex(16)
    with log.open("wb") as stream:
        try:
            process = subprocess.Popen(
                [*argv],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **env, _MARK: mark},
                start_new_session=True,
            )
        except OSError as error:
            raise CouldNotLook(
                argv[0],
                expected="a program that can be started",
                found=error.strerror or str(error),
                where=argv[0],
                means="nothing was started, so nothing is known about it",
                next_step="name the engine's own Python with --python",
            ) from error
    return Running(process, tuple(argv), log, mark)


def stop(running: Running, *, grace_seconds: float) -> list[int]:
    """End every process of it: TERM, then KILL; returns those that live on, which only the kernel keeps."""
    _signal(running.members(), signal.SIGTERM)
    left = _wait(running, time.monotonic() + grace_seconds)
    deadline = time.monotonic() + _KILL_SECONDS
    while left and time.monotonic() < deadline:
        _signal(left, signal.SIGKILL)
        left = _wait(running, time.monotonic() + 1.0)
    if running.ended is None and running.process.pid not in left:
        running.process.wait()
    return left


def tail(log: Path, lines: int) -> list[str]:
    """The last lines of a log, at most 64 KiB of it."""
    with log.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL_BYTES))
        text = stream.read(_TAIL_BYTES).decode("utf-8", "replace")
    return [line for line in text.splitlines() if line.strip()][-lines:]


def _wait(running: Running, deadline: float) -> list[int]:
    """Until nobody carries the mark, or the time is up; who still does. Our own child is reaped."""
    while True:
        running.process.poll()
        left = running.members()
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_POLL_SECONDS)


def _signal(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it ended by itself in between


def _carries(entry: Path, wanted: bytes) -> bool:
    """Whether a process that is no zombie has the mark; one that we may not read is not ours."""
    try:
        environment = (entry / "environ").read_bytes()
    except OSError:
        return False
    return wanted in environment.split(b"\0")
