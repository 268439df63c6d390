"""A TCP proxy that lets a chosen number of bytes of one connection through, and then ends or stalls it."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Cut", "CuttingProxy", "cutting_proxy"]

How = Literal["fin", "reset", "stall"]
Direction = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the first connection is cut, or the one in which the sum over all comes so far."""

    at: int
    """Bytes that still pass in that direction."""

    how: How
    direction: Direction = "up"
    """up: from the client to the server."""

    is_sum: bool = False
    """``at`` counts the bytes of all connections together, for tools that make many."""


@dataclass
class CuttingProxy:
    """The proxy as it runs."""

    port: int
    cut: Cut | None
    passed: dict[str, int] = field(default_factory=lambda: {"up": 0, "down": 0})
    """Bytes of the first connection that passed."""

    summed: dict[str, int] = field(default_factory=lambda: {"up": 0, "down": 0})
    """Bytes of all connections that passed."""

    is_cut: bool = False
    connections: int = 0
    sockets: list[socket.socket] = field(default_factory=list)


@contextmanager
def cutting_proxy(server_port: int, cut: Cut | None) -> Iterator[CuttingProxy]:
    """A proxy on loopback in front of ``server_port``."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = CuttingProxy(listener.getsockname()[1], cut)
        threading.Thread(target=_accept, args=(listener, server_port, proxy), daemon=True).start()
        try:
            yield proxy
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for each in proxy.sockets:
                each.close()


def _accept(listener: socket.socket, server_port: int, proxy: CuttingProxy) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return  # closed: the test is over
        server = socket.create_connection(("127.0.0.1", server_port))
        proxy.sockets += [client, server]
        proxy.connections += 1
        is_first = proxy.connections == 1
        for direction, source, sink in (("up", client, server), ("down", server, client)):
            threading.Thread(
                target=_pump,
                args=(proxy, source, sink, direction),
                kwargs={"is_first": is_first},
                daemon=True,
            ).start()


def _cut_for(proxy: CuttingProxy, direction: str, *, is_first: bool) -> Cut | None:
    """The cut that still waits for this connection."""
    cut = proxy.cut
    if cut is None or proxy.is_cut or cut.direction != direction:
        return None
    return cut if is_first or cut.is_sum else None


def _pump(
    proxy: CuttingProxy, source: socket.socket, sink: socket.socket, direction: str, *, is_first: bool
) -> None:
    while True:
        cut = _cut_for(proxy, direction, is_first=is_first)
        passed = proxy.summed if cut and cut.is_sum else proxy.passed
        try:
            data = source.recv(1 if cut and cut.at - passed[direction] < 1 else 4096)
        except OSError:
            return
        if cut and passed[direction] + len(data) > cut.at:
            _send(sink, data[: cut.at - passed[direction]])
            passed[direction] = cut.at
            proxy.is_cut = True
            _end(cut, source, sink)
            return
        proxy.summed[direction] += len(data)
        if is_first:
            proxy.passed[direction] += len(data)
        if not data or not _send(sink, data):
            _close(sink)
            return


def _send(sink: socket.socket, data: bytes) -> bool:
    try:
        sink.sendall(data)
    except OSError:
        return False
    return True


def _end(cut: Cut, source: socket.socket, sink: socket.socket) -> None:
    if cut.how == "stall":
        return  # both sides stay open and nothing moves any more in this direction
    for side in (sink, source):
        if cut.how == "reset":
            try:
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                side.close()
            except OSError:
                continue
        else:
            _close(side)


def _close(side: socket.socket) -> None:
    try:
        side.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has gone by itself
