"""``draftproof render ENGINE PLAN.toml``: one intended deployment in the words of one engine and version."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_json, line, shown

if TYPE_CHECKING:
    from draftproof.deploy.serving.form import Text
    from draftproof.deploy.serving.rendering import Rendering

__all__ = ["render"]


class EngineName(StrEnum):
    """The engines that a plan can be rendered for."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"
    LLAMACPP = "llamacpp"


class FormName(StrEnum):
    """The forms it can be written in."""

    ARGV = "argv"
    SHELL = "shell"
    YAML = "yaml"
    SYSTEMD = "systemd"
    COMPOSE = "compose"
    RAY = "ray"
    KUBERNETES = "kubernetes"
    HELM = "helm"
    LWS = "lws"
    DYNAMO = "dynamo"


def render(
    engine: Annotated[EngineName, typer.Argument(metavar="ENGINE", help="vllm, sglang, trtllm or llamacpp.")],
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="A plan with a [serve] table.")],
    *,
    engine_version: Annotated[
        str, typer.Option(metavar="V", help="The engine's version, where the plan does not say it.")
    ] = "",
    form: Annotated[FormName, typer.Option("--format", help="How it is written.")] = FormName.ARGV,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write every file there; nothing is overwritten.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with every reason.")] = False,
) -> int:
    """Print what an engine must be started with; every value has its reason, every loss its name.

    Standard output holds the form asked for and nothing else; reasons, losses and notes go to standard error.
    """
    from draftproof.deploy.serving.emit import as_dict, texts
    from draftproof.deploy.serving.plan import read_serve_plan
    from draftproof.deploy.serving.render import engine_of
    from draftproof.deploy.serving.render import render as rendered

    plan = read_serve_plan(plan_file)
    named, version = engine_of(plan, engine.value, engine_version)
    made = rendered(plan, named, version)
    files = texts(made, form.value)
    if out is not None:
        _write_all(out, files)
    if as_json:
        emit_json(as_dict(made, form.value, version))
        return made.exit_code
    if out is None:
        _print_files(files)
    _tell(made)
    return made.exit_code


def _print_files(files: "list[Text]") -> None:
    """The form itself goes out as it is, not as shown text: a pipe must get every byte."""
    import sys

    sys.stdout.write(files[0].content)
    for file in files[1:]:
        line(f"{file.name} goes with it; --out DIR writes it", style="note", to_stderr=True)


def _tell(made: "Rendering") -> None:
    from draftproof.deploy.serving.emit import values

    for name, said in values(made):
        line(f"{name} = {shown(said.value)}  ({said.reason}; {said.source})", style="dim", to_stderr=True)
    for note in made.notes:
        line(f"note: {note}", style="note", to_stderr=True)
    for unlooked in made.unlooked:
        line(f"not looked at: {unlooked.about}: {unlooked.reason}", style="warning", to_stderr=True)
    for loss in made.losses:
        line(f"lost {loss.about} = {shown(loss.value)}: {loss.why}", style="error", to_stderr=True)


def _write_all(out: Path, files: "list[Text]") -> None:
    """Every file new. Raises CouldNotLook where one exists already, or cannot be made; none is replaced."""
    from draftproof.errors import RefusedInput

    try:
        for file in files:
            path = out / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = 0o755 if path.suffix == ".sh" else 0o644
            with path.open("x", encoding="utf-8", newline="") as stream:
                stream.write(file.content)
            path.chmod(mode)
            line(str(path), to_stderr=True)
    except OSError as error:
        raise RefusedInput(
            str(error.filename or out),
            expected="a new file below --out",
            found=error.strerror or str(error),
            where=str(out),
            means="what was written before it stays; nothing was replaced",
            next_step="name a new directory",
        ) from error
