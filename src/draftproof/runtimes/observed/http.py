"""One HTTP exchange with a server that is not trusted: bounded in time as a whole, and in size.

No redirect is followed, no proxy asked, nothing is kept alive; the credential goes to the one address named.
"""

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from draftproof.config.raw import JsonValue
from draftproof.errors import CouldNotLook, UsageError

__all__ = ["Address", "address_of", "exchange", "lines_of"]

MOST_BYTES = 32 * 2**20
_LONGEST_LINE = 2**20
_OK = 200


@dataclass(frozen=True, slots=True)
class Address:
    """A server."""

    scheme: str
    host: str
    port: int
    path: str
    """Before which the API's paths stand; empty for most."""

    credential: str | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """The address without the credential."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def address_of(url: str, credential: str | None = None) -> Address:
    """The server that a URL names; a trailing ``/metrics`` or ``/v1`` is taken off.

    Raises:
        UsageError: it is no http or https address, or carries a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        raise UsageError(
            "URL",
            expected="http://HOST:PORT or https://HOST:PORT, without user, password or query",
            found="one with a user or password" if "@" in parts.netloc else repr(url),
            where="command line",
            means="nothing was asked",
            next_step="draftproof probe http://127.0.0.1:8000",
        )
    path = parts.path.rstrip("/").removesuffix("/metrics").removesuffix("/v1")
    return Address(parts.scheme, parts.hostname, port, path, credential)


def exchange(
    address: Address,
    path: str,
    *,
    timeout_seconds: float,
    body: Mapping[str, JsonValue] | None = None,
    other: tuple[int, ...] = (),
) -> tuple[int, str]:
    """Status and text of one answer: GET, or POST where there is a body.

    Raises:
        CouldNotLook: no answer in time, too large, not UTF-8, or a status but 200 and ``other``.
    """
    with _answer(address, path, body, timeout_seconds) as response:
        data = response.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise _could_not(address, path, f"more than {MOST_BYTES} bytes")
        if response.status != _OK and response.status not in other:
            raise _could_not(address, path, f"status {response.status}")
        try:
            return response.status, data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _could_not(address, path, "bytes that are not UTF-8") from error


def lines_of(
    address: Address, path: str, body: Mapping[str, JsonValue], *, timeout_seconds: float
) -> Iterator[str]:
    """The lines of a streamed answer as they come.

    Raises:
        CouldNotLook: as ``exchange``; the time limit holds for the whole stream.
    """
    with _answer(address, path, body, timeout_seconds) as response:
        if response.status != _OK:
            told = response.read(300).decode("utf-8", "replace")
            raise _could_not(address, path, f"status {response.status}: {told}")
        left = MOST_BYTES
        while line := response.readline(_LONGEST_LINE):
            left -= len(line)
            if left < 0 or (len(line) == _LONGEST_LINE and not line.endswith(b"\n")):
                raise _could_not(
                    address, path, f"a stream of more than {MOST_BYTES} bytes, or one endless line"
                )
            yield line.decode("utf-8", "replace").rstrip("\r\n")


@contextmanager
def _answer(
    address: Address, path: str, body: Mapping[str, JsonValue] | None, timeout_seconds: float
) -> Iterator[http.client.HTTPResponse]:
    connection = _connection(address, timeout_seconds)
    expired = threading.Event()
    sockets: list[socket.socket] = []

    def cut() -> None:
        expired.set()
        for sock in sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes a read that a slow server would keep waiting for ever

    watch = threading.Timer(timeout_seconds, cut)
    watch.daemon = True
    try:
        watch.start()
        connection.connect()
        sockets.append(connection.sock)  # the connection forgets it as soon as the answer begins
        headers = {"Accept": "*/*", "Connection": "close"}
        if address.credential is not None:
            headers["Authorization"] = f"Bearer {address.credential}"
        data = None
        if body is not None:
            data = json.dumps(body).encode("utf-8")
            headers["Content-Type"] = "application/json"
        connection.request("GET" if data is None else "POST", address.path + path, data, headers)
        with connection.getresponse() as response:
            yield response
            if expired.is_set():  # a read that was cut looks like the end
                raise _could_not(address, path, f"no complete answer within {timeout_seconds:g} s")
    except (OSError, http.client.HTTPException) as error:
        late = expired.is_set() or isinstance(error, TimeoutError)
        found = f"no answer within {timeout_seconds:g} s" if late else str(error) or type(error).__name__
        raise _could_not(address, path, found) from error
    finally:
        watch.cancel()
        connection.close()


def _connection(address: Address, timeout_seconds: float) -> http.client.HTTPConnection:
    if address.scheme == "http":
        return http.client.HTTPConnection(address.host, address.port, timeout=timeout_seconds)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(address.host, address.port, timeout=timeout_seconds, context=context)


def _could_not(address: Address, path: str, found: str) -> CouldNotLook:
    return CouldNotLook(
        f"{address.shown}{path}",
        expected="an answer",
        found=found,
        where=f"{address.host}:{address.port}",
        means="the server told nothing, which is neither good nor bad",
        next_step="see that it runs and that the address is right; a slow one may need a longer --timeout",
    )
