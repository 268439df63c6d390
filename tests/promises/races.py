"""Other writers, before, during and after."""

import fcntl
import os
import re
import threading
import time

from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing import refusals
from draftproof.deploy.writing.receipt import FileState
from promises.bench import FOREIGN, NEW, OLD, Bench, MeddlingHost, check


def foreign_in_place(bench: Bench) -> None:
    """Overwrite in place, same size, mtime forged back."""
    before = bench.target.stat()
    bench.target.write_bytes(FOREIGN)
    os.utime(bench.target, ns=(before.st_atime_ns, before.st_mtime_ns))


@check
def foreign_writer_before_the_order_is_a_conflict(bench: Bench) -> None:
    """Same inode, size and mtime: still noticed, and the foreign bytes stay."""
    try:
        bench.write(MeddlingHost(between=lambda: foreign_in_place(bench)))
    except refusals.Conflict:
        assert bench.target.read_bytes() == FOREIGN
    else:
        raise AssertionError("a foreign change was overwritten")


@check
def foreign_rename_in_the_last_moment_is_swapped_back(bench: Bench) -> None:
    """A file renamed over the target between the last look and the swap comes back out."""

    def meddle() -> None:
        until = time.monotonic() + 5
        while time.monotonic() < until and not list(bench.target.parent.glob(".*.swap")):
            time.sleep(0.002)
        other = bench.directory / "other"
        other.write_bytes(FOREIGN)
        other.replace(bench.target)

    meddler = threading.Thread(target=meddle)
    meddler.start()
    try:
        bench.write(MeddlingHost(inject="renameat2:delay_enter=400000:when=1"))
    except refusals.Conflict:
        meddler.join()
        assert bench.target.read_bytes() == FOREIGN
        assert [path.name for path in bench.target.parent.iterdir()] == ["config.json"]
    else:
        meddler.join()
        raise AssertionError("a foreign file was lost")


@check
def foreign_create_in_the_last_moment_is_a_conflict(bench: Bench) -> None:
    """A name taken between the last look and the publication is not overwritten."""
    path = bench.target.with_name("new.json")

    def meddle() -> None:
        time.sleep(0.05)
        until = time.monotonic() + 5
        while time.monotonic() < until and not any(
            part.stat().st_mode & 0o044 for part in bench.target.parent.glob(".new.json*.part")
        ):
            time.sleep(0.002)
        time.sleep(0.1)
        path.write_bytes(FOREIGN)

    meddler = threading.Thread(target=meddle)
    meddler.start()
    try:
        bench.write(MeddlingHost(inject="renameat2:delay_enter=600000:when=1"), path=path)
    except refusals.Conflict:
        meddler.join()
        assert path.read_bytes() == FOREIGN
    else:
        meddler.join()
        raise AssertionError("a foreign file was overwritten")


@check
def lock_is_waited_for(bench: Bench) -> None:
    """While another holds the directory's lock nothing is written; after the patience it is a conflict."""
    held = os.open(bench.target.parent, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        bench.refused("write-conflict", patience_s=0.3)
    finally:
        os.close(held)


@check
def read_back_is_a_read(bench: Bench) -> None:
    """What is there when it is read counts, not what was published."""
    receipt = bench.write(MeddlingHost(before_reading=lambda: foreign_in_place(bench)))
    assert (receipt.level, receipt.state) == (Level.L1, FileState.OTHER)


@check
def read_back_is_the_same_file_place_and_boot(bench: Bench) -> None:
    """The same bytes in another inode, from another boot, or under a path that moved, are not L2."""

    def swap_inode() -> None:
        other = bench.directory / "other"
        other.write_bytes(NEW)
        other.replace(bench.target)

    assert bench.write(MeddlingHost(before_reading=swap_inode)).level is Level.L1
    bench.write(content=OLD)

    def other_boot(reply: bytes) -> bytes:
        return re.sub(rb'"boot_id": "....', b'"boot_id": "0000', reply)

    assert bench.write(MeddlingHost(change_reply=other_boot)).level is Level.L1
    bench.write(content=OLD)

    def move() -> None:
        bench.target.parent.rename(bench.directory / "moved")
        bench.target.parent.symlink_to("moved")

    assert bench.write(MeddlingHost(before_reading=move)).level is Level.L1
