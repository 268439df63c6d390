"""The console behind every line of text; loaded with the first line, so that ``--json`` never pays for it."""

from functools import lru_cache
from typing import TextIO

from rich.console import Console
from rich.text import Text

__all__ = ["print_styled"]


class _Lines(Console):
    """A console that leaves a closed pipe to the command, which knows the exit status for it."""

    def on_broken_pipe(self) -> None:
        """Say so, instead of leaving with 1, which means findings here."""
        raise BrokenPipeError


def print_styled(text: str, style: str, stream: TextIO) -> None:
    """Print one line of text that holds nothing of a terminal's language; ``style`` is rich's, or empty."""
    _console(stream).print(Text(text, style=style))


@lru_cache(maxsize=4)
def _console(stream: TextIO) -> _Lines:
    """One console a stream: making one takes as long as printing ten lines."""
    return _Lines(file=stream, highlight=False, markup=False, soft_wrap=True, emoji=False)
