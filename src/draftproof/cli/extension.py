"""``draftproof extension``: where the file lies that an engine's worker loads to tell what it holds."""

import shlex
from typing import Annotated

import typer

from draftproof.cli.engine_option import EngineName
from draftproof.cli.output import emit_json, line

__all__ = ["extension"]

_STARTS = {
    "vllm": (
        "PYTHONPATH={directory} VLLM_SERVER_DEV_MODE=1 python -m vllm.entrypoints.openai.api_server "
        "--host 127.0.0.1 --worker-extension-cls {worker} ..."
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
    from draftproof.runtimes.worker_extension import VLLM_CLASS, extension_directory

    directory = extension_directory(engine)
    start = _STARTS[engine].format(directory=shlex.quote(str(directory)), worker=VLLM_CLASS)
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
