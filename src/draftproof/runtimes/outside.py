"""The program that looks at a serving engine from its own machine: its HTTP answers and its process.

Sent as text after ``runtimes.frame``; any Python there runs it. It asks the server on its own address and
reads ``/proc``; nothing is changed. Of an environment only the engines' own switches are taken.

Request: ``{"url", "pid", "seconds"}``; ``pid`` 0 for none. Source: vLLM 0.32.0 entrypoints/serve, SGLang
0.5.23 entrypoints/http_server.py, proc(5).
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from draftproof.runtimes.frame import Json, attempt, said, serve

MAX_BYTES = 8 * 1024 * 1024
LISTENS = "0A"  # TCP_LISTEN, as /proc/net/tcp writes it
SWITCHES = ("VLLM_", "SGLANG_")
PAGES = ("/version", "/v1/models", "/server_info?config_format=json")


def look(request: Json) -> Json:
    """What the server and its process show."""
    answer: Json = {"pages": {}, "workers": None, "process": None, "listens": None}
    if request["url"]:
        base, seconds = request["url"].rstrip("/"), request["seconds"]
        answer["pages"] = {page.partition("?")[0]: fetched(base + page, None, seconds) for page in PAGES}
        body = {"method": "draftproof_effective", "timeout": seconds}
        answer["workers"] = fetched(base + "/collective_rpc", body, seconds)
        answer["listens"], _ = attempt(listening, urlsplit(base).port or 80)
    if request["pid"]:
        answer["process"] = process(Path("/proc", str(request["pid"])))
    return answer


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A server that sends us elsewhere is not the server that was named."""

    def redirect_request(self, *_: Any) -> None:
        """No request follows."""
        return


def fetched(url: str, body: Json | None, seconds: float) -> Json:
    """``{"json": ...}``, or ``{"error": ...}`` with what happened."""
    value, error = attempt(fetch, url, body, seconds)
    return {"error": said(error)} if error else {"json": value}


def fetch(url: str, body: Json | None, seconds: float) -> Any:
    """The JSON that a page answers with."""
    data = None if body is None else json.dumps(body).encode("ascii")
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"not an address of a server: {url}")
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310 - checked
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect())
    with opener.open(request, timeout=seconds) as response:
        text = response.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES >> 20} MiB")
    return json.loads(text)


def listening(port: int) -> list[str]:
    """Addresses that ``port`` is listened on, as /proc/net writes them: 0100007F is 127.0.0.1."""
    found = []
    for name in ("tcp", "tcp6"):
        for row in Path("/proc/net", name).read_text("ascii").splitlines()[1:]:
            words = row.split()
            address, _, number = words[1].rpartition(":")
            if words[3] == LISTENS and int(number, 16) == port:
                found.append(address)
    return found


def process(folder: Path) -> Json:
    """The command line and the engines' switches of a process."""
    argv, error = attempt(words_in, folder / "cmdline")
    environment, blind = attempt(words_in, folder / "environ")
    pairs = [word.partition("=") for word in environment or ()]
    return {
        "argv": argv,
        "environment": {name: value for name, _, value in pairs if name.startswith(SWITCHES)},
        "errors": [said(one) for one in (error, blind) if one],
    }


def words_in(path: Path) -> list[str]:
    """The NUL-ended words of a file in /proc."""
    text = path.read_bytes().decode("utf-8", "backslashreplace")
    return text.split("\0")[:-1]


def main() -> None:
    """Answer one request."""
    serve(look)
