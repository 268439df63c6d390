"""A server that is no engine: whatever answers under the URL, could not look, status 3, and not for long.

Limits of size and time are those of the product; a test that hangs fails by the harness, not by a clock here.
"""

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from draftproof.cli.main import main
from runtimes.effective_cases import laid_out

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Answer = Callable[[socket.socket, threading.Event], None]


def silent(_: socket.socket, over: threading.Event) -> None:
    """Takes the request and says nothing."""
    over.wait()


def dripping(client: socket.socket, over: threading.Event) -> None:
    """One byte after the other, never the last one."""
    client.sendall(HEAD + b"\r\n")
    while not over.wait(0.1):
        client.sendall(b" ")


def dripping_head(client: socket.socket, over: threading.Event) -> None:
    """A header that never ends."""
    client.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not over.wait(0.1):
        client.sendall(b"a")


def flooding(client: socket.socket, over: threading.Event) -> None:
    """A gigabyte of JSON, as fast as it is taken."""
    client.sendall(HEAD + b"Content-Length: 1073741824\r\n\r\n[")
    for _ in range(1024):
        if over.is_set():
            return
        client.sendall(b"1," * (1 << 19))


def elsewhere(client: socket.socket, _: threading.Event) -> None:
    """Sends us to itself, for ever."""
    client.sendall(b"HTTP/1.1 302 Found\r\nLocation: /version\r\nContent-Length: 0\r\n\r\n")


def nonsense(client: socket.socket, _: threading.Event) -> None:
    """No HTTP at all, with a terminal's escapes."""
    client.sendall(b"\x1b]0;owned\x07\x00\xff" * 300)


def page(client: socket.socket, _: threading.Event) -> None:
    """A web page where JSON was asked for."""
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>")


def nested(client: socket.socket, _: threading.Event) -> None:
    """Brackets deeper than a parser goes."""
    body = b"[" * 200_000
    client.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """The address of a server that gives one answer to everything."""
    over = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))

    def one(client: socket.socket) -> None:
        with client:
            try:
                client.recv(65536)
                answer(client, over)
            except OSError:
                return  # whoever asked has gone

    def run() -> None:
        while not over.is_set():
            try:
                client, _ = server.accept()
            except OSError:
                return  # closed
            threading.Thread(target=one, args=(client,), daemon=True).start()

    threading.Thread(target=run, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        over.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.mark.parametrize(
    "answer", [silent, dripping, dripping_head, flooding, elsewhere, nonsense, page, nested]
)
def test_views_of_a_hostile_server(
    answer: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The workers and the counters could not be looked at, each with its reason; the file still is."""
    drafter, _ = laid_out(tmp_path, "full")
    with answering(answer) as url:
        argv = ["views", drafter.given, "--engine", "vllm", "--python", sys.executable, "--url", url]
        code = main([*argv, "--timeout", "3", "--json"])
    output = capsys.readouterr()
    document = json.loads(output.out)
    lacks = {entry["check"]: entry["reason"] for entry in document["not_looked"]}
    assert code == 3
    assert "could not look" in lacks["the drafter in the worker"]
    assert "could not look" in lacks["observed"]
    assert document["engine"]["running"]["ranks"] == []
    assert document["fields"]
    assert "\x1b" not in output.out


@pytest.mark.parametrize("answer", [silent, dripping, flooding, nonsense, nested])
def test_probe_of_a_hostile_server(answer: Answer, capsys: pytest.CaptureFixture[str]) -> None:
    """No figure is made of it."""
    with answering(answer) as url:
        code = main(["probe", url, "--n", "1", "--timeout", "3", "--json"])
    output = capsys.readouterr()
    assert code == 3
    assert json.loads(output.out)["schema"].startswith("draftproof.")
    assert "\x1b" not in output.out + output.err
