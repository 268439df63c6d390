"""A real sshd on loopback, with keys, ports and configuration of its own; stopped at the end."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from draftproof.host.ssh import SshHost

__all__ = ["SSHD", "Sshd", "free_port", "key", "running_sshd", "wait_for"]

SSHD = Path("/usr/sbin/sshd")


@dataclass(frozen=True)
class Sshd:
    """One running server and the client configuration that knows it."""

    directory: Path
    ports: tuple[int, ...]
    """The plain one, one whose sessions are greeted with noise on both streams, one without python, one that
    serves SFTP and nothing else."""

    @property
    def config(self) -> Path:
        """For ``ssh -F``, with a host for each port and each way of not getting in.

        ``loop``, ``noisy``, ``bare`` (no python), ``sftp`` (nothing else); ``stranger`` (key unknown),
        ``changed`` (another key), ``shut`` (no login).
        """
        return self.directory / "config"

    def host(self, name: str = "loop", **changes: str) -> SshHost:
        """A host of the configuration."""
        return SshHost(name, extra=("-F", str(self.config)), **changes)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def key(path: Path) -> str:
    """A new key pair without a passphrase; the public half."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return " ".join(path.with_suffix(".pub").read_text().split()[:2])


def client_config(directory: Path, ports: tuple[int, ...], keys: dict[str, str]) -> str:
    """The hosts the tests know, each with its own list of known keys."""
    known = {"loop": keys["host"], "noisy": keys["host"], "changed": keys["other"], "shut": keys["host"]}
    stanzas = []
    own = {"noisy": ports[1], "bare": ports[2], "sftp": ports[3]}
    known |= {"bare": keys["host"], "sftp": keys["host"]}
    for name in ("loop", "noisy", "bare", "sftp", "stranger", "changed", "shut"):
        port = own[name] if name in own else ports[0]
        hosts = directory / f"known_{name}"
        hosts.write_text(f"[127.0.0.1]:{port} {known[name]}\n" if name in known else "")
        identity = directory / ("nobody" if name == "shut" else "user")
        stanzas.append(
            f"Host {name}\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {identity}\n"
            f" IdentitiesOnly yes\n UserKnownHostsFile {hosts}\n GlobalKnownHostsFile none\n"
        )
    # A user's own settings must not weaken ours: multiplexing and trust on first use are asked for here.
    stanzas.append(
        f"Host *\n StrictHostKeyChecking no\n ControlMaster auto\n ControlPath {directory}/mux-%C\n"
        " ControlPersist 60\n"
    )
    return "".join(stanzas)


def server_config(directory: Path, ports: tuple[int, ...]) -> str:
    """A server that takes one key and greets sessions on its second port."""
    noise = directory / "noise"
    noise.write_text(
        '#!/bin/sh\necho Welcome to the cluster\necho rc noise >&2\neval "$SSH_ORIGINAL_COMMAND"\n'
    )
    noise.chmod(0o755)
    bare = directory / "bare"
    bare.write_text(f'#!/bin/sh\nPATH={tools_without_python(directory)}\neval "$SSH_ORIGINAL_COMMAND"\n')
    bare.chmod(0o755)
    return (
        "".join(f"Port {port}\n" for port in ports) + f"ListenAddress 127.0.0.1\nHostKey {directory}/host\n"
        f"AuthorizedKeysFile {directory}/authorized\nStrictModes no\nUsePAM no\nPidFile none\n"
        "PermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "Subsystem sftp internal-sftp\nMaxStartups 100:30:200\n"
        f"Match LocalPort {ports[1]}\n ForceCommand {noise}\n"
        f"Match LocalPort {ports[2]}\n ForceCommand {bare}\n"
        f"Match LocalPort {ports[3]}\n ForceCommand internal-sftp\n"
    )


def tools_without_python(directory: Path) -> Path:
    """A directory of all this machine's programs but Python's, for a PATH of its own."""
    tools = directory / "tools"
    tools.mkdir()
    for folder in (Path("/usr/bin"), Path("/bin")):
        for program in folder.iterdir():
            link = tools / program.name
            if "python" not in program.name and not link.is_symlink():
                link.symlink_to(program)
    # The product looks in the system's directories first; here they stand for ones that hold no Python.
    (tools / "env").unlink()
    (tools / "env").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (tools / "env").chmod(0o755)
    return tools


def wait_for(ports: tuple[int, ...]) -> None:
    """Return when both ports answer."""
    until = time.monotonic() + 10
    for port in ports:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                assert time.monotonic() < until, f"sshd does not listen on {port}"
                time.sleep(0.05)
            else:
                break


@contextmanager
def running_sshd(directory: Path) -> Iterator[Sshd]:
    """The server, its files in ``directory``; a missing one fails the tests by name, never skips them."""
    assert SSHD.exists(), "openssh-server is not installed: apt-get install openssh-server"
    keys = {name: key(directory / name) for name in ("host", "other", "user", "nobody")}
    ports = tuple(free_port() for _ in range(4))
    (directory / "authorized").write_text(keys["user"] + "\n")
    (directory / "sshd_config").write_text(server_config(directory, ports))
    (directory / "config").write_text(client_config(directory, ports, keys))
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    log = (directory / "log").open("wb")
    with (
        log,
        subprocess.Popen([SSHD, "-D", "-e", "-f", str(directory / "sshd_config")], stderr=log) as server,
    ):
        try:
            wait_for(ports)
            yield Sshd(directory, ports)
        finally:
            server.terminate()
            server.wait(10)
