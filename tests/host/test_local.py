"""host.local and host.talk: both streams whole, input answered, time kept, no deadlock."""

import sys
import time

import pytest

from draftproof.host.local import LocalHost
from draftproof.host.protocol import HostUnreachable


def python(*lines: str) -> list[str]:
    """A child that runs these lines."""
    return [sys.executable, "-I", "-S", "-c", "\n".join(lines)]


def test_both_streams_and_the_exit_code_come_back(host: LocalHost) -> None:
    """Bytes are bytes, on both streams."""
    result = host.run(["sh", "-c", r"printf 'a\377'; printf 'b\0' >&2; exit 7"], timeout_s=10)
    assert (result.stdout, result.stderr, result.exit_code) == (b"a\xff", b"b\x00", 7)
    assert result.argv[0] == "sh"


def test_large_streams_in_all_directions_do_not_block(host: LocalHost) -> None:
    """Three megabytes in, three out on each stream, at once."""
    data = bytes(range(256)) * 12_000
    child = python(
        "import sys", "d=sys.stdin.buffer.read()", "sys.stderr.buffer.write(d)", "sys.stdout.buffer.write(d)"
    )
    result = host.run(child, stdin=data, timeout_s=30)
    assert result.stdout == result.stderr == data


def test_a_child_that_does_not_listen_is_heard(host: LocalHost) -> None:
    """A broken pipe is no error of ours: what the child said is what counts."""
    result = host.run(["sh", "-c", "exec 0<&-; echo gone"], stdin=b"x" * 1_000_000, timeout_s=10)
    assert (result.stdout, result.exit_code) == (b"gone\n", 0)


def test_answer_gets_lines_until_it_answers_and_then_input_ends(host: LocalHost) -> None:
    """Noise before the awaited line is passed to the answer, which waits; its bytes are the last ones."""
    heard: list[bytes] = []

    def answer(line: bytes) -> bytes | None:
        heard.append(line)
        return b"order" if line == b"ready" else None

    child = python(
        "import sys",
        "print('motd',flush=True)",
        "print('ready',flush=True)",
        "print(sys.stdin.read())",
    )
    result = host.run(child, stdin=b"ask ", answer=answer, timeout_s=10)
    assert heard == [b"motd", b"ready"]
    assert result.stdout.endswith(b"ask order\n")


def test_time_is_kept_and_what_came_is_kept_too(host: LocalHost) -> None:
    """A child that hangs is ended, and said to have been."""
    start = time.monotonic()
    result = host.run(["sh", "-c", "echo so far; exec sleep 60"], timeout_s=0.5)
    assert time.monotonic() - start < 10
    assert (result.is_timed_out, result.stdout) == (True, b"so far\n")
    assert result.exit_code < 0


def test_an_answer_that_raises_ends_the_child(host: LocalHost) -> None:
    """An error on our side does not leave a program with half an input behind."""

    def answer(line: bytes) -> bytes:
        raise ValueError(line.decode())

    start = time.monotonic()
    with pytest.raises(ValueError, match="ready"):
        host.run(["sh", "-c", "echo ready; exec sleep 60"], answer=answer, timeout_s=30)
    assert time.monotonic() - start < 10


def test_a_missing_program_is_unreachable(host: LocalHost) -> None:
    """What cannot be started is named."""
    with pytest.raises(HostUnreachable) as caught:
        host.run(["/no/such/program"], timeout_s=1)
    assert caught.value.exit_code == 3


def test_failure_tells_the_last_words_without_control_characters(host: LocalHost) -> None:
    """What a machine printed before it failed is shown escaped."""
    result = host.run(["sh", "-c", r"printf '\033[2Jdead' >&2; exit 3"], timeout_s=10)
    assert "\\x1b[2Jdead" in host.failure(result).found
