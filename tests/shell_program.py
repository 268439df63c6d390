"""The programs of host/*.sh spoken to directly, on a real shell, as the tests of their steps need it."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from draftproof.host.program import frame_of, frames_of, request, shell_argv
from draftproof.host.talk import talk

__all__ = ["NEW", "NONCE", "OLD", "digest", "put", "seen"]

OLD, NEW = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n' * 40
NONCE = "cd" * 8
Frames = dict[str, dict[str, Any]]


def digest(data: bytes) -> str:
    """Sha256 in hex."""
    return hashlib.sha256(data).hexdigest()


def put(
    path: Path,
    *,
    body: bytes = NEW,
    late_by_ms: int = -9000,
    order: Callable[[bytes], bytes] = bytes,
    meanwhile: Callable[[], object] | None = None,
    under: Sequence[str] = (),
    env: dict[str, str] | None = None,
    asked: Callable[[bytes], bytes] = bytes,
    **said: object,
) -> Frames:
    """One write by the shell program, with ``under`` before its command.

    ``asked`` and ``order`` change what is sent first and then, ``meanwhile`` happens in between.
    """
    ask = {"nonce": NONCE, "path": str(path), "root": "/", "patience_ms": 5000, "keep_bytes": 99, **said}

    def answer(line: bytes) -> bytes | None:
        frame = frame_of(line, NONCE)
        if frame is None or frame.kind != "preimage":
            return None if frame is None else b""
        if meanwhile is not None:
            meanwhile()
        head = {
            "expected_old": frame.facts["old"]["sha256"] if frame.facts["old"] else "absent",
            "length": len(body),
            "sha256": digest(body),
            "deadline_ms": frame.facts["machine"]["monotonic_ms"] - late_by_ms,
        }
        return order(request(head) + body)

    stdin = request({key: value for key, value in ask.items() if isinstance(value, (int, str))})
    argv = [*under, *shell_argv("helper", 20)]
    result = talk(argv, stdin=asked(stdin), answer=answer, timeout_s=60, env=env)
    return frames_of(result.stdout, NONCE)


def seen(
    path: Path,
    *,
    env: dict[str, str] | None = None,
    asked: Callable[[bytes], bytes] = bytes,
    kind: str = "seen",
    **said: int,
) -> dict[str, Any]:
    """One reading by the shell program."""
    ask = {
        "nonce": NONCE,
        "path": str(path),
        "keep_bytes": 99,
        "is_device_asked": 0,
        "pid": 0,
        "port": 0,
        **said,
    }
    stdin = request({"settle_ms": 0, **ask})
    result = talk(shell_argv("examiner", 20), stdin=asked(stdin), answer=None, timeout_s=60, env=env)
    return frames_of(result.stdout, NONCE)[kind]
