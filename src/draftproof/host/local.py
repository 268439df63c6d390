"""This machine as a Host: every run is a new process."""

from collections.abc import Sequence
from dataclasses import dataclass

from draftproof.errors import CouldNotLook
from draftproof.host.protocol import LAST_WORDS, Answer, CommandResult, HostUnreachable
from draftproof.host.talk import talk
from draftproof.printable import printable

__all__ = ["LocalHost"]


@dataclass(frozen=True, slots=True)
class LocalHost:
    """The machine we run on."""

    python: str
    """The interpreter for the programs that do the work, usually our own."""

    name: str = ""

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """Run a child process. Raises HostUnreachable where it cannot be started."""
        try:
            return talk(argv, stdin=stdin, answer=answer, timeout_s=timeout_s)
        except OSError as error:
            raise HostUnreachable(
                argv[0],
                expected="a program that can be started",
                found=str(error),
                where="this machine",
                means="nothing was done",
                next_step=f"{argv[0]} --version",
            ) from error

    def failure(self, result: CommandResult) -> CouldNotLook:
        """The program ran and died, or was too slow; its last words are told."""
        words = printable(result.stderr[-LAST_WORDS:].decode("utf-8", "backslashreplace").strip())
        found = "no reply in time" if result.is_timed_out else f"exit {result.exit_code}: {words}"
        return HostUnreachable(
            result.argv[0],
            expected="an answer from the program",
            found=found,
            where="this machine",
            means="the program did not do its work here; nothing it may have printed counts",
            next_step="run the command again; if it stays so, report it with this text",
        )
