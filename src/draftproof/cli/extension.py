"""``draftproof extension``: where the file lies that an engine's worker loads to tell what it holds."""

import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from draftproof.cli.engine_option import EngineName
from draftproof.cli.output import emit_json, line

__all__ = ["extension"]

_STARTS = {
    "vllm": (
        "PYTHONPATH={directory} VLLM_SERVER_DEV_MODE=1 python -m vllm.entrypoints.openai.api_server "
        "--host 127.0.0.1 --worker-extension-cls draftproof_vllm.DraftproofExtension ..."
    ),
    "sglang": (
        "PYTHONPATH={directory} DRAFTPROOF_EFFECTIVE=/tmp/effective python -m sglang.launch_server "
        "--host 127.0.0.1 ..."
    ),
}


def extension(
    engine: Annotated[EngineName, typer.Argument(metavar="ENGINE", help="vllm or sglang.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Print the directory to put on a server's PYTHONPATH, so that its workers can tell what they hold."""
    directory = Path(str(files("draftproof.runtimes") / engine / "extension"))
    start = _STARTS[engine].format(directory=shlex.quote(str(directory)))
    if as_json:
        emit_json(
            {
                "schema": "draftproof.extension/1",
                "engine": engine,
                "directory": str(directory),
                "start": start,
            }
        )
    else:
        line(str(directory))
    return 0
