"""Many writers at once, some that know no lock: no acknowledged update is lost, foreign changes are told."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from draftproof.deploy.diagnosis.diagnose import Cause
from draftproof.deploy.fleet.verify import verify
from draftproof.deploy.hosts import look
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.writing.receipt import FileState
from draftproof.deploy.writing.refusals import Conflict
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.host.local import LocalHost
from draftproof.names import Sha256
from totals import record

pytestmark = [pytest.mark.slow]
WRITERS, INCREMENTS = 4, 12
FOREIGN = """
import os, sys, time
path, how, until = sys.argv[1], sys.argv[2], time.monotonic() + float(sys.argv[3])
size = os.stat(path).st_size
count = 0
while time.monotonic() < until:
    count += 1
    content = (b'{"foreign": %d}' % count).ljust(size)
    if how == "in place":
        status = os.stat(path)
        with open(path, "r+b") as stream:
            stream.write(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        with open(path + ".foreign", "wb") as stream:
            stream.write(content)
        os.replace(path + ".foreign", path)
    time.sleep(0.002)
print(count)
"""


def export(fault: str, **counts: int) -> None:
    """One line of totals."""
    record("S5 concurrency", fault, counts)


def place_of(path: Path) -> Place:
    """A file of this machine."""
    return Place("", str(path))


def increment(path: Path, ledger: Ledger, number: int) -> int:
    """One acknowledged increment of the counter by compare-and-swap; the conflicts on the way to it."""
    host, conflicts = LocalHost(sys.executable), 0
    while True:
        seen = look(host, place_of(path), nonce=f"{number:016x}")
        assert seen.data is not None
        assert seen.sha256 is not None
        content = json.dumps({"count": json.loads(seen.data)["count"] + 1}).encode()
        order = WriteOrder(place_of(path), content, "test", expected_old=Sha256(seen.sha256), patience_s=60)
        try:
            receipt = verified_write(host, order, ledger)
        except Conflict:
            conflicts += 1
            continue
        # Another writer may have gone on from ours before it is read back; the old content is never found.
        assert receipt.state is not FileState.OLD
        return conflicts


def test_no_acknowledged_increment_is_lost(tmp_path: Path) -> None:
    """Four writers, twelve increments each, one lock: the counter ends at forty-eight."""
    path = tmp_path / "model" / "counter.json"
    path.parent.mkdir()
    path.write_text('{"count": 0}')
    ledgers = [Ledger(tmp_path / f"ledger{number}") for number in range(WRITERS)]

    def work(number: int) -> int:
        return sum(increment(path, ledgers[number], number) for _ in range(INCREMENTS))

    with ThreadPoolExecutor(WRITERS) as pool:
        conflicts = sum(pool.map(work, range(WRITERS)))
    wanted, found = WRITERS * INCREMENTS, json.loads(path.read_text())["count"]
    export("four writers, compare-and-swap", points=wanted, lost=wanted - found, conflicts=conflicts)
    assert found == wanted
    assert conflicts > 0, "without one conflict nothing was shown"


@pytest.mark.parametrize("how", ["in place", "rename over"])
def test_a_writer_that_knows_no_lock_is_never_overwritten_unseen(tmp_path: Path, how: str) -> None:
    """What we wrote or what they wrote is there whole, and a write of ours that met theirs says so.

    The foreign writer changes the file every few milliseconds, in place with size and mtime forged, or by
    renaming over it.
    """
    path = tmp_path / "model" / "config.json"
    path.parent.mkdir()
    path.write_bytes(b'{"foreign": 0}'.ljust(40))
    ledger, host = Ledger(tmp_path / "ledger"), LocalHost(sys.executable)
    told = []
    command = [sys.executable, "-I", "-S", "-c", FOREIGN, str(path), how, "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as foreign:
        number = 0
        while foreign.poll() is None:
            number += 1
            content = (b'{"ours": %d}' % number).ljust(40)
            try:
                receipt = verified_write(host, WriteOrder(place_of(path), content, "test"), ledger)
            except Conflict:
                told.append("conflict")
                continue
            told.append(receipt.state.value)
        assert foreign.stdout is not None
        assert int(foreign.stdout.read()) > 20
    kinds = set(told)
    export(f"a writer without the lock: {how}", points=len(told), **{k: told.count(k) for k in sorted(kinds)})
    assert kinds <= {"conflict", "new", "other", "old"}
    assert "conflict" in kinds or "other" in kinds
    json.loads(path.read_bytes())
    left = [each.name for each in path.parent.iterdir() if each != path]
    assert all(name.endswith((".swap", ".foreign")) for name in left), left


@pytest.mark.parametrize("after_s", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("how", ["in place", "rename over", "removed", "back to the old"])
def test_a_change_after_the_write_is_told(tmp_path: Path, how: str, after_s: float) -> None:
    """The verification at T+n reports it, however carefully size and time were kept."""
    path = tmp_path / "model" / "config.json"
    path.parent.mkdir()
    old, new = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n'
    path.write_bytes(old)
    ledger, host = Ledger(tmp_path / "ledger"), LocalHost(sys.executable)
    verified_write(host, WriteOrder(place_of(path), new, "test"), ledger)
    assert verify(host, place_of(path), new, ledger).diagnosis is None
    time.sleep(after_s)
    before = path.stat()
    if how == "in place":
        path.write_bytes(b'{"taps": [9, 99]}\n')
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif how == "rename over":
        path.with_name("x").write_bytes(b'{"taps": [9, 99]}\n')
        path.with_name("x").replace(path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif how == "removed":
        path.unlink()
    else:
        path.write_bytes(old)
    found = verify(host, place_of(path), new, ledger).diagnosis
    export(f"changed {after_s} s after the write: {how}", points=1, told=int(found is not None))
    assert found is not None
    assert found.cause is (Cause.REVERTED if how == "back to the old" else Cause.UNKNOWN)
