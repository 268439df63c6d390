"""The page's server: the same facts as the command line, to this machine alone, and nothing but itself."""

import base64
import hashlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from draftproof.errors import CouldNotLook
from draftproof.server.loopback import LoopbackServer
from draftproof.server.watcher import Subject, Watcher
from runtimes.asked_engines import recorded
from runtimes.effective_cases import laid_out
from runtimes.observed.scripted import Script
from server.serve import INTENDED, WRONG, ask, page_over, page_with_engine, stale

Answer = tuple[int, dict[str, str], bytes]


def get(server: LoopbackServer, path: str, method: str = "GET", **headers: str) -> Answer:
    """Status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, path, headers=named)
    response = connection.getresponse()
    answer = response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    connection.close()
    return answer


def test_the_views_are_those_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``/api/views`` is the object of ``draftproof views --json``."""
    directory = stale(tmp_path / "drafter")
    with page_over(directory, None) as (server, watcher):
        watcher.look()
        _, _, body = get(server, "/api/views")
    main(["views", str(directory), "--intent", str(INTENDED), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert json.loads(body) == document
    assert [row["pointer"] for row in document["fields"] if row["first_wrong"]] == list(WRONG)


def test_an_engine_is_asked_once_for_each_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its layers are those of the command line; its code is asked again where the file changed."""
    drafter, target = laid_out(tmp_path, "unsorted")
    python = recorded(tmp_path, "vllm-0.32.0", "unsorted")
    with page_with_engine(drafter.given, target.given, str(python)) as (server, watcher):
        watcher.look()
        _, _, body = get(server, "/api/views")
        argv = ["views", drafter.given, "--target", target.given, "--engine", "vllm", "--python", str(python)]
        main([*argv, "--json"])
        said, document = json.loads(body), json.loads(capsys.readouterr().out)
        assert said["engine"] == document["engine"]
        wrong = {
            row["name"]: row["first_wrong"] for row in said["engine"]["quantities"] if row["first_wrong"]
        }
        assert wrong["aux_layers"] == "EFFECTIVE"
        python.unlink()
        watcher.look()
        assert json.loads(get(server, "/api/views")[2])["engine"]["preflight"] is not None
        drafter.config_path.write_text(drafter.config_path.read_text("utf-8") + "\n", "utf-8")
        watcher.look()
        changed = json.loads(get(server, "/api/views")[2])
    assert changed["engine"]["preflight"] is None
    assert any("could not look" in entry["reason"] for entry in changed["not_looked"])


def test_an_engine_that_must_be_told_more(tmp_path: Path) -> None:
    """An EAGLE-3 file does not name its number of draft tokens: the page says so and goes on."""
    drafter, target = laid_out(tmp_path, "eagle3")
    with page_with_engine(drafter.given, target.given, sys.executable) as (server, watcher):
        watcher.look()
        lacks = json.loads(get(server, "/api/views")[2])["not_looked"]
    assert any(entry["reason"].startswith("--k: ") for entry in lacks)


def test_a_file_that_changes_is_seen(tmp_path: Path) -> None:
    """The next look shows the file as it is now."""
    directory = stale(tmp_path / "drafter")
    with page_over(directory, None) as (server, watcher):
        watcher.look()
        (directory / "config.json").write_bytes(INTENDED.read_bytes())
        watcher.look()
        _, _, body = get(server, "/api/views")
    assert not [row for row in json.loads(body)["fields"] if row["first_wrong"]]


def test_acceptance_over_time() -> None:
    """One point for each interval between two looks; one in which nothing was drafted has no tau."""
    script = Script()
    with page_over(None, script) as (server, watcher):
        watcher.look()
        ask(script, 2)
        watcher.look()
        watcher.look()
        script.kept = 1
        ask(script, 2)
        watcher.look()
        _, _, body = get(server, "/api/acceptance")
    said: dict[str, Any] = json.loads(body)
    assert said["schema"] == "draftproof.ui/1"
    assert said["rounds"] == 4
    assert [point["tau"] for point in said["intervals"]] == [4.0, None, pytest.approx(2.0, abs=0.05)]
    assert said["since_start"]["acceptances"][0]["num_drafts"]["value"] == script.totals["drafts"]
    assert said["trouble"] is None


def test_a_server_that_is_gone_is_said() -> None:
    """The page stays, with the reason, and the curve keeps what it had."""
    watcher = Watcher(Subject(None, None, None, (), None, 1.0, 1.0))
    watcher.look()
    assert watcher.acceptance()["server"] is None
    script = Script(raw={"/metrics": b""})
    with page_over(None, script) as (server, watcher):
        watcher.look()
        _, _, body = get(server, "/api/acceptance")
    assert json.loads(body)["trouble"]["id"] == "could-not-look"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1"},
        {"Host": ""},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/views", "/api/acceptance"])
def test_other_sites_are_refused(tmp_path: Path, path: str, headers: dict[str, str]) -> None:
    """A name that was bound to this address anew, or a page of another site, gets nothing."""
    with page_over(stale(tmp_path / "drafter"), None) as (server, _):
        filled = {key: value.format(port=server.port) for key, value in headers.items()}
        status, _, body = get(server, path, **filled)
    assert status == 403
    assert b"drafter" not in body


@pytest.mark.parametrize("path", ["/api", "/../etc/passwd", "/api/views?x=1", "/favicon.ico"])
def test_there_is_nothing_else(path: str) -> None:
    """Three paths, and no file of this machine."""
    with page_over(None, None) as (server, _):
        assert get(server, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_nothing_can_be_changed(method: str) -> None:
    """Only GET is answered."""
    with page_over(None, None) as (server, _):
        assert get(server, "/", method)[0] == 501


def test_the_policy_admits_the_page_and_nothing_more() -> None:
    """Script and style are admitted by their digests; no address but its own is named in the page."""
    with page_over(None, None) as (server, _):
        status, headers, body = get(server, "/")
    text = body.decode()
    policy = headers["content-security-policy"]
    assert status == 200
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in text
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_a_port_that_is_taken() -> None:
    """Could not look, with the way out."""
    with page_over(None, None) as (server, watcher), pytest.raises(CouldNotLook, match="--port"):
        LoopbackServer(watcher, server.port)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--intent", "x"],
        ["--intent", "x", "--url", "http://127.0.0.1:1"],
        ["--engine", "vllm", "--url", "http://127.0.0.1:1"],
        ["x", "--pid", "1"],
        ["x", "--k", "3"],
        ["x", "--engine", "vllm", "--python", ""],
    ],
)
def test_nothing_to_show(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A page over nothing is a usage error, and so is an option that nothing would be done with."""
    assert main(["ui", *argv]) == 2
    assert "next" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_verb_serves_until_it_is_ended(tmp_path: Path, options: list[str]) -> None:
    """``draftproof ui`` says where the page is, and a signal ends it with 0."""
    argv = [
        sys.executable,
        "-m",
        "draftproof",
        "ui",
        str(stale(tmp_path / "drafter")),
        "--port",
        "0",
        *options,
    ]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        port = int(re.findall(r"http://127\.0\.0\.1:(\d+)/", told)[0])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
