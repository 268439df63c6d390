"""Where an engine's Python is, and how a program of ours is run in it: here, over ssh, or behind a prefix.

Nothing of ours must be installed there: the program is text on the command line, its request standard input.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from draftproof.host.ssh import SshHost
from draftproof.runtimes.interpreter import Answer, NoAnswer, Way, ask

__all__ = ["TIMEOUT_SECONDS", "EnginePython"]

TIMEOUT_SECONDS = 120.0
_STARTED = (
    "import sys\n"
    "for n,s in {parts!r}:\n"
    " m=type(sys)(n);sys.modules[n]=m;exec(compile(s,n,'exec'),m.__dict__)\n"
    "m.main()"
)


@dataclass(frozen=True, slots=True)
class EnginePython:
    """The interpreter that an engine runs in."""

    python: str
    host: SshHost | None = None
    """None for this machine."""

    prefix: tuple[str, ...] = ()
    """Words put before the command, there; they must pass standard input on: ``kubectl exec -i pod --``."""

    def __str__(self) -> str:
        """As shown to people."""
        there = f"{self.host.name}:" if self.host else ""
        return there + " ".join((*self.prefix, self.python))

    @property
    def way(self) -> Way | None:
        """How a command gets there; None for this machine."""
        return None if self.host is None and not self.prefix else self._way

    def ask(
        self, program: str, request: dict[str, object], *, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> Answer | NoAnswer:
        """What ``program`` (a module of this package, e.g. ``vllm.preflight``) answers there.

        The answer is an object; where there is none, the reason. ``timeout_seconds`` bounds both sides.
        """
        request = {"limit_s": timeout_seconds, **request}
        script = program_text(program)
        return ask(self.python, script, request, timeout_seconds=timeout_seconds, way=self.way)

    def _way(self, argv: list[str]) -> list[str]:
        words = [*self.prefix, *argv]
        return self.host.command(words) if self.host else words


@cache
def program_text(program: str) -> str:
    """The program as one text: what all programs begin with, then the module, each under its own name."""
    root = files("draftproof.runtimes")
    texts = tuple(
        (f"draftproof.runtimes.{name}", (root / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))
        for name in ("frame", "lifting", program)
    )
    return _STARTED.format(parts=texts)
