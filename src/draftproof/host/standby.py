"""A second connection, opened while the first still works, on which a program waits to be asked.

It saves the time of a login and nothing else: a process of its own over a connection and an authentication of
its own, which learns path and nonce from its request, and so can read nothing before it is asked.
"""

from contextlib import suppress
from types import TracebackType
from typing import Self

from draftproof.host.program import Program, program_argv
from draftproof.host.protocol import CommandResult, Host, HostUnreachable
from draftproof.host.ssh import Session, SshHost

__all__ = ["Standby"]


class Standby:
    """Opened once the first connection has been let in, so that no machine refuses twice; dropped at the end.

    Only over ssh: elsewhere a new process costs little, and a recording answers in one order.
    """

    def __init__(self, host: Host, program: Program) -> None:
        """Nothing is opened yet."""
        self._host, self._program = host, program
        self._session: Session | None = None

    def __enter__(self) -> Self:
        """Nothing is opened yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop what was not asked."""
        if self._session is not None:
            self._session.drop()

    def open(self) -> None:
        """Open the connection; where that cannot be done here, none waits."""
        if isinstance(self._host, SshHost) and self._session is None:
            with suppress(HostUnreachable):
                self._session = self._host.start(program_argv(self._host.python, self._program))

    def ask(self, stdin: bytes, *, timeout_s: float) -> CommandResult | None:
        """What the program said; None where none waits. It can be asked once."""
        session, self._session = self._session, None
        return None if session is None else session.talk(stdin, timeout_s=timeout_s)
