"""What a machine can do for us: run one program, bytes in and bytes out, and explain a failure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from draftproof.errors import CouldNotLook

__all__ = ["LAST_WORDS", "Answer", "CommandResult", "Host", "HostUnreachable"]

LAST_WORDS = 400
"""So many bytes of what a machine wrote last are shown when it failed."""

Answer = Callable[[bytes], bytes | None]
"""Given a line the program wrote: the rest of its input, or None to wait for another line."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What one program left behind. The exit code alone is never evidence of anything."""

    argv: tuple[str, ...]
    exit_code: int
    """As the operating system says it; negative for a signal, as in subprocess."""

    stdout: bytes
    stderr: bytes
    is_timed_out: bool = False
    """It was ended by us because its time was up; the streams hold what had come until then."""

    host_key: str = ""
    """Type and fingerprint of the key by which the machine proved itself, as the ssh client tells it."""


class HostUnreachable(CouldNotLook):
    """The machine did not run the program at all."""

    id = "host-unreachable"


class Host(Protocol):
    """A machine. Every call of ``run`` is a new process there and, for another machine, a new connection."""

    @property
    def name(self) -> str:
        """How the machine is called in targets and ledgers; ``""`` for this one."""

    @property
    def python(self) -> str:
        """The Python interpreter to start there."""

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """Run ``argv`` with ``stdin``; with ``answer``, input goes on with what it says and then ends.

        Raises:
            HostUnreachable: the program cannot even be started from here.
        """

    def failure(self, result: CommandResult) -> CouldNotLook:
        """Why ``result`` holds no reply, as far as this kind of machine can tell."""
