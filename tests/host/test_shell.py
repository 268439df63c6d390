"""host/*.sh: the write without Python, on a real shell: the same frames, and old or new whatever is cut."""

import base64
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from draftproof.host.processes import started_ns
from draftproof.host.program import request
from shell_program import NEW, OLD, digest, put, seen


def target_in(directory: Path) -> Path:
    """A file with old content under a name that a shell would mangle."""
    path = directory / "a 'b' $HOME \\n é*" / '-config "x".json'
    path.parent.mkdir()
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The same in the test's own directory."""
    return target_in(tmp_path)


def test_replaces_and_keeps_mode_and_attributes(target: Path) -> None:
    """New bytes, old mode and extended attributes, the pre-image in the first frame, nothing left over."""
    os.setxattr(target, "user.note", b"kept")
    frames = put(target)
    assert target.read_bytes() == NEW
    assert (target.stat().st_mode & 0o7777, os.getxattr(target, "user.note")) == (0o640, b"kept")
    assert base64.b64decode(frames["preimage"]["data"]) == OLD
    assert frames["receipt"]["directory_sync"] == "ok"
    assert frames["receipt"]["identity"]["ino"] == target.stat().st_ino
    assert any("python3 is not there" in limit for limit in frames["receipt"]["limits"])
    assert list(target.parent.iterdir()) == [target]


def test_creates_with_the_users_mask(target: Path) -> None:
    """A free name is taken, never overwritten."""
    path = target.with_name("new.json")
    assert put(path)["preimage"]["old"] is None
    assert path.read_bytes() == NEW
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o7777 == 0o666 & ~mask


def test_an_order_cut_anywhere_changes_nothing(target: Path) -> None:
    """Every part of the order that ends early leaves the old file and no leftover."""
    whole = len(request({"expected_old": digest(OLD), "length": len(NEW), "sha256": digest(NEW)})) + len(NEW)
    places = [*range(0, whole, 61), whole]
    for at in places:
        frames = put(target, order=lambda data, at=at: data[:at])  # type: ignore[misc]
        assert "receipt" not in frames
        assert target.read_bytes() == OLD
        assert list(target.parent.iterdir()) == [target]
    assert len(places) > 12


def spoiled(data: bytes) -> bytes:
    """One byte of the body changed."""
    return data[:-1] + b"!"


def longer(data: bytes) -> bytes:
    """One byte more than announced."""
    return data + b"!"


@pytest.mark.parametrize(("order", "code"), [(spoiled, "staged-differs"), (longer, "request-long")])
def test_a_body_that_is_not_the_order_changes_nothing(
    target: Path, order: Callable[[bytes], bytes], code: str
) -> None:
    """Length and digest are both held."""
    assert put(target, order=order)["refused"]["code"] == code
    assert list(target.parent.iterdir()) == [target]
    assert target.read_bytes() == OLD


def test_a_late_order_is_refused(target: Path) -> None:
    """A commit after the deadline does not happen."""
    assert put(target, late_by_ms=1)["refused"]["code"] == "late"
    assert target.read_bytes() == OLD


def test_a_foreign_write_in_between_is_a_conflict(target: Path) -> None:
    """In place with the same size and a forged mtime, or renamed over: both are noticed."""

    def in_place() -> None:
        before = target.stat()
        target.write_bytes(OLD.swapcase())
        os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))

    def renamed_over() -> None:
        other = target.with_name("other")
        other.write_bytes(target.read_bytes())
        other.replace(target)

    for meanwhile in (in_place, renamed_over):
        assert put(target, meanwhile=meanwhile)["refused"]["code"] == "conflict"
    assert target.read_bytes() == OLD.swapcase()


def test_a_name_that_appears_meanwhile_is_a_conflict(target: Path) -> None:
    """Creation never overwrites."""
    path = target.with_name("new.json")
    frames = put(path, meanwhile=lambda: path.write_bytes(b"theirs"))
    assert frames["refused"]["code"] == "conflict"
    assert path.read_bytes() == b"theirs"


def test_a_killed_writers_leftover_is_removed(target: Path) -> None:
    """Under the lock only; another suffix stays and is named."""
    left = target.with_name(f".{target.name}.draftproof-0-0-0.part")
    swap = target.with_name(f".{target.name}.draftproof-0-0-0.swap")
    left.write_bytes(b"half")
    swap.write_bytes(b"whose?")
    receipt = put(target)["receipt"]
    assert (receipt["removed"], receipt["kept"]) == ([left.name], [swap.name])
    assert (left.exists(), swap.exists()) == (False, True)


@pytest.mark.parametrize(
    "code",
    [
        "symlink",
        "not-regular",
        "many-names",
        "read-only",
        "parent-foreign-writable",
        "parent-missing",
        "hub-cache",
        "escapes-root",
        "name-too-long",
    ],
)
def test_refuses_as_the_python_program_does(target: Path, code: str) -> None:
    """The same places, by the same codes; nothing is changed."""
    path, root = target.with_name("x.json"), "/"
    hub = target.parent / "models--a--b" / "blobs"
    if code == "symlink":
        path.symlink_to(target.name)
    elif code == "not-regular":
        path.mkdir()
    elif code == "many-names":
        path.hardlink_to(target)
    elif code == "read-only":
        path.write_bytes(OLD)
        path.chmod(0o444)
    elif code == "parent-foreign-writable":
        target.parent.chmod(0o777)
    elif code == "parent-missing":
        path = target.parent / "no" / "x.json"
    elif code == "hub-cache":
        hub.mkdir(parents=True)
        path = hub / "x"
    elif code == "escapes-root":
        root = str(target.parent / "elsewhere")
    else:
        path = target.with_name("x" * 151)
    assert put(path, root=root)["refused"]["code"] == code
    assert target.read_bytes() == OLD


def test_a_link_above_the_target_is_refused(target: Path) -> None:
    """The directory must be reached without one."""
    link = target.parent.with_name("link")
    link.symlink_to(target.parent.name)
    assert put(link / target.name)["refused"]["code"] == "symlink"


def test_reads_what_is_there(target: Path) -> None:
    """Digest, bytes, identity and mount; past the cache where asked; whose port it is only Python finds."""
    found = seen(target, is_device_asked=1, port=1)
    assert found["seen"]["sha256"] == digest(OLD)
    assert base64.b64decode(found["seen"]["data"]) == OLD
    status = target.stat()
    assert found["seen"]["identity"]["ctime_ns"] == status.st_ctime_ns
    assert found["seen"]["identity"]["mode"] == 0o640
    assert found["seen"]["real_path"] == str(target)
    assert found["device"].get("sha256", digest(OLD)) == digest(OLD)
    assert "reason" in found["consumer"]
    target.unlink()
    assert seen(target)["seen"]["kind"] == "absent"
    assert seen(target.parent)["seen"]["kind"] == "other"
    link = target.with_name("link")
    link.symlink_to("nowhere")
    assert seen(link)["seen"]["is_dangling"]
    assert seen(target.with_name("config") / "x")["seen"]["kind"] == "absent"


def test_waits_for_a_writer_of_ours(target: Path) -> None:
    """The reader settles once the lock is free; a held lock is told, not waited for without end."""
    assert seen(target, settle_ms=3000)["is_quiet"]
    start = time.monotonic()
    told = put(
        target, meanwhile=lambda: pytest.fail("quiet") if seen(target, settle_ms=100)["is_quiet"] else 0
    )
    assert "receipt" in told
    assert time.monotonic() - start < 15


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs, and has mapped what is named on its input."""
    hold = (
        "import mmap; f = open(input(), 'rb'); m = mmap.mmap(f.fileno(), 0, prot=1); print(flush=1); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        yield running
        running.kill()


def test_a_process_is_looked_into(target: Path, process: subprocess.Popen[bytes]) -> None:
    """Under the same path: inode and digest in its namespace, its start, whether it has the file mapped."""
    told = seen(target, pid=process.pid)["consumer"]
    assert (told["view"]["sha256"], told["view"]["identity"]["ino"]) == (digest(OLD), target.stat().st_ino)
    assert told["mount_namespace"] == str(Path(f"/proc/{process.pid}/ns/mnt").readlink())
    assert told["mapped_by"] == []
    assert abs(told["started_ns"] - started_ns(process.pid)) < 5_000_000_000
    assert told["started_ns"] >= started_ns(process.pid) - 20_000_000
    assert process.stdin
    assert process.stdout
    process.stdin.write(os.fsencode(target) + b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"\n"
    assert seen(target, pid=process.pid)["consumer"]["mapped_by"] == [process.pid]
    other = target.with_name("other")
    other.write_bytes(OLD)
    other.replace(target)
    assert seen(target, pid=process.pid)["consumer"]["mapped_by"] == []


def test_what_a_shell_cannot_see_of_a_process_is_told(target: Path, process: subprocess.Popen[bytes]) -> None:
    """A link on the way, no such process, no such file: a reason, and no answer."""
    link = target.parent.with_name("link")
    link.symlink_to(target.parent.name)
    assert "a link at" in seen(link / target.name, pid=process.pid)["consumer"]["reason"]
    assert "no file here" in seen(target.with_name("no"), pid=process.pid)["consumer"]["reason"]
    process.kill()
    process.wait()
    assert "No such process" in seen(target, pid=process.pid)["consumer"]["reason"]
