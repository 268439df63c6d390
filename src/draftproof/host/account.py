"""How the ssh client would reach a host, asked of the client itself: address, user, keys, known hosts, proxy.

Source: ssh(1), ``-G`` prints the configuration for a host after all matching; ssh_config(5) for the names.
"""

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from draftproof.errors import CouldNotLook

__all__ = ["Account", "account_of"]


@dataclass(frozen=True, slots=True)
class Account:
    """What a client needs to log in as the user's configuration says."""

    address: str
    port: int
    user: str
    keys: tuple[Path, ...]
    """Private keys that exist, in order."""

    is_agent_asked: bool
    known_hosts: tuple[Path, ...]
    """Lists that exist, the user's first."""

    host_key_alias: str
    """The name to look up in the lists, ``""`` for the address."""

    proxy: tuple[str, ...]
    """A command whose standard streams lead there; empty for a plain connection."""


def account_of(name: str, extra: Sequence[str]) -> Account:
    """The account behind ``name``; ``extra`` are client options before it, e.g. ``("-F", "config")``.

    Raises:
        CouldNotLook: the client does not understand its configuration.
    """
    call = ["ssh", *extra, "-G", "--", name]
    run = subprocess.run(call, capture_output=True, text=True, check=False, timeout=20)
    said: dict[str, list[str]] = {}
    for line in run.stdout.splitlines():
        key, _, value = line.partition(" ")
        said.setdefault(key, []).append(value)
    if run.returncode or not {"hostname", "port", "user"} <= said.keys():
        raise CouldNotLook(
            name,
            expected="the client's configuration for the host",
            found=run.stderr.strip() or f"exit {run.returncode}",
            where=shlex.join(call),
            means="nothing was done",
            next_step=shlex.join(call),
        )
    address, port = said["hostname"][0], int(said["port"][0])
    # Several files may stand in one line of a list of known hosts, and one may be called none.
    lists = [each for key in ("userknownhostsfile", "globalknownhostsfile") for each in _all(said, key)]
    return Account(
        address=address,
        port=port,
        user=said["user"][0],
        keys=_existing(_all(said, "identityfile")),
        is_agent_asked=_all(said, "identitiesonly") != ["yes"],
        known_hosts=_existing([path for each in lists for path in each.split()]),
        host_key_alias="".join(_all(said, "hostkeyalias")),
        proxy=_proxy(said, address, port, extra),
    )


def _proxy(said: dict[str, list[str]], address: str, port: int, extra: Sequence[str]) -> tuple[str, ...]:
    jumps = ",".join(_all(said, "proxyjump"))
    command = " ".join(_all(said, "proxycommand"))
    if jumps and jumps != "none":
        *before, last = jumps.split(",")
        through = ("-J", ",".join(before)) if before else ()
        strict = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
        return ("ssh", *strict, *extra, *through, "-W", f"[{address}]:{port}", "--", last)
    if command and command != "none":
        tokens = {"%h": address, "%p": str(port), "%r": said["user"][0], "%%": "%"}
        for token, value in tokens.items():
            command = command.replace(token, value)
        return tuple(shlex.split(command))
    return ()


def _all(said: dict[str, list[str]], key: str) -> list[str]:
    return said.get(key, [])  # the client's own output: a key it does not print is not set


def _existing(names: Sequence[str]) -> tuple[Path, ...]:
    paths = [Path(name).expanduser() for name in names]
    return tuple(path for path in dict.fromkeys(paths) if path.is_file())
