"""cli.watch: rounds of reading, changes told once, metrics that a scraper can read."""

import json
import threading
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from draftproof.cli.main import main
from draftproof.cli.metrics_server import MetricsServer
from draftproof.deploy.fleet.watch import State, changes, metrics_text
from draftproof.errors import CouldNotLook, UsageError

OLD, NEW = '{"taps": [1, 17]}\n', '{"taps": [1, 16]}\n'


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan of one file, written and in place."""
    (tmp_path / "model").mkdir()
    (tmp_path / "new.json").write_text(NEW)
    path = tmp_path / "plan.toml"
    path.write_text(f'[[files]]\nsource = "new.json"\npath = "{tmp_path}/model/config.json"\n')
    assert main(["apply", str(path), "--ledger", str(tmp_path / "ledger"), "--json"]) == 0
    return path


def test_a_change_is_told_once_and_ends_the_status(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In place at first; changed back by somebody between two rounds: told once, exit 1."""
    target = tmp_path / "model" / "config.json"

    def meddle() -> None:
        time.sleep(1.5)
        target.write_text(OLD)

    meddler = threading.Thread(target=meddle)
    meddler.start()
    options = ["--ledger", str(tmp_path / "ledger"), "--rounds", "4", "--interval", "1"]
    code = main(["watch", str(plan), *options])
    meddler.join()
    told = capsys.readouterr().out.splitlines()
    assert code == 1
    assert [line.split(": ", 1)[1].split(",")[0] for line in told] == ["in place", "wrong:unknown"]


def test_json_is_one_object_after_the_rounds(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json there is nothing before the end, so the rounds must be counted."""
    capsys.readouterr()
    options = ["--ledger", str(tmp_path / "ledger"), "--json"]
    assert main(["watch", str(plan), *options, "--rounds", "1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["rounds"]) == ("draftproof.watch/1", 1)
    assert document["files"][0]["is_in_place"]
    assert main(["watch", str(plan), *options]) == 2


def test_changes_are_the_first_round_and_the_differences() -> None:
    """A file is told when it first appears and when its state is another one."""
    one, other = State("/a", True, 4, ""), State("/a", False, 0, "wrong:cut_at")
    assert changes({}, [one]) == [one]
    assert changes({"/a": one}, [one]) == []
    assert changes({"/a": one}, [other]) == [other]


def test_metrics_escape_what_a_path_may_hold() -> None:
    """Quotes, backslashes and line feeds in a path do not break the format."""
    text = metrics_text([State('/a"b\\c\nd', False, 0, "wrong:cut_at")], rounds=3, finished_s=1.5)
    assert 'draftproof_file_in_place{target="/a\\"b\\\\c\\nd",trouble="wrong:cut_at"} 0\n' in text
    assert "draftproof_rounds_total 3\n" in text
    assert all(line.startswith(("#", "draftproof_")) for line in text.splitlines())


def test_metrics_are_served_once_there_are_any() -> None:
    """503 before the first round, the text after it, 404 elsewhere."""
    server = MetricsServer("127.0.0.1:0")

    def get(path: str) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
        with closing(connection):
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read()

    try:
        assert get("/metrics") == (503, b"")
        server.text = "a 1\n"
        assert get("/metrics") == (200, b"a 1\n")
        assert get("/") == (404, b"")
        with pytest.raises(CouldNotLook):
            MetricsServer(f"127.0.0.1:{server.port}")
    finally:
        server.close()
    with pytest.raises(UsageError):
        MetricsServer("9464")
