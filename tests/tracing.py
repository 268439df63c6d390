"""A host whose writing program runs under strace, which lets one chosen system call fail, lie or kill."""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import Receipt
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import CouldNotLook, DraftproofError
from draftproof.host.local import LocalHost
from draftproof.host.program import program_argv
from draftproof.host.protocol import Answer, CommandResult

__all__ = ["NEW", "OLD", "Point", "TracedHost", "attempt", "points_of_a_write"]

OLD, NEW = b'{"taps": [1, 17, 33]}\n', b'{"taps": [1, 16, 31]}\n'
_CALL = re.compile(r"^(?:\d+ +)?(?:[\d.]+ )?([a-z_0-9]+)\(")
_MEMORY = {"mmap", "munmap", "brk", "mprotect", "madvise", "mremap", "rt_sigaction", "futex", "getrandom"}
"""Left out: they touch no file, and how often they are called changes from run to run."""


@dataclass(frozen=True, slots=True)
class Point:
    """The ``number``-th call of ``name`` in the life of the program."""

    name: str
    number: int

    def __str__(self) -> str:
        """As a test's id."""
        return f"{self.name}-{self.number}"


@dataclass(frozen=True, slots=True)
class TracedHost:
    """This machine; the writing program is traced, the reading one is not."""

    trace: Path
    inject: str = ""
    """For ``strace -e inject=``, empty for a trace alone."""

    name: str = ""
    python: str = sys.executable
    helper: tuple[str, ...] = ()
    """Another writing program (a mutant), empty for the product's."""

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """Run as LocalHost does."""
        call = list(argv)
        if call == program_argv(self.python, "helper"):
            call = list(self.helper) or call
            fault = ["-e", f"inject={self.inject}"] if self.inject else []
            call = ["strace", "-qq", "-s", "8", "-o", str(self.trace), *fault, *call]
        return LocalHost(self.python).run(call, stdin=stdin, answer=answer, timeout_s=timeout_s)

    def failure(self, result: CommandResult) -> CouldNotLook:
        """As LocalHost tells it."""
        return LocalHost(self.python).failure(result)

    @property
    def was_injected(self) -> bool:
        """Whether the fault was reached."""
        text = self.trace.read_text("utf-8", "replace")
        return "(INJECTED)" in text or "killed by SIGKILL" in text


def attempt(host: TracedHost | LocalHost, target: Path, ledger: Ledger) -> Receipt | DraftproofError:
    """One write of NEW: the receipt, or the error that told why there is none."""
    order = WriteOrder(Place("", str(target)), NEW, "test", level=Level.L2, patience_s=10)
    try:
        return verified_write(host, order, ledger)
    except DraftproofError as error:
        return error


def points_of_a_write(trace: Path) -> list[Point]:
    """Every call of a traced write from the opening of the root directory on, memory calls left out."""
    counts: Counter[str] = Counter()
    points: list[Point] = []
    is_writing = False
    for line in trace.read_text("utf-8", "replace").splitlines():
        match = _CALL.match(line)
        if match is None:
            continue
        counts[match.group(1)] += 1
        is_writing = is_writing or 'openat(AT_FDCWD, "/", ' in line
        if is_writing and match.group(1) not in _MEMORY | {"exit_group"}:
            points.append(Point(match.group(1), counts[match.group(1)]))
    return points
