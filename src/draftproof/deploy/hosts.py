"""One file on a host looked at, by a new process there (for another machine: over a new connection)."""

import base64
from dataclasses import dataclass
from typing import Any

from draftproof.deploy.place import Place
from draftproof.deploy.process import NOBODY, Process
from draftproof.errors import CouldNotLook
from draftproof.host.calling import call
from draftproof.host.program import Program, frames_of, request
from draftproof.host.protocol import Host
from draftproof.host.standby import Standby
from draftproof.names import Sha256

__all__ = ["KEEP_BYTES", "Seen", "look", "reading_program", "told_kind"]

KEEP_BYTES = 64 * 1024 * 1024
"""Files up to this size are kept whole in the ledger; of larger ones the digest only."""


_KINDS = {
    "d": "a directory",
    "p": "a pipe",
    "s": "a socket",
    "c": "a character device",
    "b": "a block device",
    "l": "a symbolic link",
}


def told_kind(letter: str) -> str:
    """What ``ls -l`` writes as its first letter, in words; anything longer is words already."""
    return _KINDS.get(letter, letter)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the reading program found."""

    sha256: Sha256 | None
    """None where there is no regular file: see ``kind``."""

    kind: str
    """file, absent, or other (a directory, a device)."""

    data: bytes | None
    """The content, up to KEEP_BYTES."""

    file: dict[str, Any]
    """real_path; for a file also length, identity, xattrs, file_system."""

    device: dict[str, Any] | None
    """The read past the page cache, if asked for: sha256 and how, or reason."""

    consumer: dict[str, Any] | None
    """The view of a process, if asked for."""

    machine: dict[str, Any]
    host_key: str
    """By which the machine proved itself to the ssh client; empty for this machine."""

    is_quiet: bool
    """No writer of ours was at work there when it was read; False also where nobody asked."""


def reading_program(*, is_device_asked: bool, process: Process) -> Program:
    """The program that ``look`` sends for these questions."""
    return "examiner" if is_device_asked or process.is_named else "reader"


def look(
    host: Host,
    place: Place,
    *,
    nonce: str,
    is_device_asked: bool = False,
    process: Process = NOBODY,
    settle_s: float = 0,
    timeout_s: float = 60.0,
    standby: Standby | None = None,
) -> Seen:
    """The file at ``place`` as a program that opens it there finds it now.

    With ``settle_s`` it is read once no writer of ours is at work there, or when that time is up. ``standby``
    holds a connection on which the program (see reading_program) may already wait.

    Raises:
        CouldNotLook: the host did not answer, or the file may not be read.
    """
    ask = {
        "nonce": nonce,
        "path": place.path,
        "keep_bytes": KEEP_BYTES,
        "is_device_asked": is_device_asked,
        "pid": process.pid,
        "port": process.port,
        "settle_ms": int(settle_s * 1000),
    }
    program = reading_program(is_device_asked=is_device_asked, process=process)
    result = call(host, program, stdin=request(ask), timeout_s=timeout_s + settle_s, standby=standby)
    frames = frames_of(result.stdout, nonce)
    if "seen" not in frames:
        raise host.failure(result)
    frame = frames["seen"]
    seen = frame["seen"]
    if seen["kind"] == "unreadable":
        raise CouldNotLook(
            str(place),
            expected="a file that can be read",
            found=seen["error"],
            where=str(place),
            means="its content is not known",
            next_step=f"ls -l {place.path}",
        )
    is_file = seen["kind"] == "file"
    data = seen.pop("data") if is_file else None
    return Seen(
        sha256=Sha256(seen["sha256"]) if is_file else None,
        kind=seen["kind"],
        data=base64.b64decode(data) if data is not None else None,
        file=seen,
        device=frame["device"],
        consumer=frame["consumer"],
        machine=frame["machine"],
        host_key=result.host_key,
        is_quiet=frame["is_quiet"],
    )
