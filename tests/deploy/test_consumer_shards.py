"""A serving process found by its port, and its weights: the inode it has mapped and the file there now."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main

CLEAN = Path(__file__).parents[1] / "configs" / "zlab-qwen3.6-27b-dflash.json"
SHARD = "model.safetensors"
SERVER = """
import mmap, os, socket, sys
port, how, *shards = sys.argv[1:]
listening = socket.socket()
listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listening.bind(("127.0.0.1", int(port)))
listening.listen()
if how == "child" and os.fork():
    os.wait()
    sys.exit()
files = [open(shard, "rb") for shard in shards]
held = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for file in files]
print("ready", flush=True)
sys.stdin.read()
"""
TICK_S = 0.1
"""Ten times the clock by which the kernel counts a start."""

Run = Callable[..., tuple[int, dict[str, Any]]]


@contextmanager
def serving(port: int, *shards: Path, how: str = "alone", wrap: tuple[str, ...] = ()) -> Iterator[int]:
    """A process that listens on the port and keeps the shards mapped, itself or in a child of its own."""
    time.sleep(TICK_S)
    command = [*wrap, sys.executable, "-I", "-S", "-c", SERVER, str(port), how, *map(str, shards)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(TICK_S)
        try:
            yield child.pid
        finally:
            child.stdin.close()
            child.wait(10)


@pytest.fixture
def port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    """A directory with a clean config and something in the place of its weights."""
    directory = tmp_path / "drafter"
    directory.mkdir()
    shutil.copyfile(CLEAN, directory / "config.json")
    (directory / SHARD).write_bytes(b"\0" * 5000)
    return directory


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """A call with --json and a ledger of its own: exit status and object."""

    def call(*argv: object) -> tuple[int, dict[str, Any]]:
        code = main([*map(str, argv), "--ledger", str(tmp_path / "ledger"), "--json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document

    return call


def of_process(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Id, severity and subject of the findings about the process."""
    return [
        (f["id"], f["severity"], f["subject"]) for f in document["findings"] if f["id"].startswith("consumer")
    ]


def lacks(document: dict[str, Any]) -> list[str]:
    """What was not looked at of the process."""
    return [f"{e['check']}: {e['reason']}" for e in document["not_looked"] if "process" in e["check"]]


@pytest.mark.parametrize("how", ["alone", "child"])
def test_a_mapped_shard_that_is_still_there_is_clean(drafter: Path, port: int, run: Run, how: str) -> None:
    """Found by its port: its own mapping, or that of an engine's worker below it, is the file."""
    with serving(port, drafter / SHARD, how=how):
        document = run("check", drafter, "--port", port)[1]
    assert (of_process(document), lacks(document)) == ([], [])


@pytest.mark.parametrize("how", ["alone", "child"])
@pytest.mark.parametrize("change", ["replaced", "removed", "written"])
def test_a_mapped_shard_that_lost_its_name(drafter: Path, port: int, run: Run, change: str, how: str) -> None:
    """Whoever takes the name away, our own write included: the process serves an inode that nobody finds."""
    shard = drafter / SHARD
    with serving(port, shard, how=how):
        mapped = shard.stat().st_ino
        if change == "removed":
            shard.unlink()
        else:
            (drafter / "new").write_bytes(b"\1" * 5000)
            if change == "replaced":
                (drafter / "new").replace(shard)
            else:
                assert run("write", drafter / "new", shard)[0] == 0
        code, document = run("check", drafter, "--port", port)
    assert code == 1
    assert of_process(document) == [("consumer-maps-other-shard", "error", SHARD)]
    (told,) = [f for f in document["findings"] if f["id"] == "consumer-maps-other-shard"]
    assert f"inode {mapped} " in told["found"] + " "
    assert told["layer"] == "EFFECTIVE"
    assert ("no file" in told["expected"]) == (change == "removed")


def test_a_shard_of_a_hub_cache_is_mapped_as_its_blob(tmp_path: Path, port: int, run: Run) -> None:
    """The path in the mapping is the blob's; a blob fetched anew is another inode under the same name."""
    blobs, snapshot = tmp_path / "models--a--b" / "blobs", tmp_path / "models--a--b" / "snapshots" / "1"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    shutil.copyfile(CLEAN, snapshot / "config.json")
    (blobs / "ab12").write_bytes(b"\0" * 5000)
    (snapshot / SHARD).symlink_to("../../blobs/ab12")
    with serving(port, snapshot / SHARD):
        assert of_process(run("check", snapshot, "--port", port)[1]) == []
        (blobs / "ab12.incomplete").write_bytes(b"\0" * 5000)
        (blobs / "ab12.incomplete").replace(blobs / "ab12")
        document = run("check", snapshot, "--port", port)[1]
    assert of_process(document) == [("consumer-maps-other-shard", "error", SHARD)]


def test_weights_of_another_directory_are_nobodys_fault(drafter: Path, port: int, run: Run) -> None:
    """A server maps its target too: what became of that is not told of the drafter."""
    other = drafter.with_name("target")
    other.mkdir()
    (other / SHARD).write_bytes(b"\2" * 5000)
    with serving(port, drafter / SHARD, other / SHARD):
        (other / SHARD).unlink()
        assert of_process(run("check", drafter, "--port", port)[1]) == []


def test_what_nobody_has_mapped_is_not_known(drafter: Path, port: int, run: Run) -> None:
    """Weights that were read and closed leave no trace; changed after the last start, they are warned of."""
    with serving(port):
        document = run("check", drafter, "--port", port)[1]
        assert of_process(document) == []
        assert any("not mapped by the process" in lack for lack in lacks(document))
        (drafter / SHARD).write_bytes(b"\3" * 5000)
        document = run("check", drafter, "--port", port)[1]
    assert of_process(document) == [("consumer-older-than-file", "warning", SHARD)]


def test_a_port_without_a_listener_is_not_looked_at(drafter: Path, port: int, run: Run) -> None:
    """Nobody there, nothing known: exit 3 where no finding says more."""
    (drafter / SHARD).unlink()
    code, document = run("check", drafter, "--port", port)
    assert (code, of_process(document)) == (3, [])
    assert lacks(document)[0].startswith(f"the file as the process on port {port} sees it: nothing listens")


def test_a_difference_seen_from_a_port(drafter: Path, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """``diff --port`` reads B through the root of the process; with none there it could not look."""
    with serving(port) as pid:
        code = main(["diff", str(CLEAN), str(drafter), "--port", str(port), "--json"])
        document = json.loads(capsys.readouterr().out)
    assert (code, document["b"]["path"]) == (0, f"/proc/{pid}/root{os.path.realpath(drafter)}/config.json")
    assert main(["diff", str(CLEAN), str(drafter), "--port", str(port), "--json"]) == 3
    assert "nothing listens" in json.loads(capsys.readouterr().out)["error"]["found"]


def test_one_process_has_one_name(drafter: Path, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """``--pid`` and ``--port`` at once is a usage error."""
    assert main(["check", str(drafter), "--port", str(port), "--pid", "1", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["subject"] == "--port"


@pytest.mark.parametrize("level", ["L6", "L7"])
def test_a_level_about_a_process_needs_one(drafter: Path, run: Run, level: str) -> None:
    """Refused before anything is written or recorded."""
    before = (drafter / "config.json").read_bytes()
    (drafter / "new.json").write_bytes(b'{"a": 1}')
    code, document = run("write", drafter / "new.json", drafter / "config.json", "--level", level)
    assert (code, document["error"]["subject"]) == (2, "--level")
    assert (drafter / "config.json").read_bytes() == before
    assert run("history")[1]["entries"] == []


def test_who_reads_the_new_file_is_told_in_the_receipt(drafter: Path, port: int, run: Run) -> None:
    """A write held against the process on a port: it sees the file, and must be restarted to have it."""
    with serving(port, drafter / SHARD):
        code, receipt = run("write", CLEAN, drafter / "config.json", "--level", "L7", "--port", port)
    assert code == 3
    held = {item["level"]: item for item in receipt["evidence"]}
    assert held["L6"]["holds"]
    assert not held["L7"]["holds"]
    assert "restart it" in held["L7"]["how"]


@pytest.mark.root
def test_a_port_in_another_network_namespace(drafter: Path, port: int, run: Run) -> None:
    """A container's own network: its listener is found where nobody listens on that port here."""
    with serving(
        port, drafter / SHARD, wrap=("unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")
    ):
        (drafter / SHARD).unlink()
        document = run("check", drafter, "--port", port)[1]
    assert of_process(document) == [("consumer-maps-other-shard", "error", SHARD)]


@pytest.mark.root
def test_a_link_in_a_container_leads_to_its_own_root(drafter: Path, tmp_path: Path, run: Run) -> None:
    """An absolute link is followed from the root of the process, not from ours."""
    jail = tmp_path / "jail"
    (jail / "models" / "real").mkdir(parents=True)
    for name in ("usr", "lib", "lib64", "proc"):
        (jail / name).mkdir()
    (jail / str(drafter).lstrip("/")).parent.mkdir(parents=True)
    (jail / str(drafter).lstrip("/")).symlink_to("/models/real")
    (jail / "models" / "real" / "config.json").write_bytes(b'{"other": true}')
    script = (
        f"for d in usr lib lib64; do mount --rbind /$d {jail}/$d; done; mount --bind /proc {jail}/proc; "
        f"exec chroot {jail} sleep 60"
    )
    with subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script]) as process:
        until = time.monotonic() + 10
        while Path(f"/proc/{process.pid}/root").readlink() == Path("/"):
            assert time.monotonic() < until
            time.sleep(0.02)
        document = run("check", drafter, "--pid", process.pid)[1]
        process.kill()
    assert ("consumer-sees-other-file", "error", "config.json") in of_process(document)
