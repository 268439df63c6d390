"""``draftproof convert DIR --to FORMAT``: the same drafter in the other format, on standard output only."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from draftproof.cli.output import emit_json, line, shown

__all__ = ["convert"]


class Format(StrEnum):
    """The formats a drafter's config can be written in."""

    NATIVE = "native"
    SPECULATORS = "speculators"


def convert(
    path: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A drafter directory, or its config as a file.", readable=False),
    ],
    to: Annotated[Format, typer.Option("--to", help="The format to write.")],
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object with the losses in it."),
) -> int:
    """Print a drafter's config in another format, and name every field that the format cannot hold."""
    import json
    import sys

    from draftproof.config.convert import convert as converted
    from draftproof.config.parse import find_config, parse_config
    from draftproof.config.raw import read_raw

    config = find_config(path)
    raw = read_raw(config)
    result = converted(raw, parse_config(raw), to.value)
    if as_json:
        losses = [{"pointer": x.pointer, "value": x.value, "why": x.why} for x in result.losses]
        emit_json(
            {
                "schema": "draftproof.convert/1",
                "subject": str(config),
                "from": result.source_format,
                "to": result.target_format,
                "unchanged": result.is_unchanged,
                "config": result.config,
                "losses": losses,
                "notes": list(result.notes),
            }
        )
    else:
        sys.stdout.write(json.dumps(result.config, indent=2) + "\n")
        if result.is_unchanged:
            line(f"{config} is in the {to.value} format already", to_stderr=True)
        for note in result.notes:
            line(f"note: {note}", style="note", to_stderr=True)
        for loss in result.losses:
            line(f"lost {loss.pointer} = {shown(loss.value)}: {loss.why}", style="warning", to_stderr=True)
    return 1 if result.losses else 0
