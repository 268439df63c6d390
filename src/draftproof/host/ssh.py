"""Another machine as a Host, through the system's OpenSSH client: the user's configuration, keys and policy.

Every run is a connection of its own: no multiplexing, whose master may outlive the link it stands for. Host
keys must be known; nothing is ever asked, and the exit code is never evidence.
Source: ssh_config(5) of OpenSSH for the options; ssh(1) exits 255 for its own failures.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from draftproof.errors import CouldNotLook
from draftproof.host.client_log import ClientLog
from draftproof.host.program import ANY_PYTHON, SYSTEM_PATH
from draftproof.host.protocol import LAST_WORDS, Answer, CommandResult, HostUnreachable
from draftproof.host.talk import Child
from draftproof.printable import printable

__all__ = [
    "HostKeyChanged",
    "HostKeyUnknown",
    "LoginRefused",
    "NoPython",
    "Session",
    "SftpOnly",
    "SshHost",
    "is_sftp_only",
]

_OPTIONS = (
    "-T",
    *("-o", "BatchMode=yes"),
    *("-o", "StrictHostKeyChecking=yes"),
    *("-o", "ControlMaster=no"),
    *("-o", "ControlPath=none"),
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=3"),
    *("-o", "ConnectTimeout=15"),
    *("-o", "ForwardAgent=no"),
    *("-o", "ForwardX11=no"),
    *("-o", "PermitLocalCommand=no"),
    *("-o", "ClearAllForwardings=yes"),
    *("-o", "LogLevel=ERROR"),
)
_SSH_FAILED = 255
_SYSTEM_FIRST = f'env "PATH={SYSTEM_PATH}$PATH" '
"""The system's Python before a shim of a version manager, which costs as much as the rest of a write.

The same words for sh, csh and fish.
"""

_NOT_FOUND = (126, 127)


class HostKeyUnknown(HostUnreachable):
    """The machine's key was never accepted by this user."""

    id = "host-key-unknown"


class HostKeyChanged(HostUnreachable):
    """The machine shows another key than the one on record."""

    id = "host-key-changed"


class LoginRefused(HostUnreachable):
    """The machine does not let this user in without being asked."""

    id = "host-login-refused"


class NoPython(HostUnreachable):
    """The machine was reached and has no such interpreter."""

    id = "host-no-python"


class SftpOnly(HostUnreachable):
    """The account serves files and runs no program."""

    id = "host-sftp-only"


def is_sftp_only(result: CommandResult) -> bool:
    """Whether a run was turned away because the account runs no programs.

    Source: OpenSSH session.c says the first on standard output, its client the second where exec is refused.
    """
    return b"This service allows sftp connections only" in result.stdout or (
        result.exit_code == _SSH_FAILED and b"exec request failed on channel" in result.stderr
    )


@dataclass(frozen=True, slots=True)
class SshHost:
    """A machine reached by ``ssh name``."""

    name: str
    """As the user's ssh configuration knows it: ``gpu7``, ``user@gpu7``."""

    python: str = ANY_PYTHON
    """The interpreter there, any from 3.8 on."""

    extra: tuple[str, ...] = ()
    """Further client options before the fixed ones, e.g. ``("-F", "config")``; they cannot weaken those."""

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """Run ``argv`` there over a new connection; no shell is left between sshd and the program.

        Raises:
            HostUnreachable: there is no ssh client here.
        """
        return self.start(argv).talk(stdin, answer=answer, timeout_s=timeout_s)

    def start(self, argv: Sequence[str], *, at_login: Callable[[], None] | None = None) -> "Session":
        """Open the new connection; the program waits there for its input.

        ``at_login`` is called in the talk that follows, when the machine has let us in. Raises as run.
        """
        before = _SYSTEM_FIRST if argv[0] == ANY_PYTHON else ""
        client, *words = self._call(before, argv)
        try:
            return Session(client, words, at_login)
        except OSError as error:
            raise HostUnreachable(
                self.name,
                expected="an ssh client on this machine",
                found=str(error),
                where="this machine",
                means="nothing was done",
                next_step="install openssh-client",
            ) from error

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command here that runs ``argv`` there."""
        return self._call("", argv)

    def _call(self, before: str, argv: Sequence[str]) -> list[str]:
        command = f"exec {before}" + " ".join(shlex.quote(word) for word in argv)
        # The first value of an ssh option wins, so the fixed ones stand before the user's configuration file
        # and before what -F names; "--" keeps a name that begins with a dash from being an option.
        return ["ssh", *_OPTIONS, *self.extra, "--", self.name, command]

    def failure(self, result: CommandResult) -> CouldNotLook:
        """Why no reply came, told from what the ssh client wrote; the machine's own words are escaped."""
        words = printable(result.stderr[-LAST_WORDS:].decode("utf-8", "backslashreplace").strip())
        whole = result.stderr.decode("utf-8", "backslashreplace")
        for kind, expected, pattern, next_step in _FAILURES:
            if result.exit_code == _SSH_FAILED and re.search(pattern, whole):
                return self._failed(kind, expected, words.splitlines()[-1], next_step)
        if is_sftp_only(result):
            step = "pip install 'draftproof[ssh-sftp]'"
            return self._failed(SftpOnly, "an account that runs programs", "SFTP and nothing else", step)
        if result.exit_code in _NOT_FOUND:
            return self._failed(
                NoPython, f"the interpreter {self.python}", words, f"ssh {self.name} command -v {self.python}"
            )
        found = "no reply in time" if result.is_timed_out else f"exit {result.exit_code}: {words}"
        return self._failed(
            HostUnreachable, "an answer from the program sent there", found, f"ssh {self.name} true"
        )

    def _failed(self, kind: type[HostUnreachable], expected: str, found: str, next_step: str) -> CouldNotLook:
        return kind(
            self.name,
            expected=expected,
            found=found,
            where=f"ssh {self.name}",
            means="the machine did not say what is there",
            next_step=next_step.replace("HOST", self.name),
        )


class Session:
    """One connection that was opened, and what runs there; one talk, then it is over."""

    def __init__(self, client: str, words: Sequence[str], at_login: Callable[[], None] | None) -> None:
        """Start the client. Raises OSError."""
        self._log = ClientLog(at_login)
        try:
            self._child = Child([client, "-E", str(self._log.path), "-o", "LogLevel=DEBUG1", *words])
        except OSError:
            self._log.close()
            raise

    def talk(self, stdin: bytes, *, answer: Answer | None = None, timeout_s: float) -> CommandResult:
        """Feed the program and collect what it says, to its end or ``timeout_s``."""
        listener = (self._log.descriptor, self._log.take)
        try:
            result = self._child.talk(stdin, answer=answer, timeout_s=timeout_s, listener=listener)
            self._log.take()
            told = result.stderr + self._log.complaints
            return replace(result, stderr=told, host_key=self._log.host_key)
        finally:
            self._log.close()

    def drop(self) -> None:
        """End it without a talk: the program's input ends, and it does nothing."""
        self._child.end()
        self._log.close()


_FAILURES: tuple[tuple[type[HostUnreachable], str, str, str], ...] = (
    (
        HostKeyChanged,
        "the host key on record",
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for .* has changed",
        "find out why it changed; only then ssh-keygen -R HOST, and connect once by hand",
    ),
    (
        HostKeyUnknown,
        "a host key on record",
        r"Host key verification failed|No .* host key is known for",
        "connect once by hand and compare the fingerprint: ssh HOST",
    ),
    (
        HostUnreachable,
        "a machine of that name",
        r"Could not resolve hostname",
        "correct the name, or give it a HostName in ~/.ssh/config",
    ),
    (
        HostUnreachable,
        "a machine that takes ssh connections",
        r"connect to host .* port \d+:|Connection timed out|Connection refused",
        "is it up, and is sshd? ssh HOST true",
    ),
    (
        LoginRefused,
        "a login without questions",
        r"Permission denied \(",
        "give the key to an agent, or name it in ~/.ssh/config",
    ),
)
