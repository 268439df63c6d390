"""Every system call of a write made to fail, lie or kill: the target is old or new, and no word is false."""

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.ledger.objects import sha256_hex
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import FileState, Receipt
from draftproof.deploy.writing.refusals import OutcomeUnknown
from draftproof.host.local import LocalHost
from draftproof.host.program import program_argv
from totals import record
from tracing import NEW, OLD, Point, TracedHost, attempt, points_of_a_write

pytestmark = [pytest.mark.root, pytest.mark.slow]


@dataclass(frozen=True)
class Outcome:
    """One attempt under one fault."""

    point: Point
    was_injected: bool
    complaint: str
    """What was wrong with it; empty for nothing."""

    kind: str
    """acknowledged, told (a receipt short of L2, or an error), or unknown."""


def judged(fault: str, point: Point, directory: Path, *, is_old_there: bool = True) -> Outcome:
    """Write once under the fault, hold what is said against what is there, and write again without it."""
    host = TracedHost(directory / "trace", f"{point.name}:{fault}:when={point.number}")
    return judged_on(host, point, directory, is_old_there=is_old_there)


def judged_on(host: TracedHost, point: Point, directory: Path, *, is_old_there: bool = True) -> Outcome:
    """The same on a host of its own."""
    (directory / "model").mkdir(parents=True)
    target = directory / "model" / "config.json"
    if is_old_there:
        target.write_bytes(OLD)
    ledger = Ledger(directory / "ledger")
    result = attempt(host, target, ledger)
    found = target.read_bytes() if target.exists() else None
    complaint, kind = complaint_about(result, found, is_old_there=is_old_there)
    if not complaint and len(list(target.parent.iterdir())) > int(found is not None):
        complaint = complaint_about_leftovers(target, ledger)
    return Outcome(point, host.was_injected, complaint, kind)


def complaint_about(result: object, found: bytes | None, *, is_old_there: bool) -> tuple[str, str]:
    """What is false about an answer, given what the file holds."""
    if found not in {NEW, OLD if is_old_there else None}:
        return f"neither old nor new: {found!r}", "torn"
    if not isinstance(result, Receipt):
        is_open = isinstance(result, OutcomeUnknown)
        if not is_open and found == NEW:
            return f"published, yet told as not done: {result}", "told"
        return "", "unknown" if is_open else "told"
    return complaint_about_receipt(
        result, is_new=found == NEW, before=sha256_hex(OLD) if is_old_there else "absent"
    )


def complaint_about_receipt(receipt: Receipt, *, is_new: bool, before: str) -> tuple[str, str]:
    """What is false about a receipt."""
    if (receipt.state is FileState.NEW) != is_new:
        return f"state {receipt.state}, file {'new' if is_new else 'old'}", "told"
    if receipt.level < Level.L2:
        return "", "told"
    if not is_new:
        return f"{receipt.level.name} acknowledged, file old", "acknowledged"
    is_told = receipt.old_sha256 == before
    return "" if is_told else f"the pre-image is told as {receipt.old_sha256}", "acknowledged"


def complaint_about_leftovers(target: Path, ledger: Ledger) -> str:
    """Whether the next write, without a fault, succeeds and cleans up."""
    receipt = attempt(LocalHost(sys.executable), target, ledger)
    if not isinstance(receipt, Receipt) or receipt.level < Level.L2:
        return f"the next write does not succeed: {receipt}"
    names = sorted(path.name for path in target.parent.iterdir())
    return "" if names == ["config.json"] else f"left behind: {names}"


def sweep(fault: str, points: list[Point], directory: Path, *, is_old_there: bool = True) -> list[Outcome]:
    """One judged write a point, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return list(
            pool.map(
                lambda point: judged(fault, point, directory / str(point), is_old_there=is_old_there), points
            )
        )


def export(suite: str, fault: str, outcomes: list[Outcome]) -> None:
    """Add one line of totals."""
    kinds = Counter(outcome.kind for outcome in outcomes if outcome.was_injected)
    record(suite, fault, {"points": len(outcomes), "injected": sum(kinds.values()), **kinds})


@pytest.fixture
def points(tmp_path: Path) -> list[Point]:
    """The calls of one traced replace."""
    (tmp_path / "plain").mkdir()
    target = tmp_path / "plain" / "config.json"
    target.write_bytes(OLD)
    host = TracedHost(tmp_path / "trace")
    receipt = attempt(host, target, Ledger(tmp_path / "ledger"))
    assert isinstance(receipt, Receipt), receipt
    points = points_of_a_write(host.trace)
    assert len(points) > 100
    return points


ERRORS = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EINTR")


@pytest.mark.parametrize("fault", ["signal=SIGKILL", *(f"error={name}" for name in ERRORS)])
def test_any_call_may_fail_or_be_the_last(points: list[Point], tmp_path: Path, fault: str) -> None:
    """At every call: old or new and nothing else, no false word, and the next write cleans up."""
    outcomes = sweep(fault, points, tmp_path / "sweep")
    export("S1 system calls", fault, outcomes)
    assert not [outcome for outcome in outcomes if outcome.complaint]
    injected = [outcome for outcome in outcomes if outcome.was_injected]
    assert len(injected) >= 0.95 * len(points), "the points no longer lie where the trace says"


def test_creating_a_file_may_fail_anywhere(points: list[Point], tmp_path: Path) -> None:
    """The same for a free name, at the calls that change something."""
    changing = [
        Point("openat", point.number) for point in points if point.name == "openat"
    ] + [Point(name, 1) for name in ("renameat2", "fchmod", "fsync", "flock")]  # fmt: skip
    outcomes = sweep("signal=SIGKILL", changing, tmp_path / "sweep", is_old_there=False)
    export("S1 system calls, new file", "signal=SIGKILL", outcomes)
    assert not [outcome for outcome in outcomes if outcome.complaint]
    assert len(outcomes) > 15


LIES = [
    ("write", f"retval={len(NEW)}"),
    ("write", "retval=1"),
    ("renameat", "retval=0"),
    ("renameat2", "retval=0"),
    ("fchmod", "retval=0"),
    ("unlinkat", "retval=0"),
    ("flock", "retval=0"),
    ("fsync", "retval=0"),
    ("read", "retval=0"),
    ("pread64", "retval=0"),
    ("newfstatat", "retval=0"),
]
"""A lying fsync cannot be found out; what is asked is that nothing is said but that it answered 0."""


@pytest.mark.parametrize(("name", "lie"), LIES)
def test_a_call_that_lies_is_never_believed(points: list[Point], tmp_path: Path, name: str, lie: str) -> None:
    """Success reported and nothing done: old or new, and nothing is acknowledged that is not so."""
    numbers = [point for point in points if point.name == name]
    outcomes = sweep(lie, numbers, tmp_path / "sweep")
    export("S1 system calls", f"{name} lies: {lie}", outcomes)
    assert numbers
    assert not [outcome for outcome in outcomes if outcome.complaint]


def test_a_file_that_may_not_grow_is_cut_at_every_byte(tmp_path: Path) -> None:
    """A write that takes ``n`` bytes and then no more, for every n: the old file stays, and that is told."""
    outcomes = []
    for limit in range(len(NEW)):
        helper = ("prlimit", f"--fsize={limit}", *program_argv(sys.executable, "helper"))
        host = TracedHost(tmp_path / f"trace{limit}", helper=helper)
        outcomes.append(judged_on(host, Point("write", limit), tmp_path / str(limit)))
        assert b"EFBIG" in host.trace.read_bytes(), "the limit was not met"
    export(
        "S1 system calls",
        "write cut at byte n, then EFBIG",
        [replace(o, was_injected=True) for o in outcomes],
    )
    assert not [outcome for outcome in outcomes if outcome.complaint]
    assert {outcome.kind for outcome in outcomes} == {"told"}


def test_a_write_that_takes_a_part_is_gone_on_with(tmp_path: Path) -> None:
    """Short writes without an error, down to one byte a call: the file is whole and acknowledged."""
    outcomes = []
    for size in (1, 2, 7, len(NEW) - 1):
        *start, code = program_argv(sys.executable, "helper")
        short = f"import os\nw=os.write\nos.write=lambda f,b:w(f,bytes(b)[:{size}])\n"
        host = TracedHost(tmp_path / f"trace{size}", helper=(*start, short + code))
        outcomes.append(judged_on(host, Point("write", size), tmp_path / str(size)))
        assert host.trace.read_text().count(f"= {size}\n") >= len(NEW) // size
    export("S1 system calls", "write takes n bytes a call", [replace(o, was_injected=True) for o in outcomes])
    assert not [outcome for outcome in outcomes if outcome.complaint]
    assert {outcome.kind for outcome in outcomes} == {"acknowledged"}


@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EDQUOT", "EROFS"])
def test_a_failed_file_sync_publishes_nothing_and_is_not_repeated(
    points: list[Point], tmp_path: Path, error: str
) -> None:
    """The first fsync fails: the old file stays, the reason is told, and no second fsync is tried."""
    first = next(point for point in points if point.name == "fsync")
    directory = tmp_path / "one"
    (directory / "model").mkdir(parents=True)
    target = directory / "model" / "config.json"
    target.write_bytes(OLD)
    host = TracedHost(directory / "trace", f"fsync:error={error}:when={first.number}")
    receipt = attempt(host, target, Ledger(directory / "ledger"))
    assert isinstance(receipt, Receipt)
    assert (target.read_bytes(), receipt.state, receipt.level) == (OLD, FileState.OLD, Level.L0)
    assert "fsync of the file failed" in receipt.evidence[1].how
    assert host.trace.read_text().count("fsync(") == 1


def test_a_failed_directory_sync_is_published_durability_unknown(points: list[Point], tmp_path: Path) -> None:
    """The second fsync fails: the new file is visible, L2 holds, and L3 says why it does not."""
    second = [point for point in points if point.name == "fsync"][1]
    (tmp_path / "model").mkdir()
    target = tmp_path / "model" / "config.json"
    target.write_bytes(OLD)
    host = TracedHost(tmp_path / "trace", f"fsync:error=EIO:when={second.number}")
    receipt = attempt(host, target, Ledger(tmp_path / "ledger"))
    assert isinstance(receipt, Receipt)
    assert (target.read_bytes(), receipt.state, receipt.level) == (NEW, FileState.NEW, Level.L2)
    assert "durability unknown" in receipt.evidence[3].how


def test_the_harness_can_fail(tmp_path: Path) -> None:
    """The naive writer, killed at each of its calls, tears the file: a green sweep above means something."""
    halves = f"f.write({NEW[:9]!r});f.write({NEW[9:]!r})"
    script = f"import sys;f=open(sys.argv[1],'wb',buffering=0);{halves};f.close()"
    torn = 0
    for number in (1, 2):
        target = tmp_path / "config.json"
        target.write_bytes(OLD)
        host = LocalHost(sys.executable)
        fault = f"inject=write:signal=SIGKILL:when={number}"
        call = [host.python, "-I", "-S", "-c", script, str(target)]
        host.run(["strace", "-qq", "-o", "/dev/null", "-e", fault, *call], timeout_s=20)
        torn += target.read_bytes() not in {OLD, NEW}
    assert torn == 2
