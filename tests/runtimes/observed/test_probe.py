"""The probe against a scripted server: every fault it can show is named, and a healthy one is not accused."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from runtimes.observed.scripted import Script, serving

Output = tuple[int, dict[str, Any]]


def probed(url: str, capsys: pytest.CaptureFixture[str], *options: str) -> Output:
    """Exit status and the one object of ``probe``."""
    capsys.readouterr()
    code = main(["probe", url, "--n", "2", "--tokens", "96", "--json", *options])
    out = capsys.readouterr()
    assert out.err == ""
    document: dict[str, Any] = json.loads(out.out)
    return code, document


def against(script: Script, capsys: pytest.CaptureFixture[str], *options: str) -> Output:
    """The same of a scripted server."""
    with serving(script) as url:
        return probed(url, capsys, *options)


def ids(document: dict[str, Any]) -> set[str]:
    """Every finding but the remark that chunks are steps, which is always true here."""
    return {f["id"] for f in document["findings"]} - {"observed-chunks-are-steps"}


def test_a_healthy_server_is_not_accused(capsys: pytest.CaptureFixture[str]) -> None:
    """Five groups, each with its own tau, and nothing found."""
    script = Script()
    code, document = against(script, capsys)
    assert code == 0
    assert ids(document) == set()
    names = [group["group"] for group in document["groups"]]
    assert names == [
        "short, cold",
        "long, cold",
        "long, warm",
        "short, cold, thinking on",
        "short, cold, thinking off",
    ]
    for group in document["groups"]:
        first = group["acceptances"][0]
        assert first["estimator"]["window"] == "between two scrapes"
        assert first["tau"]["value"] == 4.0
        assert first["per_position"]["value"] == [1.0, 1.0, 0.5, 0.5]
        assert group["tokens"] == 192
    assert document["groups"][0]["cached_tokens"] == 0
    assert document["groups"][2]["cached_tokens"] > 1000
    assert "no fault found" in document["verdict"]


def test_prompts_are_asked_one_at_a_time_and_greedily(capsys: pytest.CaptureFixture[str]) -> None:
    """Every request streams, greedily, with a salt; only the warm group uses one twice."""
    script = Script()
    against(script, capsys)
    assert all(body["temperature"] == 0 and body["stream"] for body in script.requests)
    salts = [body["cache_salt"] for body in script.requests]
    assert len(set(salts)) == len(salts) - 2


def test_own_metrics_of_requests_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the server tells each request's metrics, they are gone by; foreign traffic is named still."""
    _, document = against(Script(tells_requests=True, foreign_tokens=50), capsys)
    first, second, third = document["groups"][0]["acceptances"]
    assert first["estimator"]["source"] == "vLLM request metrics"
    assert second["estimator"]["source"] == "vLLM counters"
    assert third["estimator"]["source"] == "stream chunks"
    assert "observed-foreign-traffic" in ids(document)


@pytest.mark.parametrize(
    ("script", "named"),
    [
        (Script(foreign_tokens=10), "observed-foreign-traffic"),
        (Script(restarts=True, totals={"drafts": 10_000}), "observed-restarted"),
        (Script(kept=0, kept_long=0, kept_warm=0, kept_thinking=0), "observed-nothing-accepted"),
        (Script(drafts=False), "observed-no-speculation"),
        (Script(loops=True), "target-repeats"),
        (Script(kept_warm=1), "acceptance-depends-on-cache"),
        (Script(kept_long=1, kept_warm=1), "acceptance-depends-on-length"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_fault_is_named(script: Script, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The fault that the server has is heard, and no other one."""
    code, document = against(script, capsys)
    assert code == 1
    assert ids(document) == {named}


def test_thinking_is_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    """Acceptance that depends on thinking is said, and is no fault."""
    code, document = against(Script(kept_thinking=1), capsys)
    assert code == 0
    assert "acceptance-depends-on-thinking" in ids(document)


@pytest.mark.parametrize(
    ("script", "check", "reason"),
    [
        (Script(knows_thinking=False), "thinking", "renders the same"),
        (Script(has_template=False), "thinking", "no chat template"),
        (Script(caches=False), "warm cache", "nothing came from the cache"),
        (Script(counts=False), "acceptance", "counted no drafts"),
    ],
)
def test_what_cannot_be_looked_at(
    script: Script, check: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What this server does not show is listed with its reason."""
    code, document = against(script, capsys)
    assert any(e["check"] == check and reason in e["reason"] for e in document["not_looked"]), document[
        "not_looked"
    ]
    assert code == 0


def test_the_target_against_a_reference(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A reference that one server wrote is met by itself, and not by a target that is 0.7 nats off."""
    file = str(tmp_path / "reference.json")
    code, _ = against(Script(), capsys, "--write-reference", file)
    assert code == 0
    code, document = against(Script(), capsys, "--reference", file)
    assert (code, ids(document)) == (0, set())
    code, document = against(Script(shift=-0.7), capsys, "--reference", file)
    assert (code, ids(document)) == (1, {"target-differs"})
    code, document = against(Script(shift=-0.2), capsys, "--reference", file)
    assert (code, ids(document)) == (0, {"target-differs"})


def test_a_reference_that_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Another file is refused before anything is asked."""
    (tmp_path / "other.json").write_text('{"schema": "draftproof.logprobs/2"}')
    script = Script()
    code, document = against(script, capsys, "--reference", str(tmp_path / "other.json"))
    assert code == 3
    assert document["error"]["subject"] == "--reference"
    assert script.requests == []


@contextmanager
def silent() -> Iterator[str]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def dripping() -> Iterator[str]:
    """A server that sends one byte of an endless header at a time, so that no single read ever times out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        stop = threading.Event()

        def drip() -> None:
            try:
                connection, _ = server.accept()
                with connection:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                    while not stop.wait(0.05):
                        connection.sendall(b"a")
            except OSError:
                return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        stop.set()
        thread.join()


@pytest.mark.parametrize("make", [silent, dripping])
def test_a_server_that_hangs(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Could not look, in bounded time: a minute is far more than a second of --timeout needs."""
    began = time.monotonic()
    with make() as url:
        code, document = probed(url, capsys, "--timeout", "1")
    assert code == 3
    assert "within 1 s" in document["error"]["found"]
    assert time.monotonic() - began < 60


OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
NONSENSE = {
    "no http": b"220 smtp ready\r\n",
    "closed": b"",
    "short": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
    "html": OK % (13, b"<html></html>"),
    "list": OK % (2, b"[]"),
    "no models": OK % (12, b'{"data": []}'),
    "deep": OK % (200_000, b"[" * 200_000),
    "latin": OK % (2, b"\xff\xfe"),
    "error": b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("name", NONSENSE)
def test_a_server_that_talks_nonsense(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Could not look; no traceback, no figure."""
    code, document = against(Script(raw={"/v1/models": NONSENSE[name]}), capsys, "--timeout", "5")
    assert code == 3
    assert document["error"]["id"] == "could-not-look"


@pytest.mark.parametrize(
    "body",
    [
        b"data: {nonsense}\n\n",
        b'data: {"error": "out of memory"}\n\n',
        b"data: " + b"a" * 2_000_000,
        b"data: []\n\n",
    ],
    ids=["no json", "error", "endless line", "list"],
)
def test_a_stream_of_nonsense(body: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """An answer that breaks off is none."""
    raw = {"/v1/chat/completions": OK % (len(body), body)}
    code, document = against(Script(raw=raw), capsys, "--timeout", "20")
    assert code == 3
    assert document["error"]["id"] == "could-not-look"


def test_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody listens: could not look, with the next step."""
    code, document = probed("http://127.0.0.1:9", capsys)
    assert code == 3
    assert document["error"]["next"]


@pytest.mark.parametrize(
    "argv",
    [
        ["http://user:secret@127.0.0.1:1"],
        ["http://"],
        ["http://127.0.0.1:1", "--before", "x"],
        ["http://127.0.0.1:1", "--n", "0"],
        ["http://127.0.0.1:1", "--api-key-env", "NO_SUCH_VARIABLE"],
    ],
)
def test_wrong_calls(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each is a usage error, and no password is repeated."""
    code = main(["probe", *argv, "--json"])
    out = capsys.readouterr().out
    assert code == 2
    assert "secret" not in out


def test_the_key_is_sent_and_never_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The credential goes to the server in its header and appears in no output."""
    monkeypatch.setenv("SERVER_KEY", "sk-very-secret")
    with silent() as url:
        code = main(["probe", url, "--api-key-env", "SERVER_KEY", "--timeout", "0.5"])
    out = capsys.readouterr()
    assert code == 3
    assert "very-secret" not in out.out + out.err


def test_text_says_what_json_says(capsys: pytest.CaptureFixture[str]) -> None:
    """One table, the finding, the verdict."""
    with serving(replace(Script(), kept_warm=1)) as url:
        code = main(["probe", url, "--n", "2", "--tokens", "96"])
    text = capsys.readouterr().out
    assert code == 1
    assert "short, cold  " in text
    assert "acceptance-depends-on-cache" in text
    assert "not looked at: target against reference" in text
    assert "verdict tau 4.00" in text


def test_escapes_of_a_server_are_not_echoed(capsys: pytest.CaptureFixture[str]) -> None:
    """A model's name cannot move the cursor."""
    data = json.dumps({"data": [{"id": "m\x1b[2J"}]}).encode()
    raw = {"/v1/models": OK % (len(data), data)}
    with serving(Script(raw=raw)) as url:
        main(["probe", url, "--n", "1", "--tokens", "8"])
    out = capsys.readouterr()
    assert "\x1b" not in out.out + out.err
