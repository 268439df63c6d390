"""runtimes.interpreter: one framed answer from another Python, or the reason why there is none."""

import hashlib
import sys
import time
from pathlib import Path

import pytest

from draftproof.runtimes.interpreter import MAX_OUTPUT_BYTES, Answer, NoAnswer, ask, read_frame

FRAME = """
import hashlib, json, os, sys
request = json.loads(sys.stdin.read())
def frame(body, nonce=request["nonce"], length=None, digest=None):
    length = len(body) if length is None else length
    digest = digest or hashlib.sha256(body).hexdigest()
    os.write(1, f"\\ndraftproof-frame {nonce} {length} {digest}\\n".encode() + body + b"\\n")
"""


def said(script: str, *, timeout_seconds: float = 30.0, **request: object) -> Answer | NoAnswer:
    """What this test's own Python answers to a script that has ``frame`` and ``request`` at hand."""
    return ask(sys.executable, FRAME + script, request, timeout_seconds=timeout_seconds)


def reason(script: str, *, timeout_seconds: float = 30.0) -> str:
    """Why there is no answer."""
    answer = said(script, timeout_seconds=timeout_seconds)
    assert isinstance(answer, NoAnswer), answer
    return answer.reason


def test_an_answer_comes_back_as_it_was_said() -> None:
    """The request arrives on standard input, the framed object comes back."""
    answer = said('frame(json.dumps({"got": request["text"]}).encode())', text="täxt\n")
    assert answer == Answer({"got": "täxt\n"})


def test_stray_prints_do_not_confuse() -> None:
    """What a library prints before, after and in the likeness of a frame is not the answer."""
    script = """
print("hello"); sys.stdout.flush()
frame(b'{"forged": 1}', nonce="00" * 16)
frame(b'{"true": 1}')
print("draftproof-frame bye")
"""
    assert said(script) == Answer({"true": 1})


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", "0 answers"),
        ("frame(b'{}'); frame(b'{}')", "2 answers"),
        ("frame(b'{}', length=9)", "cut short or altered"),
        ("frame(b'{}', digest='0' * 64)", "cut short or altered"),
        ("frame(b'[1]')", "not a JSON object"),
        ("frame(b'nonsense')", "not JSON"),
        ("frame(b'\\xff\\xfe')", "not JSON"),
        (
            "sys.exit('no such thing')",
            "ended with status 1 and 0 answers where one was asked for; last words: no",
        ),
        ("os._exit(9)", "ended with status 9"),
        ("os.kill(os.getpid(), 11)", "ended with status -11"),
    ],
)
def test_nonsense_is_no_answer(script: str, expected: str) -> None:
    """Whatever is not one whole, unaltered JSON object under the nonce is refused, and why is said."""
    assert expected in reason(script)


def test_an_answer_of_a_failed_process_still_counts() -> None:
    """A frame is complete in itself: what the interpreter does while ending takes nothing from it."""
    assert said("frame(b'{}'); os._exit(1)") == Answer({})


def test_a_hanging_interpreter_is_stopped(tmp_path: Path) -> None:
    """The time is bounded, and what the interpreter started is stopped with it."""
    script = """
import subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(request["pidfile"], "w").write(str(child.pid))
import time; time.sleep(600)
"""
    pidfile = tmp_path / "pid"
    begun = time.monotonic()
    answer = said(script, timeout_seconds=2.0, pidfile=str(pidfile))
    assert answer == NoAnswer("no answer within 2 s; it was stopped")
    assert time.monotonic() - begun < 30
    child = int(pidfile.read_text())
    for _ in range(100):
        if not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]:
            return
        time.sleep(0.1)
    pytest.fail("a process that the interpreter had started outlived it")


def test_a_flood_is_stopped() -> None:
    """Output is bounded too."""
    told = reason("while True: os.write(1, b'x' * (1 << 20))")
    assert told == f"it wrote more than {MAX_OUTPUT_BYTES >> 20} MiB"


def test_the_working_directory_is_empty() -> None:
    """No module of the caller's directory can be imported by accident, and none of ours."""
    assert said("frame(json.dumps({'here': os.listdir('.')}).encode())") == Answer({"here": []})


def test_the_environment_is_the_engines_and_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTHONPATH and all else is passed on, as an engine started from here would see it; the hub is not."""
    monkeypatch.setenv("PYTHONPATH", "/some/where")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    names = "['PYTHONPATH', 'HF_HUB_OFFLINE', 'TRANSFORMERS_OFFLINE']"
    script = f"frame(json.dumps({{n: os.environ[n] for n in {names}}}).encode())"
    assert said(script) == Answer(
        {"PYTHONPATH": "/some/where", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("missing", "no such file"),
        ("folder", "a directory"),
        ("plain", "not executable"),
        ("dangling", "a link to nothing"),
        ("script", "it cannot be started"),
    ],
)
def test_what_is_no_interpreter_is_named(tmp_path: Path, name: str, expected: str) -> None:
    """Each way in which a path is no interpreter has its own words."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    (tmp_path / "script").write_bytes(b"\x00\x01")
    (tmp_path / "script").chmod(0o755)
    answer = ask(str(tmp_path / name), "", {}, timeout_seconds=5.0)
    assert isinstance(answer, NoAnswer)
    assert expected in answer.reason


def test_a_name_is_looked_up_on_path() -> None:
    """A bare name is found as a shell would find it, or said not to be there."""
    answer = ask("no-such-python", "", {}, timeout_seconds=5.0)
    assert answer == NoAnswer("no program of this name on PATH")


def test_a_link_to_an_interpreter_stays_a_link(tmp_path: Path) -> None:
    """A virtual environment is known by the path of its python, so the link is not resolved."""
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    script = FRAME + "frame(json.dumps({'me': sys.executable}).encode())"
    assert ask(str(link), script, {}, timeout_seconds=30.0) == Answer({"me": str(link)})


@pytest.mark.parametrize(
    "around", [b"", b"\xff\n", b"{}\n", b"draftproof-frame ab 2 \n", b"draftproof-end\n" * 3]
)
def test_a_frame_may_stand_anywhere(around: bytes) -> None:
    """Bytes around a frame, of any kind, change nothing."""
    body = b'{"a": 1}'
    head = f"draftproof-frame ab {len(body)} {hashlib.sha256(body).hexdigest()}\n".encode()
    assert read_frame(around + head + body + b"\n" + around, "ab") == Answer({"a": 1})
