"""The server of the page: on loopback alone, for this address alone, reading alone.

A page of another site can make a browser ask any address; the Host header then names that site (rebinding),
or the browser says that the request comes from elsewhere. Both are refused; nothing here changes anything.
"""

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from draftproof.errors import CouldNotLook
from draftproof.server.page import HEADERS, load_page
from draftproof.server.watcher import Watcher

__all__ = ["LoopbackServer"]

_LOOPBACK = "127.0.0.1"
_SECONDS = 10


class LoopbackServer:
    """Serves one watcher until it is closed."""

    def __init__(self, watcher: Watcher, port: int) -> None:
        """Listen; port 0 takes a free one.

        Raises:
            CouldNotLook: the port is taken.
        """
        page, policy = load_page()
        outer = self
        answers: Mapping[str, Callable[[], dict[str, object]]] = {
            "/api/views": watcher.views,
            "/api/acceptance": watcher.acceptance,
        }

        class Handler(BaseHTTPRequestHandler):
            """Answers GET of three paths."""

            timeout = _SECONDS
            server_version = "draftproof"
            sys_version = ""

            def do_GET(self) -> None:
                """The page, or one of its two JSON objects."""
                if not self._is_for_us():
                    self._send(403, "text/plain; charset=utf-8", b"this address is served to itself alone\n")
                elif self.path == "/":
                    self._send(200, "text/html; charset=utf-8", page)
                elif self.path in answers:
                    body = json.dumps(answers[self.path](), ensure_ascii=True).encode()
                    self._send(200, "application/json", body)
                else:
                    self._send(404, "text/plain; charset=utf-8", b"no such page\n")

            def _is_for_us(self) -> bool:
                hosts = {f"{name}:{outer.port}" for name in (_LOOPBACK, "localhost")}
                site = self.headers.get("Sec-Fetch-Site", "none")
                return self.headers.get("Host", "") in hosts and site in ("none", "same-origin")

            def _send(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                headers = HEADERS | {"Content-Security-Policy": policy, "Content-Type": kind}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                """Requests are not news."""

        try:
            self._server = ThreadingHTTPServer((_LOOPBACK, port), Handler)
        except OSError as error:
            raise CouldNotLook(
                "--port",
                expected="a port that is free",
                found=f"{port}: {error.strerror}",
                where="this machine",
                means="nothing is shown",
                next_step="name another port, or 0 for any",
            ) from error
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{_LOOPBACK}:{self.port}/"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
