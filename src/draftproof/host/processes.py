"""Processes as /proc shows them: when one started, who descends from it, and who listens on a port.

Standard library only; part of the programs that run on a host (host.program).
Source: proc(5): ``stat`` fields 4 and 22; ``net/tcp``: local address, state (0A listens), inode.
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH115, PTH123, PTH208
from __future__ import annotations

import os
import time

__all__ = ["Untold", "family_of", "listener_on", "started_ns"]

LISTENS = "0A"
PROXIES = ("docker-proxy", "rootlessport", "slirp4netns", "pasta")


class Untold(Exception):
    """Which process is meant cannot be told; the reason is for people."""


def all_pids() -> list[int]:
    """Every process that can be named from here."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def stat_of(pid: int) -> list[str]:
    """The fields after the name, the state first. Raises OSError."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
        return stream.read().rsplit(")", 1)[1].split()


def started_ns(pid: int) -> int:
    """When it began, in nanoseconds since the epoch. Raises OSError."""
    ticks = int(stat_of(pid)[19])
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return int((time.time() - age_s) * 1e9)


def family_of(pid: int) -> list[int]:
    """The process and all that descend from it: an engine's workers, not its front, hold the weights."""
    children: dict[int, list[int]] = {}
    for each in all_pids():
        try:
            children.setdefault(int(stat_of(each)[1]), []).append(each)
        except OSError:
            continue  # it has ended meanwhile
    found = [pid]
    for each in found:
        found += children.pop(each, [])
    return found


def listener_on(port: int) -> int:
    """The process that listens on a TCP port: here, else in the one other network namespace that has one.

    Of several that share the socket it is the eldest. Raises Untold where there is none, or no single one.
    """
    spaces, is_blind = network_namespaces()
    own, *others = spaces.items()
    sockets = {own[0]: listening(own[1], port)}
    if not sockets[own[0]]:
        sockets = {space: listening(pid, port) for space, pid in others}
    sockets = {space: inodes for space, inodes in sockets.items() if inodes}
    if not sockets:
        where = "any network namespace that this user may look into" if is_blind else "any network namespace"
        raise Untold(f"nothing listens on port {port} in {where}")
    if len(sockets) > 1:
        told = ", ".join(str(pid) for inodes in sockets.values() for pid in holders_of(inodes)[:1])
        raise Untold(f"port {port} is listened on in {len(sockets)} namespaces (processes {told}): name one")
    holders = holders_of(next(iter(sockets.values())))
    if not holders:
        raise Untold(f"somebody listens on port {port}; whose process it is this user may not see")
    with open(f"/proc/{holders[0]}/comm", encoding="utf-8", errors="replace") as stream:
        name = stream.read().strip()
    if name in PROXIES:
        raise Untold(f"port {port} is held by {name} (process {holders[0]}), which passes it on to another")
    return holders[0]


def network_namespaces() -> tuple[dict[str, str], bool]:
    """Namespace -> a process in it, this one's first; and whether some process did not show its own."""
    spaces, is_blind = {os.readlink("/proc/self/ns/net"): "self"}, False
    for pid in all_pids():
        try:
            spaces.setdefault(os.readlink(f"/proc/{pid}/ns/net"), str(pid))
        except PermissionError:
            is_blind = True
        except OSError:
            continue  # it has ended meanwhile
    return spaces, is_blind


def listening(pid: str, port: int) -> set[str]:
    """Inodes of the sockets that listen on a port in the namespace of ``pid``."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii", errors="replace") as stream:
                rows = [line.split() for line in stream][1:]
        except OSError:
            continue  # no such protocol here, or the process has ended
        found |= {row[9] for row in rows if row[3] == LISTENS and int(row[1].rsplit(":", 1)[1], 16) == port}
    return found


def holders_of(inodes: set[str]) -> list[int]:
    """Who has one of these sockets open, the eldest first; the one that starts all others last."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    found = []
    for pid in all_pids():
        try:
            names = os.listdir(f"/proc/{pid}/fd")
            if any(link_of(f"/proc/{pid}/fd/{name}") in wanted for name in names):
                found.append((pid == 1, int(stat_of(pid)[19]), pid))
        except OSError:
            continue  # another user's, or it has ended meanwhile
    return [pid for _, _, pid in sorted(found)]


def link_of(path: str) -> str:
    """What a link says, ``""`` where it is gone."""
    try:
        return os.readlink(path)
    except OSError:
        return ""
