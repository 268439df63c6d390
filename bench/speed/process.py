"""An engine's process, seen from the controller: started once, asked again and again."""

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

__all__ = ["Process"]

BENCH = Path(__file__).parents[1]


class Process:
    """``python -m module`` under a fixed number of threads; ``ask`` is one line there and one back.

    Attributes:
        refused: why it cannot run what it was first asked, or None.
        about: what it said it is.
    """

    def __init__(self, python: Path, module: str, first: dict[str, Any], log: Path) -> None:
        """Start it; ``settle`` reads what it said to the first question."""
        environment = {**os.environ, "OMP_NUM_THREADS": str(first["threads"]), "HF_HUB_OFFLINE": "1"}
        self._log = log.open("w", encoding="utf-8")
        self._process = subprocess.Popen(
            [str(python), "-m", module],
            cwd=BENCH,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
        )
        self._where, self.about = log, ""
        self.refused: str | None = None
        self._send(first)

    def settle(self) -> None:
        """Wait until it has loaded, or cannot."""
        answer = self._receive()
        self.refused, self.about = answer.get("refused"), answer.get("about", "")

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """One answer; a refusal of a later question is an answer too."""
        self._send(question)
        return self._receive()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it by closing its input; one that does not listen is killed."""
        with suppress(BrokenPipeError):  # what an ended process was asked last lies unread in the pipe
            self._pipe(self._process.stdin).close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._pipe(self._process.stdout).close()
        self._log.close()

    def _send(self, question: dict[str, Any]) -> None:
        pipe = self._pipe(self._process.stdin)
        try:
            pipe.write(json.dumps(question) + "\n")
            pipe.flush()
        except BrokenPipeError:
            return  # it has ended; what it said last is read as its answer

    def _receive(self) -> dict[str, Any]:
        line = self._pipe(self._process.stdout).readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        code = self._process.wait()
        said = self._where.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return {"refused": f"the process ended with status {code}: {said[-1][:200] if said else 'silent'}"}

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None, "started with pipes"  # noqa: S101 - invariant
        return pipe
