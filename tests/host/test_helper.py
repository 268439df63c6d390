"""host.helper, host.program: only a whole, undamaged, timely request is done; only frames are evidence."""

import ast
import hashlib
import os
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from draftproof.host import program
from draftproof.host.local import LocalHost
from draftproof.host.program import frame_of, frames_of, program_argv, request

NONCE = "0123456789abcdef"
BODY = b'{"new": true}\n'


def ask(path: Path, patience_ms: int = 5000) -> bytes:
    """A write request for a path."""
    document = {
        "nonce": NONCE,
        "path": str(path),
        "root": "/",
        "patience_ms": patience_ms,
        "keep_bytes": 1000,
    }
    return request(document)


def order(preimage: dict[str, Any], **changes: object) -> bytes:
    """The order that follows a pre-image, without its body."""
    old = preimage["old"]
    document = {
        "expected_old": old["sha256"] if old else "absent",
        "length": len(BODY),
        "sha256": hashlib.sha256(BODY).hexdigest(),
        "deadline_ms": preimage["machine"]["monotonic_ms"] + 5000,
    }
    return request(document | changes)


def send(host: LocalHost, path: Path, tail: bytes = BODY, **changes: object) -> dict[str, dict[str, Any]]:
    """One conversation; frames by kind."""

    def answer(line: bytes) -> bytes | None:
        frame = frame_of(line, NONCE)
        return order(frame.facts, **changes) + tail if frame else None

    result = host.run(program_argv(host.python, "helper"), stdin=ask(path), answer=answer, timeout_s=20)
    return frames_of(result.stdout, NONCE)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file with old content."""
    path = tmp_path / "config.json"
    path.write_text("old")
    return path


def untouched(target: Path) -> bool:
    """Whether the old content is there and nothing beside it."""
    return target.read_text() == "old" and [path.name for path in target.parent.iterdir()] == ["config.json"]


def test_a_whole_order_is_carried_out(host: LocalHost, target: Path) -> None:
    """Pre-image, staged, receipt: in this order, and the content is in place."""
    frames = send(host, target)
    assert list(frames) == ["preimage", "staged", "receipt"]
    assert target.read_bytes() == BODY


@pytest.mark.parametrize("cut", range(len(BODY)))
def test_a_body_cut_anywhere_is_refused(host: LocalHost, target: Path, cut: int) -> None:
    """End of input before the last byte is a cut, never a shorter file."""
    frames = send(host, target, BODY[:cut])
    assert frames["refused"]["code"] == "request-cut"
    assert untouched(target)


def test_a_long_or_changed_body_is_refused(host: LocalHost, target: Path) -> None:
    """One byte more, or one bit other, and nothing is touched."""
    assert send(host, target, BODY + b"x")["refused"]["code"] == "request-long"
    assert send(host, target, b"[" + BODY[1:])["refused"]["code"] == "body-differs"
    assert untouched(target)


def test_a_late_order_is_refused(host: LocalHost, target: Path) -> None:
    """After the deadline nothing is published: a commit nobody waits for any more is no commit."""
    frames = send(host, target, deadline_ms=0)
    assert frames["refused"]["code"] == "late"
    assert untouched(target)


def test_an_order_for_another_old_content_is_refused(host: LocalHost, target: Path) -> None:
    """Compare and swap happens on the host, under its lock."""
    frames = send(host, target, expected_old="0" * 64)
    assert frames["refused"]["code"] == "conflict"
    assert untouched(target)


def test_a_damaged_request_is_refused(host: LocalHost, target: Path) -> None:
    """Any flipped byte of the header line or the document is noticed before anything is looked at."""
    whole = ask(target)
    for at in range(0, len(whole), 7):
        spoiled = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        result = host.run(program_argv(host.python, "helper"), stdin=spoiled, timeout_s=20)
        assert b"preimage" not in result.stdout, at
    assert untouched(target)


def test_silence_after_the_pre_image_ends_with_the_patience(host: LocalHost, target: Path) -> None:
    """A stalled sender holds the lock only for the time it asked for."""
    argv = program_argv(host.python, "helper")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(ask(target, patience_ms=300))
        child.stdin.flush()
        start = time.monotonic()
        frames = frames_of(child.stdout.read(), NONCE)
        assert time.monotonic() - start < 5
    assert frames["refused"]["code"] == "request-late"
    assert untouched(target)


def test_a_sender_that_has_gone_gets_no_commit(host: LocalHost, target: Path) -> None:
    """With nobody left to hear the receipt the staged content is not published."""
    argv = program_argv(host.python, "helper")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(ask(target))
        child.stdin.flush()
        frame = frame_of(child.stdout.readline(), NONCE)
        assert frame is not None
        child.stdout.close()
        child.stdin.write(order(frame.facts) + BODY)
        child.stdin.close()
        child.wait(20)
    assert untouched(target)


def test_leftovers_of_killed_writes_are_removed_or_kept_by_their_bytes(host: LocalHost, target: Path) -> None:
    """A stale part is removed; swapped-out content only where its bytes are known, else it is named."""
    old16, new16 = hashlib.sha256(b"old").hexdigest()[:16], hashlib.sha256(b"new").hexdigest()[:16]
    prefix = f".config.json.draftproof-aaaa-{old16}-{new16}"
    target.with_name(prefix + ".part").write_text("half a fi")
    target.with_name(prefix + ".swap").write_text("new")
    target.with_name(prefix.replace("aaaa", "bbbb") + ".swap").write_text("a foreign writer's")
    receipt = send(host, target)["receipt"]
    assert sorted(name.rsplit(".", 1)[1] for name in receipt["removed"]) == ["part", "swap"]
    assert receipt["kept"] == [prefix.replace("aaaa", "bbbb") + ".swap"]
    assert target.with_name(receipt["kept"][0]).read_text() == "a foreign writer's"


def test_only_whole_lines_with_the_nonce_are_frames() -> None:
    """A message of the day, another nonce, a cut line and broken JSON are not evidence."""
    good = f'{NONCE} receipt {{"a": 1}}\n'.encode()
    noise = b"Welcome to Ubuntu\n" + b'beef receipt {"a": 2}\n' + f"{NONCE} receipt [1]\n".encode()
    assert frames_of(noise + good + f'{NONCE} seen {{"a": 3}}'.encode(), NONCE) == {"receipt": {"a": 1}}
    assert frames_of(good, "") == {}
    assert frame_of(f"{NONCE} receipt {{".encode(), NONCE) is None


def test_the_programs_need_nothing_but_an_interpreter(tmp_path: Path, target: Path) -> None:
    """Isolated mode, no site packages, another working directory, no environment: it still answers."""
    done = subprocess.run(
        program_argv(sys.executable, "reader"),
        input=request(
            {
                "nonce": NONCE,
                "path": str(target),
                "keep_bytes": 9,
                "is_device_asked": False,
                "pid": 0,
                "port": 0,
                "settle_ms": 0,
            }
        ),
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={},
    )
    seen = frames_of(done.stdout, NONCE)["seen"]["seen"]
    assert seen["sha256"] == hashlib.sha256(b"old").hexdigest()
    assert done.stderr == b""


@pytest.mark.parametrize("name", sorted({part for parts in program._PARTS.values() for part in parts}))
def test_the_programs_are_text_for_python_3_8(name: str) -> None:
    """A host's interpreter may be older than ours: no newer syntax, only modules of its standard library."""
    text = (files("draftproof.host") / f"{name}.py").read_text("utf-8")
    tree = ast.parse(text, feature_version=(3, 8))
    imported = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    imported |= {
        alias.name for each in ast.walk(tree) if isinstance(each, ast.Import) for alias in each.names
    }
    foreign = {str(module) for module in imported if str(module).split(".")[0] not in sys.stdlib_module_names}
    assert all(module.startswith("draftproof.host.") for module in foreign)


def test_reader_sees_through_the_eyes_of_a_process(host: LocalHost, target: Path) -> None:
    """The view of a process in our own namespace is the same inode; it started before the file was made."""
    document = {
        "nonce": NONCE,
        "path": str(target),
        "keep_bytes": 9,
        "is_device_asked": True,
        "pid": os.getpid(),
        "port": 0,
        "settle_ms": 0,
    }
    result = host.run(program_argv(host.python, "examiner"), stdin=request(document), timeout_s=20)
    frame = frames_of(result.stdout, NONCE)["seen"]
    assert frame["consumer"]["view"]["identity"]["ino"] == target.stat().st_ino
    assert frame["consumer"]["started_ns"] < target.stat().st_ctime_ns
    assert frame["device"]["sha256"] == hashlib.sha256(b"old").hexdigest()
