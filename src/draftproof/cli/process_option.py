"""The two options that name a serving process, for every verb that looks through its eyes."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from draftproof.deploy.process import Process

__all__ = ["Pid", "Port", "process_named"]

Pid = Annotated[
    int | None,
    typer.Option("--pid", metavar="N", min=1, help="A process there that is to see the same file."),
]
Port = Annotated[
    int | None,
    typer.Option("--port", metavar="N", min=1, max=65535, help="The same, by the port it listens on."),
]


def process_named(pid: int | None, port: int | None) -> "Process":
    """The process that the options name. Raises UsageError where both do."""
    from draftproof.deploy.process import Process
    from draftproof.errors import UsageError

    if pid is not None and port is not None:
        raise UsageError(
            "--port",
            expected="--pid or --port",
            found="both",
            where="command line",
            means="nothing was done",
            next_step="name the process one way",
        )
    return Process(pid or 0, port or 0)
