"""An engine of a few lines, run as a process by test_speed_process.py: it says back what it is asked."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from speed.worker import Refused, serve


class Echo:
    """Its tokens are the prompt's last, again and again."""

    def __init__(self, ask: dict[str, Any]) -> None:
        """Load nothing, or refuse."""
        print("noise that belongs to no answer")  # noqa: T201 - what a peer prints must not be read as one
        if ask["dtype"] == "float8":
            raise Refused("no\n  such   data type")
        self.about = f"echo on {ask['threads']} threads"

    def generate(self, prompt: Sequence[int], tokens: int) -> Sequence[int]:
        """The last token, so often; a prompt of one token ends the process instead."""
        if len(prompt) == 1:
            sys.stderr.write("a peer's last words\n")
            sys.exit(7)
        return [prompt[-1]] * tokens

    def forward(self, prompt: Sequence[int], rows: int) -> Callable[[], object]:
        """A call that burns a little CPU time."""
        return lambda: sum(range(20_000 * rows + len(prompt)))


if __name__ == "__main__":
    serve(Echo)
