"""What the verbs of writing share: where the ledger is, which machine a place is on, the file to be sent."""

import os
import sys
from pathlib import Path

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place, parse_place
from draftproof.errors import CouldNotLook
from draftproof.host.local import LocalHost
from draftproof.host.protocol import Host
from draftproof.host.ssh import SshHost

__all__ = ["host_for", "ledger_at", "place_at", "read_source"]


_LARGEST_SOURCE = 1 << 30
"""Bytes of one content, which is held in memory here and on the host; a device that never ends ends there."""


def ledger_at(option: Path | None) -> Ledger:
    """The ledger named, or ``$XDG_STATE_HOME/draftproof`` (``~/.local/state/draftproof``)."""
    if option is not None:
        return Ledger(option.absolute())
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG base directory specification: a relative path there is to be ignored.
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return Ledger(base / "draftproof")


def place_at(text: str) -> Place:
    """The place that ``text`` names from the working directory. Raises UsageError."""
    return parse_place(text, cwd=str(Path.cwd()))


def host_for(place: Place, ssh_config: Path | None) -> Host:
    """The machine that ``place`` is on; ``ssh_config`` stands in for the user's client configuration."""
    if place.host:
        return SshHost(place.host, extra=("-F", str(ssh_config)) if ssh_config else ())
    return LocalHost(sys.executable)


def read_source(path: Path) -> bytes:
    """The content to be sent; a pipe is read to its end. Raises CouldNotLook where that cannot be had."""
    found = f"more than {_LARGEST_SOURCE >> 20} MiB"
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST_SOURCE + 1)
        if len(data) <= _LARGEST_SOURCE:
            return data
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        found = getattr(error, "strerror", None) or str(error)
    raise CouldNotLook(
        str(path),
        expected=f"a file that can be read, of at most {_LARGEST_SOURCE >> 20} MiB",
        found=found,
        where=str(path),
        means="there is nothing to send; nothing was done",
        next_step=f"ls -l {path}",
    )
