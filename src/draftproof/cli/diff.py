"""``draftproof diff A B``: what differs between two configs, by type and value."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_error, emit_json
from draftproof.cli.process_option import Pid, Port
from draftproof.errors import CouldNotLook

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.config.raw import RawConfig

__all__ = ["diff"]


def diff(
    a: Annotated[
        Path,
        # readable=False: no permission to read is "could not look", as read_raw says; no usage error.
        typer.Argument(
            metavar="A",
            help="A JSON file, or a directory that holds config.json, here or host:/path.",
            readable=False,
        ),
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other one.", readable=False)],
    *,
    pid: Pid = None,
    port: Port = None,
    ssh_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client configuration for ssh instead of the user's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Show what differs between two configs by type and value; formatting alone is no difference."""
    from draftproof.cli.diff_view import Comparison
    from draftproof.cli.elsewhere import read_anywhere
    from draftproof.cli.process_option import process_named

    process = process_named(pid, port)
    reads = (lambda: read_anywhere(a, ssh_config), lambda: read_anywhere(b, ssh_config, process))
    files = _read_both(reads, as_json=as_json)
    if isinstance(files, int):
        return files
    comparison = Comparison.of(*files)
    if as_json:
        emit_json(comparison.document())
    else:
        comparison.print()
    return 1 if comparison.differences else 0


def _read_both(
    reads: "tuple[Callable[[], RawConfig], ...]", *, as_json: bool
) -> "tuple[RawConfig, RawConfig] | int":
    """Both files, or the exit status after every error was told: refused (1) beats missing (3)."""
    from draftproof.cli.diff_view import print_refusal
    from draftproof.config.raw import RawConfig, RefusedConfig

    read: list[RawConfig | CouldNotLook | RefusedConfig] = []
    for read_one in reads:
        try:
            read.append(read_one())
        except (CouldNotLook, RefusedConfig) as untold:
            read.append(untold)
    first, second = read
    if isinstance(first, RawConfig) and isinstance(second, RawConfig):
        return first, second
    errors = [e for e in read if not isinstance(e, RawConfig)]
    worst = min(errors, key=lambda error: error.exit_code)
    if as_json:
        told = [error.as_dict() for error in errors]
        emit_json({"schema": "draftproof.error/1", "error": worst.as_dict(), "errors": told})
        return worst.exit_code
    for error in errors:
        if isinstance(error, RefusedConfig):
            print_refusal(error)
        else:
            emit_error(error, as_json=False)
    return worst.exit_code
