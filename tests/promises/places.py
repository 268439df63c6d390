"""What is refused: places, contents, requests."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from draftproof.host.program import frame_of, program_argv, request
from promises.bench import FOREIGN, NEW, NONCE, OLD, Bench, check


@check
def dangerous_places_are_refused(bench: Bench) -> None:
    """Links, pipes, hard links, open parents, caches, read-only files, paths out of the root."""
    home = bench.target.parent
    (home / "link.json").symlink_to("config.json")
    bench.refused("write-through-symlink", path=home / "link.json")
    (bench.directory / "alias").symlink_to("model")
    bench.refused("write-through-symlink", path=bench.directory / "alias" / "config.json")
    os.mkfifo(home / "pipe.json")
    bench.refused("write-not-regular", path=home / "pipe.json")
    blobs = home / "models--a--b" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "aa").write_bytes(OLD)
    bench.refused("write-into-hub-cache", path=blobs / "aa")
    bench.refused("write-escapes-root", root=str(bench.directory / "other"))
    bench.refused("write-escapes-root", path=Path(f"{home}/x/../config.json"))
    (home / "stock.json").hardlink_to(bench.target)
    bench.refused("write-many-names")
    (home / "stock.json").unlink()
    bench.target.chmod(0o444)
    bench.refused("write-read-only")
    bench.target.chmod(0o644)
    home.chmod(0o777)
    bench.refused("write-parent-foreign-writable")
    home.chmod(0o755)


@check
def bad_content_is_refused(bench: Bench) -> None:
    """Keys twice, no JSON."""
    bench.refused("write-content-duplicate-keys", content=b'{"a": 1, "a": 2}')
    bench.refused("write-content-unparsable", content=b'{"a": 1')


@check
def expected_old_is_compared(bench: Bench) -> None:
    """On our side before the order, on the host with it."""
    bench.refused("write-conflict", expected_old=hashlib.sha256(b"x").hexdigest())
    bench.refused("write-conflict", expected_old="absent")
    assert bench.raw(expected_old="0" * 64)["refused"]["code"] == "conflict"
    assert bench.target.read_bytes() == OLD


@check
def broken_requests_are_refused(bench: Bench) -> None:
    """Cut, long, changed, late: nothing is touched."""
    for code, tail, changes in (
        ("request-cut", NEW[:-1], {}),
        ("request-long", NEW + b"x", {}),
        ("body-differs", FOREIGN, {}),
        ("late", NEW, {"deadline_ms": 0}),
    ):
        frames = bench.raw(tail, **changes)
        assert "refused" in frames, code
        assert frames["refused"]["code"] == code
        assert bench.target.read_bytes() == OLD


@check
def planted_temporary_names_are_not_followed(bench: Bench) -> None:
    """A link planted under the temporary name leads to no victim."""
    victim = bench.directory / "victim"
    victim.write_bytes(b"victim")
    old16, new16 = (hashlib.sha256(data).hexdigest()[:16] for data in (OLD, NEW))
    planted = bench.target.with_name(f".config.json.draftproof-{NONCE}-{old16}-{new16}.part")
    planted.symlink_to(victim)
    bench.raw()
    assert victim.read_bytes() == b"victim"
    assert bench.target.read_bytes() == OLD


@check
def planted_temporary_file_is_not_written_into(bench: Bench) -> None:
    """A file under the temporary name is somebody's open descriptor: it is not published."""
    old16, new16 = (hashlib.sha256(data).hexdigest()[:16] for data in (OLD, NEW))
    planted = bench.target.with_name(f".config.json.draftproof-{NONCE}-{old16}-{new16}.part")
    planted.write_bytes(b"")
    assert "failed" in bench.raw()
    assert bench.target.read_bytes() == OLD


@check
def gone_sender_gets_no_commit(bench: Bench) -> None:
    """Nobody hears the frames any more: not published."""
    argv = program_argv(sys.executable, "helper")
    ask = {"nonce": NONCE, "path": str(bench.target), "root": "/"}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(request(ask | {"patience_ms": 3000, "keep_bytes": 99}))
        child.stdin.flush()
        frame = frame_of(child.stdout.readline(), NONCE)
        assert frame
        child.stdout.close()
        order = {
            "expected_old": hashlib.sha256(OLD).hexdigest(),
            "length": len(NEW),
            "sha256": hashlib.sha256(NEW).hexdigest(),
            "deadline_ms": frame.facts["machine"]["monotonic_ms"] + 5000,
        }
        child.stdin.write(request(order) + NEW)
        child.stdin.close()
        child.wait(20)
    assert bench.target.read_bytes() == OLD
