"""The options that say where models run and in what precision, for every verb that runs one."""

from typing import Annotated

import typer

__all__ = ["Device", "Dtype"]

Device = Annotated[str, typer.Option("--device", metavar="cpu|cuda", help="Where to run.")]
Dtype = Annotated[
    str | None,
    typer.Option("--dtype", metavar="NAME", help="float32, bfloat16, ...; the checkpoint's otherwise."),
]
