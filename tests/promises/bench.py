"""The bench of the promises: a target, a ledger, a host that meddles, and the list of all checks."""

import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.writing.receipt import Receipt
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import CouldNotLook, DraftproofError
from draftproof.host.local import LocalHost
from draftproof.host.program import frame_of, frames_of, program_argv, request
from draftproof.host.protocol import Answer, CommandResult

OLD, NEW, FOREIGN = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n', b'{"taps": [7, 77]}\n'
NONCE = "0123456789abcdef"
__all__ = ["CHECKS", "FOREIGN", "NEW", "NONCE", "OLD", "Bench", "MeddlingHost", "check", "positions"]

CHECKS: dict[str, Callable[["Bench"], None]] = {}


def check(function: Callable[["Bench"], None]) -> Callable[["Bench"], None]:
    """Register a promise under its name."""
    CHECKS[function.__name__] = function
    return function


@dataclass
class MeddlingHost:
    """This machine with something happening between two steps of a write, and the writer under strace."""

    between: Callable[[], None] = lambda: None
    """Runs when the pre-image was told and the order not yet given."""

    before_reading: Callable[[], None] = lambda: None
    change_reply: Callable[[bytes], bytes] = lambda reply: reply
    """What becomes of the reader's reply."""

    inject: str = ""
    trace: str = "/dev/null"
    is_mute: bool = False
    """The writer exits 0 and says nothing, as a shell would."""

    name: str = ""
    python: str = sys.executable

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """Run, with what was asked for happening around it."""
        inner = LocalHost(self.python)
        if argv == program_argv(self.python, "reader"):
            self.before_reading()
            result = inner.run(argv, stdin=stdin, timeout_s=timeout_s)
            return replace(result, stdout=self.change_reply(result.stdout))
        if self.is_mute:
            return CommandResult(tuple(argv), 0, b"", b"")

        def answering(line: bytes) -> bytes | None:
            rest = answer(line) if answer else None
            if rest:
                self.between()
            return rest

        fault = ["-e", f"inject={self.inject}"] if self.inject else []
        traced = ["strace", "-qq", "-o", self.trace, *fault] if fault or self.trace != "/dev/null" else []
        return inner.run([*traced, *argv], stdin=stdin, answer=answering, timeout_s=timeout_s)

    def failure(self, result: CommandResult) -> CouldNotLook:
        """As LocalHost tells it."""
        return LocalHost(self.python).failure(result)


@dataclass
class Bench:
    """A directory with a target that holds OLD, and a ledger."""

    directory: Path

    def __post_init__(self) -> None:
        (self.directory / "model").mkdir(parents=True)
        self.target = self.directory / "model" / "config.json"
        self.target.write_bytes(OLD)
        self.ledger = Ledger(self.directory / "ledger")

    def write(
        self, host: Any = None, path: Path | None = None, content: bytes = NEW, **order: Any
    ) -> Receipt:
        """A write of ``content``; raises as the product does."""
        place = Place("", str(path or self.target))
        job = WriteOrder(place, content, "probe", patience_s=order.pop("patience_s", 10), **order)
        return verified_write(host or MeddlingHost(), job, self.ledger)

    def refused(self, error_id: str, **call: Any) -> None:
        """A write that must be refused under this id, the target untouched."""
        said = "nothing"
        try:
            self.write(**call)
        except DraftproofError as error:
            said = error.id
        assert said == error_id, f"{said} for {error_id}"
        assert self.target.read_bytes() == OLD

    def raw(self, tail: bytes = NEW, **changes: Any) -> dict[str, Any]:
        """The host's program spoken to directly, the order changed as asked; frames by kind."""

        def answer(line: bytes) -> bytes | None:
            frame = frame_of(line, NONCE)
            if frame is None:
                return None
            old = frame.facts["old"]
            order = {
                "expected_old": old["sha256"] if old else "absent",
                "length": len(NEW),
                "sha256": hashlib.sha256(NEW).hexdigest(),
                "deadline_ms": frame.facts["machine"]["monotonic_ms"] + 5000,
            }
            return request(order | changes) + tail

        ask = {"nonce": NONCE, "path": str(self.target), "root": "/"}
        stdin = request(ask | {"patience_ms": 3000, "keep_bytes": 99})
        result = LocalHost(sys.executable).run(
            program_argv(sys.executable, "helper"), stdin=stdin, answer=answer, timeout_s=20
        )
        return frames_of(result.stdout, NONCE)

    def trace(self) -> list[str]:
        """The calls of one write."""
        host = MeddlingHost(trace=str(self.directory / "trace"))
        self.write(host)
        return (self.directory / "trace").read_text("utf-8", "replace").splitlines()


def positions(lines: list[str], pattern: str) -> list[int]:
    """Where a pattern occurs in a trace."""
    return [number for number, line in enumerate(lines) if re.search(pattern, line)]
