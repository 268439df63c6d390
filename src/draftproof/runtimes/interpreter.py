"""Ask another Python a question: run a script in it with bounded time and output, read one framed answer.

The interpreter is started as the engine beside it would be: same environment variables, user site and
``PYTHONPATH`` included (``-I`` would hide installations that the engine sees). Added to them are only the
switches that keep the libraries off the network and the run from leaving files behind. The working
directory is an empty one, so that no module of the caller's directory is imported by accident.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Answer", "NoAnswer", "Way", "ask", "read_frame"]

MAX_OUTPUT_BYTES = 32 * 1024 * 1024
_POLL_SECONDS = 0.02
_TAIL_CHARACTERS = 400
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONIOENCODING": "utf-8",
}
_FRAME = re.compile(rb"^draftproof-frame ([0-9a-f]+) ([0-9]{1,9}) ([0-9a-f]{64})\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the script said, proven complete by its own length and sha256."""

    body: dict[str, object]


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The interpreter could not be asked, or what it said is no answer."""

    reason: str


Way = Callable[[list[str]], list[str]]
"""How a command is run elsewhere: the command line there -> the one here (an ssh client's, a container's)."""


def ask(
    python: str, script: str, request: dict[str, object], *, timeout_seconds: float, way: Way | None = None
) -> Answer | NoAnswer:
    """Run ``script`` in ``python`` with ``request`` on standard input; the answer, or why there is none.

    With ``way``, ``python`` is a path where that leads to, and its environment is the one found there.
    """
    program = _program(python) if way is None else python
    if isinstance(program, NoAnswer):
        return program
    argv = [program, "-c", script]
    nonce = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="draftproof-") as scratch:
        folder = Path(scratch)
        ran = _run(way(argv) if way else argv, {"nonce": nonce, **request}, folder, timeout_seconds)
        if isinstance(ran, NoAnswer):
            return ran
        body = read_frame((folder / "out").read_bytes(), nonce)
        if isinstance(body, Answer):
            return body
        tail = (folder / "err").read_bytes()[-4 * _TAIL_CHARACTERS :].decode("utf-8", "replace").strip()
        said = f"; last words: {tail[-_TAIL_CHARACTERS:]}" if tail else ""
        return NoAnswer(f"it ended with status {ran} and {body.reason}{said}")


def read_frame(output: bytes, nonce: str) -> Answer | NoAnswer:
    """The one framed JSON object in ``output`` that carries ``nonce``; everything around it is ignored."""
    frames = [found for found in _FRAME.finditer(output) if found[1] == nonce.encode()]
    if len(frames) != 1:
        return NoAnswer(f"{len(frames)} answers where one was asked for")
    frame = frames[0]
    body = output[frame.end() : frame.end() + int(frame[2])]
    if len(body) != int(frame[2]) or hashlib.sha256(body).hexdigest().encode() != frame[3]:
        return NoAnswer("an answer cut short or altered on its way")
    try:
        value = json.loads(body)
    except ValueError as error:
        return NoAnswer(f"an answer that is not JSON ({error})")
    return Answer(value) if isinstance(value, dict) else NoAnswer("an answer that is not a JSON object")


def _program(python: str) -> str | NoAnswer:
    # The path is used as given, links unresolved: a virtual environment is known by it.
    if os.sep not in python:
        found = shutil.which(python)
        return found or NoAnswer("no program of this name on PATH")
    path = Path(python).expanduser()
    if not path.exists():
        return NoAnswer("no such file" if not path.is_symlink() else "a link to nothing")
    if not path.is_file():
        return NoAnswer("not a file" + (" but a directory: name its bin/python" if path.is_dir() else ""))
    return str(path.absolute()) if os.access(path, os.X_OK) else NoAnswer("not executable")


def _run(argv: list[str], request: dict[str, object], folder: Path, timeout_seconds: float) -> int | NoAnswer:
    (folder / "in").write_text(json.dumps(request), encoding="ascii")
    empty = folder / "empty"
    empty.mkdir()
    with (
        (folder / "in").open("rb") as stdin,
        (folder / "out").open("wb") as stdout,
        (folder / "err").open("wb") as stderr,
    ):
        try:
            process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=empty,
                env={**os.environ, **_QUIET},
                start_new_session=True,
            )
        except OSError as error:
            return NoAnswer(f"it cannot be started: {error.strerror}")
        try:
            return _wait(process, folder, timeout_seconds)
        finally:
            _end(process)


def _wait(process: "subprocess.Popen[bytes]", folder: Path, timeout_seconds: float) -> int | NoAnswer:
    deadline = time.monotonic() + timeout_seconds
    while True:
        status = process.poll()
        written = sum((folder / name).stat().st_size for name in ("out", "err"))
        if written > MAX_OUTPUT_BYTES:
            return NoAnswer(f"it wrote more than {MAX_OUTPUT_BYTES >> 20} MiB")
        if status is not None:
            return status
        if time.monotonic() > deadline:
            return NoAnswer(f"no answer within {timeout_seconds:g} s; it was stopped")
        time.sleep(_POLL_SECONDS)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Stop the interpreter and whatever it started: all of one session, which is its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # nothing of that session is left
    finally:
        process.wait()
