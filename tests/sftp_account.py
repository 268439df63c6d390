"""An account that serves SFTP only, its server with a fault, spoken to by the product's own requests."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from draftproof.deploy.ledger.objects import sha256_hex
from draftproof.host.program import frame_of, frames_of, request
from draftproof.host.sftp import SftpHost
from loopback import SSHD, Sshd, free_port, wait_for

__all__ = ["NEW", "NONCE", "OLD", "SERVER", "frames_of_write", "frames_under", "part_of", "server_under"]

SERVER = "/usr/lib/openssh/sftp-server"

OLD, NEW = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n'
NONCE = "ef" * 8


@contextmanager
def server_under(sshd: Sshd, server: str) -> Iterator[tuple[str, str]]:
    """Client options for an sshd whose SFTP server is this command."""
    port = free_port()
    ports = "".join(f"Port {each}\n" for each in sshd.ports)
    text = (sshd.directory / "sshd_config").read_text().replace(ports, f"Port {port}\n")
    (sshd.directory / "faulty_sshd").write_text(
        text.replace("Subsystem sftp internal-sftp", f"Subsystem sftp {server}")
    )
    key = (sshd.directory / "known_sftp").read_text().split(" ", 1)[1]
    (sshd.directory / "known_faulty").write_text(f"[127.0.0.1]:{port} {key}")
    config = sshd.directory / "faulty"
    config.write_text(
        sshd.config.read_text()
        .replace(f"Port {sshd.ports[3]}", f"Port {port}")
        .replace(f"{sshd.directory}/known_sftp", f"{sshd.directory}/known_faulty")
    )
    command = [str(SSHD), "-D", "-e", "-f", str(sshd.directory / "faulty_sshd")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as child:
        try:
            wait_for((port,))
            yield ("-F", str(config))
        finally:
            child.terminate()
            child.wait(10)


def frames_under(
    sshd: Sshd, fault: str, path: Path, *, at: Path | None = None, **more: Any
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code and frames of one write to a server with a fault, ``at`` one path where it is named."""
    where = f"-P {at} " if at else ""
    server = f"/usr/bin/strace -f -o /dev/null {where}-e inject={fault} {SERVER}"
    with server_under(sshd, server) as options:
        return frames_of_write(options, path, NEW, **more)


def frames_of_write(
    options: tuple[str, str],
    path: Path,
    body: bytes,
    *,
    meanwhile: Callable[[], object] = lambda: None,
    late_by_ms: int = -9000,
    root: str = "/",
    **changes: str | int,
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code and frames of one write; ``meanwhile`` happens before the order, ``changes`` are in it."""
    ask = {"nonce": NONCE, "path": str(path), "root": root, "patience_ms": 5000, "keep_bytes": 99}

    def answer(line: bytes) -> bytes | None:
        frame = frame_of(line, NONCE)
        assert frame is not None
        meanwhile()
        head = {
            "expected_old": frame.facts["old"]["sha256"] if frame.facts["old"] else "absent",
            "length": len(body),
            "sha256": sha256_hex(body),
            "deadline_ms": frame.facts["machine"]["monotonic_ms"] - late_by_ms,
        }
        return request(head | changes) + body

    host = SftpHost("sftp", options)
    result = host.run(("sftp", "helper"), stdin=request(ask), answer=answer, timeout_s=60)
    return result.exit_code, frames_of(result.stdout, NONCE)


def part_of(path: Path, old: bytes | None = OLD, new: bytes = NEW) -> Path:
    """The name of the temporary file of such a write."""
    before = sha256_hex(old)[:16] if old is not None else "absent"
    return path.with_name(f".{path.name}.draftproof-{NONCE}-{before}-{sha256_hex(new)[:16]}.part")
