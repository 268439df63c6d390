"""What the writer does, call by call, and what it says when a call fails or lies."""

import os
import re
import threading
import time
from pathlib import Path

from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import FileState
from promises.bench import FOREIGN, NEW, OLD, Bench, MeddlingHost, check, positions


@check
def replaces(bench: Bench) -> None:
    """New bytes, old mode, nothing beside, both contents kept, recorded before and after."""
    bench.target.chmod(0o640)
    receipt = bench.write()
    assert (bench.target.read_bytes(), receipt.state) == (NEW, FileState.NEW)
    assert receipt.level >= Level.L2
    assert bench.target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in bench.target.parent.iterdir()] == ["config.json"]
    assert bench.ledger.objects.fetch(receipt.old_sha256) == OLD
    assert [entry.kind for entry in bench.ledger.read().entries] == ["write", "receipt"]


@check
def calls_come_in_order(bench: Bench) -> None:
    """File sync after the write and before the rename, a second descriptor between, directory sync last."""
    lines = bench.trace()
    (created,) = positions(lines, r"openat\(.*\.part.*O_EXCL")
    writer = re.search(r"= (\d+)$", lines[created])
    assert writer
    wrote = positions(lines[created:], rf"^write\({writer.group(1)}, ")[-1] + created
    syncs = positions(lines, r"^fsync\(")
    assert len(syncs) == 2, "one sync a descriptor"
    assert lines[syncs[0]].startswith(f"fsync({writer.group(1)})"), "another descriptor was synced"
    closed = positions(lines[created:], rf"^close\({writer.group(1)}\)")[0] + created
    assert created < wrote < syncs[0] < closed
    read_again = positions(lines, r"openat\(.*\.part.*O_RDONLY")
    published = positions(lines, r"^rename.*\.swap.*config\.json.*EXCHANGE")
    assert read_again
    assert published
    assert syncs[0] < read_again[0] < published[0] < syncs[1]


@check
def failed_sync_publishes_nothing(bench: Bench) -> None:
    """Fsync EIO: old stays, one attempt."""
    host = MeddlingHost(inject="fsync:error=EIO:when=1", trace=str(bench.directory / "trace"))
    receipt = bench.write(host)
    assert (bench.target.read_bytes(), receipt.level, receipt.state) == (OLD, Level.L0, FileState.OLD)
    assert (bench.directory / "trace").read_text().count("fsync(") == 1
    assert [path.name for path in bench.target.parent.iterdir()] == ["config.json"]


@check
def failed_directory_sync_is_told(bench: Bench) -> None:
    """The second fsync fails: L2, and L3 says why not."""
    receipt = bench.write(MeddlingHost(inject="fsync:error=EIO:when=2"))
    assert receipt.level is Level.L2
    assert "durability unknown" in receipt.evidence[3].how


@check
def lying_write_is_not_published(bench: Bench) -> None:
    """A write that reports success and stores nothing is found before the swap."""
    trace = bench.trace()
    bench.write(content=OLD)
    number = len([line for line in trace[: positions(trace, "O_EXCL")[0]] if line.startswith("write(")]) + 1
    receipt = bench.write(MeddlingHost(inject=f"write:retval={len(NEW)}:when={number}"))
    assert (bench.target.read_bytes(), receipt.level) == (OLD, Level.L0)


@check
def same_size_garbage_is_not_published(bench: Bench) -> None:
    """A temporary file that somebody filled with other bytes of the same length is found."""
    trace = str(bench.directory / "trace")

    def meddle() -> None:
        until = time.monotonic() + 5
        while time.monotonic() < until:
            for part in bench.target.parent.glob(".*.part"):
                if part.stat().st_size == len(NEW):
                    part.write_bytes(FOREIGN)
                    return
            time.sleep(0.002)

    meddler = threading.Thread(target=meddle)
    meddler.start()
    receipt = bench.write(MeddlingHost(inject="fsync:delay_enter=400000:when=1", trace=trace))
    meddler.join()
    assert (bench.target.read_bytes(), receipt.level) == (OLD, Level.L0)


@check
def lost_receipt_is_not_acknowledged(bench: Bench) -> None:
    """Killed after the swap: the bytes are there, and the level stays where it is shown."""
    receipt = bench.write(MeddlingHost(inject="unlinkat:signal=SIGKILL:when=1"))
    assert (bench.target.read_bytes(), receipt.state, receipt.level) == (NEW, FileState.NEW, Level.L1)
    receipt = bench.write()
    assert any("leftover" in note for note in receipt.notes)
    assert [path.name for path in bench.target.parent.iterdir()] == ["config.json"]


@check
def foreign_leftovers_are_kept(bench: Bench) -> None:
    """A swapped-out content whose bytes are nowhere else is never removed."""
    stale = bench.target.with_name(".config.json.draftproof-aa-bb-cc.swap")
    stale.write_bytes(FOREIGN)
    bench.write()
    assert stale.read_bytes() == FOREIGN


@check
def memory_is_not_durable(bench: Bench) -> None:
    """tmpfs: L2 and no more."""
    path = Path("/dev/shm") / f"draftproof-probe-{os.getpid()}.json"  # noqa: S108 - a tmpfs is the point
    try:
        receipt = bench.write(path=path)
    finally:
        path.unlink(missing_ok=True)
    assert receipt.level is Level.L2
