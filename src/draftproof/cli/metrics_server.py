"""One page over HTTP, ``/metrics``, whose text is set from outside."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from draftproof.errors import CouldNotLook, UsageError

__all__ = ["MetricsServer"]

_LAST_PORT = 65535


class MetricsServer:
    """Serves ``text`` until it is closed; before the first text it answers 503."""

    def __init__(self, address: str) -> None:
        """Listen on ``HOST:PORT``; port 0 takes a free one.

        Raises:
            UsageError: that is no address.
            CouldNotLook: it cannot be listened on.
        """
        self.text = ""
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdigit() or int(port) > _LAST_PORT:
            raise UsageError(
                "--metrics",
                expected="HOST:PORT",
                found=address,
                where="command line",
                means="nothing was done",
                next_step="--metrics 127.0.0.1:9464",
            )
        page = self

        class Handler(BaseHTTPRequestHandler):
            """Answers GET /metrics and nothing else."""

            def do_GET(self) -> None:
                """Send the page."""
                status = 404 if self.path != "/metrics" else 200 if page.text else 503
                body = page.text.encode("utf-8") if status == 200 else b""  # noqa: PLR2004 - HTTP OK
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                """Requests are not news."""

        try:
            self._server = ThreadingHTTPServer((host, int(port)), Handler)
        except OSError as error:
            raise CouldNotLook(
                "--metrics",
                expected="an address that is free",
                found=f"{address}: {error.strerror}",
                where="this machine",
                means="nothing was done",
                next_step="name another port",
            ) from error
        self.port: int = self._server.server_address[1]
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
