"""An sshd of one's own on 127.0.0.1, with keys, port and client configuration of its own."""

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NEEDED = ("sshd", "ssh", "ssh-keygen")
SEARCHED = f"{os.environ['PATH']}:/usr/sbin:/sbin"
START_S = 10


def lacking() -> list[str]:
    """The programs that are not installed here."""
    return [name for name in NEEDED if shutil.which(name, path=SEARCHED) is None]


@contextmanager
def running(directory: Path) -> Iterator[Path]:
    """The client configuration under which ``ssh loopback`` reaches the server; its key is known, strictly.

    Raises:
        OSError: the server does not listen in time; its own words are in the directory's ``log``.
    """
    directory = directory.resolve()
    directory.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)],  # noqa: S607 - the system's
            check=True,
        )
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    configuration = _configure(directory, port)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # root's sshd gives up its rights there
    server = [str(shutil.which("sshd", path=SEARCHED)), "-D", "-e", "-f", str(directory / "sshd_config")]
    with (directory / "log").open("wb") as log, subprocess.Popen(server, stderr=log) as process:
        try:
            _wait(port)
            yield configuration
        finally:
            process.terminate()


def _configure(directory: Path, port: int) -> Path:
    shutil.copyfile(directory / "user.pub", directory / "authorized")
    (directory / "sshd_config").write_text(
        f'Port {port}\nListenAddress 127.0.0.1\nHostKey "{directory}/host"\nPidFile none\nUsePAM no\n'
        f'AuthorizedKeysFile "{directory}/authorized"\nStrictModes no\nPermitRootLogin prohibit-password\n'
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
    )
    kind, key = (directory / "host.pub").read_text().split()[:2]
    (directory / "known").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
    configuration = directory / "config"
    configuration.write_text(
        f"Host loopback\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n"
        f' IdentityFile "{directory}/user"\n IdentitiesOnly yes\n UserKnownHostsFile "{directory}/known"\n'
        " GlobalKnownHostsFile none\n"
    )
    return configuration


def _wait(port: int) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
