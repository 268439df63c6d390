"""host/*.sh step by step, under strace: calls in order, calls that lie or fail, other writers, refusals."""

import fcntl
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from draftproof.host.program import frame_of, request, shell_argv
from shell_program import NEW, NONCE, OLD, digest, put, seen

pytestmark = [pytest.mark.root]
FOREIGN = b'{"taps": [7, 77]}\n'
RENAMES = "rename,renameat,renameat2,link,linkat"


def target_in(directory: Path) -> Path:
    """A file with old content."""
    path = directory / "model" / "config.json"
    path.parent.mkdir()
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The same in the test's own directory."""
    return target_in(tmp_path)


def part_of(path: Path, old: bytes | None = OLD) -> Path:
    """The name of the temporary file of a write to ``path``."""
    before = digest(old)[:16] if old is not None else "absent"
    return path.with_name(f".{path.name}.draftproof-{NONCE}-{before}-{digest(NEW)[:16]}.part")


def strace(*words: str) -> list[str]:
    """A command before the program's that follows its children."""
    return ["strace", "-f", "-qq", "-o", "/dev/null", *words]


def unchanged(target: Path) -> bool:
    """The old content, and nothing beside it."""
    return target.read_bytes() == OLD and list(target.parent.iterdir()) == [target]


def without(name: str, directory: Path) -> dict[str, str]:
    """An environment whose PATH has all programs but one."""
    tools = directory / "tools"
    tools.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name != name:
            (tools / program.name).symlink_to(program)
    return {"PATH": str(tools)}


@contextmanager
def once(is_time: Callable[[], bool], work: Callable[[], object]) -> Iterator[None]:
    """``work`` is done once, as soon as it is time."""

    def meddle() -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if is_time():
                work()
                return
            time.sleep(0.002)

    meddler = threading.Thread(target=meddle)
    meddler.start()
    try:
        yield
    finally:
        meddler.join()


def test_calls_come_in_order(target: Path, tmp_path: Path) -> None:
    """The descriptor that wrote is synced, then the attributes, the rename, and last the directory."""
    trace = tmp_path / "trace"
    calls = "trace=openat,write,fsync,rename,renameat,renameat2,close"
    frames = put(target, under=["strace", "-f", "-y", "-qq", "-o", str(trace), "-e", calls])
    assert "receipt" in frames
    part = str(part_of(target))
    lines = trace.read_text("utf-8", "replace").splitlines()
    kinds = {
        "create": rf"openat\(.*{part[-20:]}.*O_CREAT",
        "write": rf"write\(\d+<{part}>",
        "file": rf"fsync\(\d+<{part}>",
        "rename": r"rename.*\.part.*= 0$",
        "directory": rf"fsync\(\d+<{target.parent}>",
    }
    told = [kind for line in lines for kind, pattern in kinds.items() if re.search(pattern, line)]
    assert [kind for kind in told if kind != "write"] == ["create", "file", "file", "rename", "directory"]
    assert told.index("create") < told.index("write") < told.index("file")
    writer = next(line.split()[0] for line in lines if re.search(kinds["write"], line))
    assert writer == next(line.split()[0] for line in lines if re.search(kinds["file"], line))


def test_a_file_that_does_not_sync_is_not_published(target: Path) -> None:
    """By the program that wrote it, or later with its attributes."""
    assert put(target, under=strace("-P", str(part_of(target)), "-e", "inject=fsync:error=EIO"))["failed"]
    assert unchanged(target)


def test_attributes_that_do_not_sync_are_not_published(target: Path, tmp_path: Path) -> None:
    """The sync after owner and mode were copied fails; the one of the bytes did not."""
    tools = without("sync", tmp_path)
    fake = tmp_path / "tools" / "sync"
    fake.write_text(
        '#!/bin/sh\ncase "$*" in *.part) echo "sync: Input/output error" >&2; exit 1 ;; esac\n'
        'exec /usr/bin/sync "$@"\n'
    )
    fake.chmod(0o755)
    assert put(target, env=tools)["failed"]["step"] == "fsync of the file's attributes"
    assert unchanged(target)


def test_a_directory_that_does_not_sync_is_told(target: Path) -> None:
    """Published, its durability not acknowledged."""
    frames = put(target, under=strace("-P", str(target.parent), "-e", "inject=fsync:error=EIO"))
    assert "Input/output error" in frames["receipt"]["directory_sync"]
    assert target.read_bytes() == NEW


def test_a_rename_that_lies_is_no_receipt(target: Path) -> None:
    """It reports success and does nothing."""
    frames = put(target, under=strace("-e", f"inject={RENAMES}:retval=0"))
    assert frames["failed"]["step"] == "publish"
    assert target.read_bytes() == OLD


def test_a_mode_that_was_not_set_is_not_published(target: Path) -> None:
    """The call says that it changed the mode and did not."""
    frames = put(target, under=strace("-e", "inject=chmod,fchmod,fchmodat,setxattr,fsetxattr:retval=0"))
    assert "mode" in frames["refused"]["facts"]["found"]
    assert unchanged(target)


def test_a_file_that_cannot_be_read_has_no_pre_image(target: Path) -> None:
    """An error of the medium is told; no digest is made of half a file."""
    frames = put(target, under=strace("-P", str(target), "-e", "inject=read:error=EIO"))
    assert frames["failed"]["step"] == "read the target"
    assert "preimage" not in frames


def test_a_planted_link_leads_nowhere(target: Path) -> None:
    """A link under the temporary name: what it names is not made."""
    victim = target.parent.with_name("victim")
    part_of(target).symlink_to(victim)
    put(target)
    assert not victim.exists()
    assert target.read_bytes() == OLD


def test_staged_bytes_are_nobody_elses_to_read(target: Path) -> None:
    """The temporary file is private until it is as open as the old one."""
    modes = []

    def noted() -> None:
        modes.append(part_of(target).stat().st_mode & 0o777)

    mask = os.umask(0)
    try:
        with once(part_of(target).exists, noted):
            put(target, under=strace("-P", str(part_of(target)), "-e", "inject=fsync:delay_enter=500000"))
    finally:
        os.umask(mask)
    assert modes == [0o600]


def test_a_name_taken_in_the_last_moment_is_a_conflict(target: Path) -> None:
    """Between the last look and the publication somebody creates the file; it is not overwritten."""
    path = target.with_name("new.json")
    part = part_of(path, None)

    def take() -> None:
        time.sleep(1.5)
        path.write_bytes(FOREIGN)

    def is_staged() -> bool:
        return part.exists() and part.stat().st_size == len(NEW) and part.stat().st_mode & 0o777 != 0o600

    with once(is_staged, take):
        frames = put(path, under=strace("-e", f"inject={RENAMES}:delay_enter=4000000"))
    assert frames["refused"]["code"] == "conflict"
    assert path.read_bytes() == FOREIGN


def test_a_directory_in_the_last_moment_stays_empty(target: Path) -> None:
    """Somebody puts a directory in the target's place; the new file is not moved into it."""
    part = part_of(target)

    def replace() -> None:
        time.sleep(1.5)
        target.unlink()
        target.mkdir()

    def is_staged() -> bool:
        return part.exists() and part.stat().st_size == len(NEW) and part.stat().st_mode & 0o777 == 0o640

    with once(is_staged, replace):
        frames = put(target, under=strace("-e", f"inject={RENAMES}:delay_enter=4000000"))
    assert frames["failed"]["step"] == "publish"
    assert list(target.iterdir()) == []


def test_gone_sender_gets_no_commit(target: Path) -> None:
    """Nobody hears the frames any more: not published."""
    ask: dict[str, str | int] = {"nonce": NONCE, "path": str(target), "root": "/"}
    argv = shell_argv("helper", 20)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(request(ask | {"patience_ms": 3000, "keep_bytes": 99}))
        child.stdin.flush()
        frame = frame_of(child.stdout.readline(), NONCE)
        assert frame
        child.stdout.close()
        order = {"expected_old": digest(OLD), "length": len(NEW), "sha256": digest(NEW)}
        deadline = frame.facts["machine"]["monotonic_ms"] + 9000
        child.stdin.write(request({**order, "deadline_ms": deadline}) + NEW)
        child.stdin.close()
        child.wait(30)
    assert unchanged(target)


def test_another_expectation_is_a_conflict(target: Path) -> None:
    """The order names what it replaces."""

    def other(data: bytes) -> bytes:
        head = {"expected_old": "0" * 64, "length": len(NEW), "sha256": digest(NEW), "deadline_ms": 1 << 40}
        return request(head) + data[-len(NEW) :]

    assert put(target, order=other)["refused"]["code"] == "conflict"
    assert unchanged(target)


def damaged(data: bytes) -> bytes:
    """One character of a field's value changed."""
    at = data.index(b"patience_ms i ") + len(b"patience_ms i ")
    return data[:at] + b"9" + data[at + 1 :]


def huge(data: bytes) -> bytes:
    """A field of two megabytes more, rightly framed."""
    fields = data.partition(b"\n")[2] + b"\nmore i " + b"1" * (2 << 20)
    return b"draftproof/1 %d %s\n%s" % (len(fields), digest(fields).encode(), fields)


@pytest.mark.parametrize(("asked", "code"), [(damaged, "request-cut"), (huge, "request-damaged")])
def test_a_damaged_request_is_refused(target: Path, asked: Callable[[bytes], bytes], code: str) -> None:
    """Its digest is compared, its length bounded; there is no nonce yet under which it could be said."""
    argv = shell_argv("helper", 20)
    ask: dict[str, str | int] = {"nonce": NONCE, "path": str(target), "root": "/"}
    stdin = asked(request(ask | {"patience_ms": 3000, "keep_bytes": 99}))
    done = subprocess.run(argv, input=stdin, capture_output=True, check=False)
    assert code.encode() in done.stdout
    assert b"preimage" not in done.stdout


def test_a_held_lock_is_waited_for_and_told(target: Path) -> None:
    """After the patience it is refused as busy."""
    held = os.open(target.parent, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        assert put(target, patience_ms=300)["refused"]["code"] == "busy"
    finally:
        os.close(held)
    assert unchanged(target)


def test_without_a_lock_leftovers_stay(target: Path, tmp_path: Path) -> None:
    """Where flock is not there, it is said, and nobody's temporary file is removed."""
    left = target.with_name(f".{target.name}.draftproof-0-0-0.part")
    left.write_bytes(b"half")
    receipt = put(target, env=without("flock", tmp_path))["receipt"]
    assert (receipt["removed"], receipt["kept"], left.exists()) == ([], [left.name], True)
    assert any("no lock" in limit for limit in receipt["limits"])


@pytest.mark.parametrize("code", ["dots", "read-only file system", "mount-point", "foreign owner"])
def test_refuses_what_takes_root_to_make(target: Path, code: str) -> None:
    """The same codes as the Python program."""
    path, expected, mounted = target, code, None
    if code == "dots":
        path, expected = Path(f"{target.parent}/../model/{target.name}"), "escapes-root"
    elif code == "read-only file system":
        mounted, expected = target.parent, "read-only"
        subprocess.run(["mount", "--bind", str(mounted), str(mounted)], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(mounted)], check=True)
    elif code == "mount-point":
        mounted = target
        subprocess.run(["mount", "--bind", str(target), str(target)], check=True)
    else:
        os.chown(target.parent, 65534, 65534)
        expected = "parent-foreign-writable"
    try:
        assert put(path)["refused"]["code"] == expected
    finally:
        if mounted:
            subprocess.run(["umount", str(mounted)], check=True)
    assert unchanged(target)


def test_a_reader_keeps_what_it_was_asked_to(target: Path) -> None:
    """Bytes up to the bound, else the digest alone; links are followed and told."""
    assert seen(target, keep_bytes=3)["seen"]["data"] is None
    link = target.with_name("link.json")
    link.symlink_to(target.name)
    assert seen(link)["seen"]["real_path"] == str(target)
    assert seen(link)["seen"]["sha256"] == digest(OLD)


def test_a_reader_takes_one_request(target: Path) -> None:
    """More than it is refused."""
    assert seen(target, asked=lambda data: data + b"!", kind="refused")["code"] == "request-long"


def test_memory_has_no_device(tmp_path: Path) -> None:
    """Below tmpfs there is nothing to read past the cache."""
    subprocess.run(["mount", "-t", "tmpfs", "none", str(tmp_path)], check=True)
    try:
        (tmp_path / "x").write_bytes(OLD)
        assert "reason" in seen(tmp_path / "x", is_device_asked=1)["device"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_device_that_was_not_read_is_told(target: Path, tmp_path: Path) -> None:
    """A dd that cannot read past the cache gives no digest, least of all that of nothing."""
    env = without("dd", tmp_path)
    fake = tmp_path / "tools" / "dd"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    assert "reason" in seen(target, env=env, is_device_asked=1)["device"]


def test_the_device_is_read_past_the_cache(target: Path, tmp_path: Path) -> None:
    """The call that reads it opens with O_DIRECT."""
    env = without("dd", tmp_path)
    fake, told = tmp_path / "tools" / "dd", tmp_path / "told"
    fake.write_text(f'#!/bin/sh\nexec strace -qq -o {told} -e trace=openat,fcntl {shutil.which("dd")} "$@"\n')
    fake.chmod(0o755)
    device = seen(target, env=env, is_device_asked=1)["device"]
    assert device == {"sha256": digest(OLD), "how": "O_DIRECT read by dd"}
    assert "O_DIRECT" in told.read_text()


def test_another_file_in_a_namespace_is_not_guessed_at(target: Path) -> None:
    """A process with another file mounted over the path: it may have this one elsewhere, which is told."""
    other = target.with_name("other")
    other.write_bytes(FOREIGN)
    script = f"mount --bind '{other}' '{target}' && echo ready && exec sleep 60"
    call = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    with subprocess.Popen(call, stdout=subprocess.PIPE) as running:
        assert running.stdout
        assert running.stdout.readline() == b"ready\n"
        told = seen(target, pid=running.pid)["consumer"]
        running.kill()
    assert "another file" in told["reason"]
