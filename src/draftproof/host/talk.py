"""One conversation with one child process: bytes in, bytes out, never a deadlock, never past its time."""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from draftproof.host.protocol import Answer, CommandResult

__all__ = ["Child", "Listener", "talk"]

_CHUNK = 1 << 16
_MOST_SAID = 256 << 20
"""Bytes of one stream; a reply with a kept file of 64 MiB is 90. What says more is ended as late."""


Listener = tuple[int, Callable[[], object]]
"""A further descriptor to wait for, and what is called whenever it has something to read."""


def talk(
    argv: Sequence[str],
    *,
    stdin: bytes,
    answer: Answer | None,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
) -> CommandResult:
    """Run ``argv``, feed it, collect both streams; after ``timeout_s`` seconds it is killed.

    Raises:
        OSError: the program cannot be started.
    """
    return Child(argv, env=env).talk(stdin, answer=answer, timeout_s=timeout_s)


class Child:
    """A program that was started and waits for its input."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> None:
        """Start it. Raises OSError where that cannot be done."""
        pipe = subprocess.PIPE
        self._argv = tuple(argv)
        self._process = subprocess.Popen(self._argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env)

    def talk(
        self, stdin: bytes, *, answer: Answer | None, timeout_s: float, listener: Listener | None = None
    ) -> CommandResult:
        """Feed it and collect both streams until it has closed them; after ``timeout_s`` it is killed."""
        with self._process as child:
            try:
                pump = _Pump(child, stdin, answer, listener)
                is_timed_out, streams = pump.run(time.monotonic() + timeout_s)
            finally:
                # Also when `answer` raised: the child must not sit there with half an input and a lock.
                if child.poll() is None and not _ended_by_itself(child):
                    child.kill()
            code = child.wait()
        return CommandResult(self._argv, code, streams["stdout"], streams["stderr"], is_timed_out)

    def end(self) -> None:
        """Kill it where it still waits; nothing after a talk."""
        with self._process as child:
            if child.poll() is None:
                child.kill()


def _ended_by_itself(child: "subprocess.Popen[bytes]") -> bool:
    """Whether a child that has closed its streams ends within a moment, as it should."""
    if child.stdin is not None and not child.stdin.closed:
        return False
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        return False
    return True


class _Pump:
    """Moves bytes between us and the child until it has closed both streams or time is up."""

    def __init__(
        self,
        child: "subprocess.Popen[bytes]",
        stdin: bytes,
        answer: Answer | None,
        listener: Listener | None,
    ) -> None:
        if child.stdin is None or child.stdout is None or child.stderr is None:
            raise ValueError("the child must be started with three pipes")
        self._stdin = child.stdin
        self._pending = memoryview(stdin)
        self._answer = answer
        self._unread = b""
        self._streams = {"stdout": bytearray(), "stderr": bytearray()}
        self._selector = selectors.DefaultSelector()
        for name, stream in (("stdout", child.stdout), ("stderr", child.stderr)):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ, name)
        os.set_blocking(self._stdin.fileno(), False)
        self._selector.register(self._stdin, selectors.EVENT_WRITE, "stdin")
        if listener:
            self._selector.register(listener[0], selectors.EVENT_READ, listener[1])

    def run(self, until: float) -> tuple[bool, dict[str, bytes]]:
        """Whether time ran out, and the two streams."""
        open_streams = 2
        with self._selector:
            while open_streams:
                left = until - time.monotonic()
                if left <= 0 or any(len(data) > _MOST_SAID for data in self._streams.values()):
                    self._stdin_done()
                    return True, self._collected()
                for key, _ in self._selector.select(left):
                    if key.data == "stdin":
                        self._feed()
                    elif callable(key.data):
                        key.data()
                    elif not self._take(key.data, key.fd):
                        self._selector.unregister(key.fileobj)
                        open_streams -= 1
            self._stdin_done()
        return False, self._collected()

    def _collected(self) -> dict[str, bytes]:
        return {name: bytes(data) for name, data in self._streams.items()}

    def _feed(self) -> None:
        try:
            sent = os.write(self._stdin.fileno(), self._pending[:_CHUNK]) if self._pending else 0
        except BrokenPipeError:
            # The child has stopped listening; what it said until then is the evidence.
            self._answer = None
            self._stdin_done()
            return
        self._pending = self._pending[sent:]
        if not self._pending:
            if self._answer is None:
                self._stdin_done()
            else:
                self._selector.unregister(self._stdin)

    def _stdin_done(self) -> None:
        if self._stdin.closed:
            return
        if self._selector.get_map() and self._stdin in self._selector.get_map():
            self._selector.unregister(self._stdin)
        self._stdin.close()

    def _take(self, name: str, descriptor: int) -> bool:
        data = os.read(descriptor, _CHUNK)
        self._streams[name] += data
        if name == "stdout" and self._answer is not None:
            self._listen(data)
        return bool(data)

    def _listen(self, data: bytes) -> None:
        self._unread += data
        while b"\n" in self._unread and self._answer is not None:
            line, self._unread = self._unread.split(b"\n", 1)
            rest = self._answer(line)
            if rest is not None:
                self._answer = None
                self._pending = memoryview(bytes(self._pending) + rest)
                if self._stdin not in self._selector.get_map():
                    self._selector.register(self._stdin, selectors.EVENT_WRITE, "stdin")
