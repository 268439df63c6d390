"""The options that name an engine and the Python it runs in, for every verb that asks it."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from draftproof.errors import UsageError
    from draftproof.runtimes.asking import EnginePython

__all__ = ["EngineName", "HostName", "Prefix", "SshConfig", "check_engine_named", "engine_python"]

EngineName = Literal["vllm", "sglang"]
HostName = Annotated[str | None, typer.Option("--host", metavar="H", help="The machine, as ssh knows it.")]
Prefix = Annotated[
    str | None,
    typer.Option("--prefix", metavar="CMD", help="What leads there: 'kubectl exec -i POD --'."),
]
SshConfig = Annotated[
    Path | None,
    typer.Option("--ssh-config", metavar="FILE", help="An ssh client configuration instead of the user's."),
]


def engine_python(
    python: str | None, host: str | None, prefix: str | None, ssh_config: Path | None
) -> "EnginePython":
    """The interpreter that the options name: ``python3`` elsewhere, this one here. Raises UsageError."""
    from draftproof.host.ssh import SshHost
    from draftproof.runtimes.asking import EnginePython

    if python is not None and not python.strip():
        raise _usage("--python", "the path of an interpreter", repr(python))
    try:
        words = tuple(shlex.split(prefix or ""))
    except ValueError as error:
        raise _usage("--prefix", "words as a shell splits them", f"{prefix!r} ({error})") from error
    if host is not None and (not host or host.startswith("-")):
        raise _usage("--host", "the name of a machine", repr(host))
    extra = ("-F", str(ssh_config)) if ssh_config else ()
    there = SshHost(host, extra=extra) if host else None
    default = "python3" if host or words else sys.executable
    return EnginePython(python or default, there, words)


def check_engine_named(engine: str | None, others: Mapping[str, object]) -> None:
    """Raise UsageError where an option was given that only means something beside ``--engine``."""
    given = [option for option, value in others.items() if value is not None]
    if engine is None and given:
        raise _usage("--engine", f"the engine that {' and '.join(given)} are about", "none")


def _usage(option: str, expected: str, found: str) -> "UsageError":
    from draftproof.errors import UsageError

    return UsageError(
        option,
        expected=expected,
        found=found,
        where="command line",
        means="no engine was asked",
        next_step="add --engine vllm" if option == "--engine" else f"give {option} a value that is meant",
    )
