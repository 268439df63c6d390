"""draftproof launch over a stand-in that speaks an engine's HTTP: what differs is named and stopped."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.launching.conftest import Planned
from draftproof.cli.main import main

STANDIN = Path(__file__).with_name("standin.py")
Launched = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def engine(tmp_path: Path) -> Callable[..., Path]:
    """An interpreter whose module of vLLM's is the stand-in with these faults; other calls go to Python."""

    def make(**faults: Any) -> Path:
        (tmp_path / "faults.json").write_text(json.dumps(faults))
        python = tmp_path / "python"
        served = f'shift 2; exec {sys.executable} {STANDIN} {tmp_path}/faults.json -- "$@"'
        python.write_text(f'#!/bin/sh\nif [ "$1" = -m ]; then {served}; fi\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        return python

    return make


@pytest.fixture
def launched(
    planned: Planned, engine: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Launched]:
    """Exit status and document of a launch; whatever it leaves is ended with the test."""
    left: list[int] = []

    def run(*options: str, plan: Path | None = None, **faults: Any) -> tuple[int, dict[str, Any]]:
        python = engine(**faults)
        argv = [str(plan or planned()), "--python", str(python), "--probe", "0", "--grace", "2"]
        capsys.readouterr()
        code = main(["launch", *argv, "--logs", str(tmp_path / "logs"), *options, "--json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        left.extend([document["pid"]] if document.get("pid") else [])
        return code, document

    yield run
    for pid in left:
        os.killpg(pid, signal.SIGKILL)


def marked(folder: Path) -> list[int]:
    """Every living stand-in that a launch of this test started."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if f"PLANNED_IN={folder}".encode() in environment.split(b"\0"):
            found.append(int(entry.name))
    return found


def ids(document: dict[str, Any]) -> set[str]:
    """Kinds of everything found but notes."""
    return {finding["id"] for finding in document["findings"] if finding["severity"] != "note"}


def test_what_is_as_meant_is_left_serving_as_rendered(launched: Launched) -> None:
    """Looked at with the development endpoints, then started anew without them, and left."""
    code, document = launched()
    assert code == 0, document
    names = [stage["name"] for stage in document["stages"]]
    assert names == ["bytes", "start", "effective", "first request", "stop", "serve"]
    assert document["effective"][0]["aux_layers"]["value"] == [2, 4, 6]
    assert document["acceptance"]["tau"]["value"] == 3.0
    environment = Path(f"/proc/{document['pid']}/environ").read_bytes()
    command = Path(f"/proc/{document['pid']}/cmdline").read_bytes()
    assert b"VLLM_SERVER_DEV_MODE" not in environment
    assert b"worker-extension" not in command
    assert "--worker-extension-cls" in document["argv"]


def test_a_look_alone_leaves_nothing(launched: Launched, tmp_path: Path) -> None:
    """Right, and stopped all the same."""
    code, document = launched("--only-look")
    assert (code, document["pid"]) == (0, None)
    assert document["stages"][-1]["told"] == "stopped; nothing is left of it"
    assert not marked(tmp_path)


@pytest.mark.parametrize(
    ("faults", "kind"),
    [
        ({"ids": [0, 2, 5]}, "effective-taps"),
        ({"ids": [0, 2, 4]}, "taps-read-literally"),
        ({"k": 5}, "launch-draft-tokens"),
        ({"k": 15}, "launch-draft-tokens"),
        ({"windows": [16, 16]}, "effective-window"),
        ({"status": 500}, "launch-first-request-failed"),
        ({"no_drafts": True}, "launch-nothing-drafted"),
    ],
)
def test_what_differs_is_named_and_stopped(
    launched: Launched, tmp_path: Path, faults: dict[str, Any], kind: str
) -> None:
    """Each fault by its own name; exit 1, and no process is left."""
    code, document = launched(**faults)
    assert code == 1
    assert kind in ids(document), document["findings"]
    assert document["pid"] is None
    assert document["stages"][-1]["name"] == "stop"
    assert not marked(tmp_path)


def test_kept_for_a_look_though_wrong(launched: Launched) -> None:
    """--keep leaves the very process; that is said, with its endpoints."""
    code, document = launched("--keep", ids=[0, 2, 4])
    assert code == 1
    assert "development endpoints" in document["stages"][-1]["told"]
    assert b"VLLM_SERVER_DEV_MODE=1" in Path(f"/proc/{document['pid']}/environ").read_bytes()


@pytest.mark.parametrize("faults", [{"deaf": True}, {"daemon": True}, {"deaf": True, "daemon": True}])
def test_nothing_is_left_of_one_that_will_not_end(
    launched: Launched, tmp_path: Path, faults: dict[str, Any]
) -> None:
    """TERM ignored, or a child in a session of its own: all of it is found by its mark and killed."""
    code, document = launched("--only-look", **faults)
    assert code == 0
    assert document["stages"][-1]["told"] == "stopped; nothing is left of it"
    assert not marked(tmp_path)


def test_one_that_dies_is_told_in_its_own_words(
    launched: Launched, planned: Planned, engine: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 3, the error line of its log, no escape of it reaches the terminal."""
    code, document = launched(dies=True)
    assert code == 3
    assert document["error"]["id"] == "engine-did-not-start"
    assert "status 7" in document["error"]["found"]
    assert "ValueError: fc expects 5 taps" in document["error"]["found"]
    assert main(["launch", str(planned()), "--python", str(engine(dies=True)), "--probe", "0"]) == 3
    told = capsys.readouterr().err
    assert "| engine starting" in told
    assert "\x1b[31m" not in told


def test_one_that_never_answers_is_stopped_in_time(launched: Launched, tmp_path: Path) -> None:
    """A bounded wait, then nothing is left."""
    code, document = launched("--timeout", "3", hangs=True)
    assert code == 3
    assert "within 3 s" in document["error"]["found"]
    assert not marked(tmp_path)


def test_another_file_on_disk_is_told_before_any_start(launched: Launched, planned: Planned) -> None:
    """INTENT against BYTES: the lowest layer speaks, and nothing is started."""
    plan = planned(dflash_config__target_layer_ids=[0, 2, 4])
    code, document = launched(plan=plan)
    assert code == 1
    assert ids(document) == {"launch-file-differs"}
    (finding,) = document["findings"]
    assert (finding["expected"], finding["found"]) == ([2, 4, 6], [1, 3, 5])
    assert [stage["name"] for stage in document["stages"]] == ["bytes", "start"]


def test_what_an_old_engine_loses_is_not_started(
    launched: Launched, planned: Planned, tmp_path: Path
) -> None:
    """The plan for 0.20.1 needs other bytes, which lie there only once they were rendered."""
    plan = planned()
    plan.write_text(plan.read_text().replace('"0.32.0"', '"0.20.1"'))
    code, document = launched(plan=plan)
    assert code == 1
    (finding,) = document["findings"]
    assert finding["subject"] == "eagle_aux_hidden_state_layer_ids"
    assert finding["expected"] == [2, 4, 6]
    assert not marked(tmp_path)


def test_planned_files_are_verified_first(launched: Launched, planned: Planned, tmp_path: Path) -> None:
    """A file that is not in place stops the launch before it begins."""
    (tmp_path / "other.json").write_text("{}")
    plan = planned()
    path = tmp_path / "drafter" / "generation_config.json"
    plan.write_text(f'{plan.read_text()}[[files]]\nsource = "other.json"\npath = "{path}"\n')
    code, document = launched(plan=plan)
    assert code == 1
    assert "not in place" in document["stages"][0]["told"]
    path.write_text("{}")
    code, document = launched("--only-look", plan=plan)
    assert code == 0, document
    assert "in place" in document["stages"][0]["told"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(
    planned: Planned, engine: Callable[..., Path], tmp_path: Path, number: signal.Signals
) -> None:
    """Interrupted while it waits: the engine goes, too."""
    argv = [
        "env",
        "--default-signal=INT,TERM,HUP",
        sys.executable,
        "-m",
        "draftproof",
        "launch",
        str(planned()),
    ]
    argv += ["--python", str(engine(hangs=True, daemon=True)), "--grace", "1"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    for _ in range(600):
        if marked(tmp_path):
            break
        time.sleep(0.1)
    assert marked(tmp_path)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not marked(tmp_path)


@pytest.mark.parametrize(
    ("line", "options", "words"),
    [
        ("", [], "--python"),
        ("nodes = 2\nleader = 'l'", ["--python", "/bin/true"], "2 nodes"),
    ],
)
def test_a_plan_that_cannot_be_launched_here(
    planned: Planned, capsys: pytest.CaptureFixture[str], line: str, options: list[str], words: str
) -> None:
    """Usage, before anything is started."""
    assert main(["launch", str(planned(line)), *options]) == 2
    assert words in capsys.readouterr().err


def test_no_such_interpreter_is_could_not_look(planned: Planned, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was started, so nothing is known."""
    assert main(["launch", str(planned()), "--python", "/nowhere/python"]) == 3
    assert "No such file" in capsys.readouterr().err


def test_the_stand_in_hides_its_records_without_development_mode(
    engine: Callable[..., Path], planned: Planned, tmp_path: Path
) -> None:
    """What the tests above lean on: without the extension and the mode it tells nothing."""
    plan = planned()
    port = int(next(line for line in plan.read_text().splitlines() if line.startswith("port")).split()[-1])
    argv = [str(engine()), "-m", "x", "--model", "m", "--host", "127.0.0.1", "--port", str(port)]
    spec = json.dumps({"method": "dflash", "model": str(tmp_path / "drafter"), "num_speculative_tokens": 7})
    process = subprocess.Popen([*argv, "--speculative-config", spec], stdout=subprocess.DEVNULL)
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/collective_rpc", b"{}")
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
                break
            except OSError:
                time.sleep(0.1)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(request)  # noqa: S310
    finally:
        process.kill()
        process.wait()
