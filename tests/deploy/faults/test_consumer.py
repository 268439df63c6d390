"""A real process that loads a config and maps a shard: has it what we wrote, and which shard does it hold."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from draftproof.deploy.fleet.verify import verify
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.process import Process
from draftproof.deploy.proof.level import Evidence, Level
from draftproof.deploy.writing.receipt import Receipt
from draftproof.host.local import LocalHost

Put = Callable[..., Receipt]
OLD, NEW = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n'
SERVER = """
import json, mmap, sys
shard = open(sys.argv[2], "rb")
held = mmap.mmap(shard.fileno(), 0, prot=mmap.PROT_READ)
print(json.load(open(sys.argv[1]))["taps"], flush=True)
sys.stdin.readline()
"""


@contextmanager
def serving(config: Path, shard: Path) -> Iterator[int]:
    """A process that has read the config, closed it, and keeps the shard mapped."""
    command = [sys.executable, "-I", "-S", "-c", SERVER, str(config), str(shard)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline().startswith(b"[1, 1")
        try:
            yield child.pid
        finally:
            child.stdin.close()
            child.wait(10)


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, Path]:
    """A config and a shard."""
    config, shard = tmp_path / "model" / "config.json", tmp_path / "model" / "model.safetensors"
    config.parent.mkdir()
    config.write_bytes(OLD)
    shard.write_bytes(b"\0" * 5000)
    return config, shard


def levels(path: Path, content: bytes, ledger: Ledger, pid: int) -> dict[Level, Evidence]:
    """The evidence of a verification that asks what the process has."""
    verdict = verify(LocalHost(sys.executable), Place("", str(path)), content, ledger, process=Process(pid))
    return {item.level: item for item in verdict.evidence}


def test_one_that_was_not_restarted_cannot_have_the_new_config(
    put: Put, model: tuple[Path, Path], ledger: Ledger
) -> None:
    """It sees the new file, it started before it: the check for a forgotten restart needs no privilege."""
    config, shard = model
    with serving(config, shard) as pid:
        put(config, NEW)
        found = levels(config, NEW, ledger, pid)
    assert found[Level.L6].holds
    assert not found[Level.L7].holds
    assert "restart" in found[Level.L7].how


def test_one_that_started_later_may_have_read_it(put: Put, model: tuple[Path, Path], ledger: Ledger) -> None:
    """A config is read and closed: that it was read is not claimed."""
    config, shard = model
    put(config, NEW)
    with serving(config, shard) as pid:
        found = levels(config, NEW, ledger, pid)
    assert found[Level.L6].holds
    assert not found[Level.L7].holds
    assert found[Level.L7].how.startswith("cannot tell")


def test_a_replaced_shard_is_held_in_its_old_inode(
    put: Put, model: tuple[Path, Path], ledger: Ledger
) -> None:
    """The mapping pins the inode it was made from; only a process that maps the new one has read it."""
    config, shard = model
    with serving(config, shard) as pid:
        put(shard, b"\1" * 5000)
        found = levels(shard, b"\1" * 5000, ledger, pid)
        assert found[Level.L6].holds
        assert not found[Level.L7].holds
    with serving(config, shard) as pid:
        assert levels(shard, b"\1" * 5000, ledger, pid)[Level.L7].holds
