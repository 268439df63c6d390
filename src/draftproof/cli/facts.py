"""``draftproof facts DIR``: the canonical drafter or target, every value with where it comes from."""

from pathlib import Path
from typing import Annotated

import typer

from draftproof.cli.output import emit_json

__all__ = ["facts"]


def facts(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A drafter or target directory, or its config as a file.", readable=False
        ),
    ],
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> int:
    """Show what a config says, in canonical words, every value with the place it comes from."""
    from draftproof.cli.facts_view import print_facts
    from draftproof.config.facts import facts as canonical
    from draftproof.config.parse import find_config, parse_config, require_recognised
    from draftproof.config.raw import read_raw

    config = find_config(path)
    parsed = require_recognised(parse_config(read_raw(config)), str(config))
    if as_json:
        emit_json({**canonical(parsed), "subject": str(config)})
    else:
        print_facts(parsed, str(config))
    return 0
