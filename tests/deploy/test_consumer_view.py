"""proof.consumer_view: what a serving process finds under the config's path, and if it can have read it."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main

CONFIGS = Path(__file__).parents[1] / "configs"
CLEAN = CONFIGS / "zlab-qwen3.6-27b-dflash.json"
STALE = CONFIGS / "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json"
TICK_S = 0.1
"""Ten times the clock by which the kernel counts a start."""

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    """A directory with a clean config."""
    directory = tmp_path / "drafter"
    directory.mkdir()
    shutil.copyfile(CLEAN, directory / "config.json")
    time.sleep(TICK_S)
    return directory


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process like a server: it runs, and has the files it had."""
    with subprocess.Popen(["sleep", "60"]) as running:
        time.sleep(TICK_S)
        yield running
        running.kill()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """A call with --json: exit status and object."""

    def call(*argv: object) -> tuple[int, dict[str, Any]]:
        code = main([*map(str, argv), "--json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document

    return call


def grave(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The findings about the process."""
    return [
        (f["id"], f["severity"], f["layer"]) for f in document["findings"] if f["id"].startswith("consumer")
    ]


def test_a_process_younger_than_the_file_is_clean(
    drafter: Path, process: subprocess.Popen[bytes], run: Run
) -> None:
    """Same inode, same bytes, started later: nothing is said but that the weights were not compared."""
    code, document = run("check", drafter, "--pid", process.pid)
    assert (code, grave(document)) == (0, [])
    assert any("weights as process" in entry["check"] for entry in document["not_looked"])


def test_a_process_older_than_the_content(drafter: Path, process: subprocess.Popen[bytes], run: Run) -> None:
    """An edit under a running server: it cannot have read it, and that is an error above the bytes."""
    shutil.copyfile(STALE, drafter / "config.json")
    code, document = run("check", drafter / "config.json", "--pid", process.pid)
    assert code == 1
    assert grave(document) == [("consumer-older-than-file", "error", "EFFECTIVE")]


def test_a_changed_mode_is_only_a_warning(drafter: Path, process: subprocess.Popen[bytes], run: Run) -> None:
    """The ctime alone moved: the content may be the one that was read, and the finding says what moved."""
    (drafter / "config.json").chmod(0o600)
    document = run("check", drafter, "--pid", process.pid)[1]
    assert grave(document) == [("consumer-older-than-file", "warning", "EFFECTIVE")]


def test_a_forged_mtime_does_not_hide_the_change(
    drafter: Path, process: subprocess.Popen[bytes], run: Run
) -> None:
    """Copies with rsync -t or cp -p set mtime back; ctime still tells."""
    shutil.copyfile(STALE, drafter / "config.json")
    os.utime(drafter / "config.json", (1, 1))
    document = run("check", drafter, "--pid", process.pid)[1]
    assert grave(document) == [("consumer-older-than-file", "warning", "EFFECTIVE")]


def test_a_process_that_is_gone_is_not_looked_at(
    drafter: Path, process: subprocess.Popen[bytes], run: Run
) -> None:
    """No process, no answer: exit 3 on a clean file, with the reason."""
    process.kill()
    process.wait()
    code, document = run("check", drafter, "--pid", process.pid)
    assert (code, grave(document)) == (3, [])
    (lack,) = [e for e in document["not_looked"] if e["check"].startswith("the file as process")]
    assert "No such file or directory" in lack["reason"]


def served(script: str) -> subprocess.Popen[bytes]:
    """A process in a mount namespace of its own, once the script has mounted what it mounts."""
    call = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    started = subprocess.Popen([*call, f"{script} && echo ready && exec sleep 60"], stdout=subprocess.PIPE)
    assert started.stdout is not None
    assert started.stdout.readline() == b"ready\n"
    return started


@pytest.mark.root
def test_a_pinned_inode_is_another_file(drafter: Path, tmp_path: Path, run: Run) -> None:
    """A single-file mount keeps the old inode when an editor replaces the file: DSK-01 for real."""
    path, inside = drafter / "config.json", tmp_path / "in side.json"
    inside.touch()
    with served(f"mount --bind '{path}' '{inside}' && mount -t tmpfs x '{drafter}'") as process:
        shutil.copyfile(STALE, drafter / "new")
        (drafter / "new").replace(path)
        code, document = run("check", drafter, "--pid", process.pid)
        diff_code, difference = run("diff", CLEAN, inside, "--pid", process.pid)
        process.kill()
    assert (code, grave(document)) == (1, [("consumer-sees-other-file", "error", "BYTES")])
    told = next(f["means"] for f in document["findings"] if f["id"].startswith("consumer"))
    assert f"its mount at {inside} is stale" in told
    assert (diff_code, difference["differences"]) == (0, [])
    assert difference["b"]["path"] == f"/proc/{process.pid}/root{inside}"


@pytest.mark.root
def test_a_directory_hidden_by_a_mount(drafter: Path, tmp_path: Path, run: Run) -> None:
    """A volume over the directory: the process finds nothing there, or a copy of its own."""
    with served(f"mount -t tmpfs x '{drafter}'") as process:
        code, document = run("check", drafter, "--pid", process.pid)
        process.kill()
    assert (code, grave(document)) == (1, [("consumer-sees-other-file", "error", "BYTES")])
    assert document["findings"][0]["found"] == "absent"
    shutil.copyfile(CLEAN, tmp_path / "copy")
    hide = f"mount -t tmpfs x '{drafter}' && cp '{tmp_path}/copy' '{drafter}/config.json'"
    with served(hide) as process:
        document = run("check", drafter, "--pid", process.pid)[1]
        process.kill()
    assert ("consumer-sees-other-file", "note", "BYTES") in grave(document)
