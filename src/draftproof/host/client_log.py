"""What the ssh client logs while it runs, read as it comes: the key a machine showed, the login, errors.

The client's own words come this way and not with the machine's: into our stderr the other side writes, too.
Source: OpenSSH 9.2: ssh(1) for -E; sshconnect.c, verify_host_key, logs the key; sshconnect2.c the login.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from draftproof.printable import printable

__all__ = ["ClientLog"]

_MOST_LOGGED = 1 << 20
_CHUNK = 1 << 16
_CHATTER = (
    b"debug1: ",
    b"Authenticated to ",
    b"Authenticated using ",
    b"Transferred: ",
    b"Bytes per second: ",
)
_HOST_KEY = re.compile(rb"(?m)^debug1: Server host key: (\S+ \S+)\r?$")
_LOGIN = re.compile(rb"(?m)^(Authenticated to |debug1: Authentication succeeded)")


class ClientLog:
    """The log of one client; ``at_login`` is called once, when the machine has let it in."""

    def __init__(self, at_login: Callable[[], None] | None) -> None:
        """Make the pipe. Raises OSError."""
        self._directory = Path(tempfile.mkdtemp(prefix="draftproof-ssh-"))
        self.path = self._directory / "log"
        os.mkfifo(self.path, 0o600)
        # Open for writing too: the client then never waits for a reader, and we never see an end.
        self.descriptor = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self._said = b""
        self._at_login = at_login

    def take(self) -> None:
        """Take in what has come."""
        with suppress(BlockingIOError):
            while data := os.read(self.descriptor, _CHUNK):
                self._said += data[: _MOST_LOGGED - len(self._said)]
        if self._at_login is not None and _LOGIN.search(self._said):
            call, self._at_login = self._at_login, None
            call()

    def close(self) -> None:
        """Take the pipe away; somebody who cleans up may have been faster, which hurts nobody."""
        os.close(self.descriptor)
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def host_key(self) -> str:
        """Type and fingerprint of the key by which the machine proved itself; ``""`` where there is none."""
        key = _HOST_KEY.search(self._said)
        return printable(key.group(1).decode("ascii", "backslashreplace")) if key else ""

    @property
    def complaints(self) -> bytes:
        """What the client says of itself without being asked for more."""
        lines = self._said.splitlines(keepends=True)
        return b"".join(line for line in lines if not line.startswith(_CHATTER))
