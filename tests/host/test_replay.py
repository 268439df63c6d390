"""host.replay: a recorded conversation answers again, and only what was asked then."""

import hashlib
import json
from pathlib import Path

import pytest

from draftproof.host.local import LocalHost
from draftproof.host.program import frame_of, frames_of, program_argv, request
from draftproof.host.protocol import Answer
from draftproof.host.replay import RecordingHost, ReplayHost, ReplayMismatch

BODY = b'{"new": true}\n'


def ask(nonce: str, path: str) -> bytes:
    """A write request."""
    fields = {"root": "/", "patience_ms": 5000, "keep_bytes": 9}
    return request({"nonce": nonce, "path": path, **fields})


def ordering(nonce: str, body: bytes) -> Answer:
    """The sender's side: an order once the pre-image has come."""

    def answer(line: bytes) -> bytes | None:
        frame = frame_of(line, nonce)
        if frame is None:
            return None
        head = {
            "expected_old": "absent",
            "length": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "deadline_ms": frame.facts["machine"]["monotonic_ms"] + 5000,
        }
        return request(head) + body

    return answer


@pytest.fixture
def recorded(host: LocalHost, tmp_path: Path) -> tuple[str, str]:
    """The transcript of one write, and the path it was for."""
    path = str(tmp_path / "config.json")
    recording = RecordingHost(host)
    recording.run(
        program_argv(host.python, "helper"),
        stdin=ask("aa" * 8, path),
        answer=ordering("aa" * 8, BODY),
        timeout_s=20,
    )
    return recording.transcript(), path


def test_another_nonce_gets_the_recorded_replies(recorded: tuple[str, str]) -> None:
    """A later run has its own nonce and is answered under it."""
    transcript, path = recorded
    replay = ReplayHost.of(transcript)
    argv = program_argv(replay.python, "helper")
    result = replay.run(argv, stdin=ask("bb" * 8, path), answer=ordering("bb" * 8, BODY), timeout_s=1)
    assert list(frames_of(result.stdout, "bb" * 8)) == ["preimage", "staged", "receipt"]
    with pytest.raises(ReplayMismatch):
        replay.run(argv, stdin=ask("cc" * 8, path), timeout_s=1)


def test_another_question_or_order_is_a_mismatch(recorded: tuple[str, str]) -> None:
    """A recording does not answer what was not asked."""
    transcript, path = recorded
    argv = program_argv("python3", "helper")
    argv[0] = json.loads(transcript)["python"]
    for stdin, body in ((ask("bb" * 8, path + "x"), BODY), (ask("bb" * 8, path), b"[1]\n")):
        with pytest.raises(ReplayMismatch):
            ReplayHost.of(transcript).run(argv, stdin=stdin, answer=ordering("bb" * 8, body), timeout_s=1)


def test_transcripts_hold_no_program_text(recorded: tuple[str, str]) -> None:
    """What the host's program is made of may change between releases; what it says may not."""
    assert json.loads(recorded[0])["exchanges"][0]["argv"][-1] == "(program)"
