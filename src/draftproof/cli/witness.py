"""``draftproof witness``: how to let an engine write down what it opens, and what its record proves."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_json, line

if TYPE_CHECKING:
    from draftproof.deploy.proof.witnessed import Wanted, Witnessed
    from draftproof.runtimes.witness.record import WitnessRecord

__all__ = ["witness"]

_MOST_BYTES = 64 << 20


def witness(
    record: Annotated[
        Path | None, typer.Argument(metavar="[RECORD]", help="What the engine's processes wrote.")
    ] = None,
    subject: Annotated[
        Path | None,
        typer.Argument(metavar="[SUBJECT]", help="A model's directory, a file, or a receipt (JSON)."),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Say how to start an engine with a witness; with RECORD, say which files its processes opened.

    Exit: 0 printed, or every config, index and header of SUBJECT was opened as it is; 1 other content was
    opened, or the record is not one; 2 usage; 3 a file has no opening on record, or cannot be read.
    """
    from draftproof.deploy.proof.witnessed import witnessed
    from draftproof.runtimes.witness.record import read_record

    if record is None:
        return _print_start(as_json=as_json)
    told = read_record(record)
    results = list(witnessed(told, _wanted(subject))) if subject else []
    code = _code(results)
    if as_json:
        emit_json(_document(told, results, code))
    else:
        _print(told, results)
    return code


def _code(results: "list[Witnessed]") -> int:
    if any(one.is_other for one in results):
        return 1
    return 0 if all(one.evidence.holds for one in results) else 3


def _print_start(*, as_json: bool) -> int:
    from draftproof.runtimes.witness.record import VARIABLE, hook_directory

    directory = str(hook_directory())
    if as_json:
        emit_json({"schema": "draftproof.witness/1", "directory": directory, "variable": VARIABLE})
        return 0
    line("start the engine with these in its environment (the file is made, mode 0600):")
    line(f"  PYTHONPATH={directory}:$PYTHONPATH")
    line(f"  {VARIABLE}=/an/absolute/path/witness.jsonl")
    line("on another machine or in a container: copy sitecustomize.py from there; it needs nothing else")
    line("then: draftproof witness /an/absolute/path/witness.jsonl /models/drafter")
    return 0


def _wanted(subject: Path) -> "list[Wanted]":
    """The files that are to have been opened. Raises CouldNotLook where there is none to ask about."""
    if subject.is_dir():
        named = [path for path in sorted(subject.iterdir()) if path.name.endswith(_ASKED)]
    else:
        receipt = _receipt(subject)
        if receipt is not None:
            return [receipt]
        named = [subject]
    try:
        found = [_as_it_is(path) for path in named]
    except OSError as error:
        raise _unread(subject, f"{error.strerror}: {error.filename}") from error
    if not found:
        raise _unread(subject, "no config, index or safetensors file")
    return found


_ASKED = ("config.json", ".safetensors", ".safetensors.index.json")


def _as_it_is(path: Path) -> "Wanted":
    """A file as it is now, hashed as the witness hashes it."""
    from draftproof.deploy.proof.witnessed import Wanted
    from draftproof.names import Sha256

    with path.open("rb") as stream:
        status = path.stat()
        data = stream.read(8) if path.name.endswith(".safetensors") else stream.read(_MOST_BYTES)
        if path.name.endswith(".safetensors"):
            data += stream.read(min(int.from_bytes(data, "little"), _MOST_BYTES))
    digest = Sha256(hashlib.sha256(data).hexdigest())
    return Wanted(str(path.resolve()), digest, (status.st_dev, status.st_ino))


def _receipt(subject: Path) -> "Wanted | None":
    """The file that a receipt of ``draftproof write --json`` is about; None where it is none."""
    from draftproof.cli.ledger_option import place_at
    from draftproof.deploy.proof.witnessed import Wanted
    from draftproof.names import Sha256

    try:
        document = json.loads(subject.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("schema") != "draftproof.receipt/1":
        return None
    target, digest = document.get("target"), document.get("sha256")
    if not isinstance(target, str) or not isinstance(digest, str):
        raise _unread(subject, "a receipt without a target or a digest")
    return Wanted(place_at(target).path, Sha256(digest), None)


def _unread(subject: Path, why: str) -> Exception:
    from draftproof.errors import CouldNotLook

    return CouldNotLook(
        str(subject),
        expected="a model's directory, one of its files, or a receipt",
        found=why,
        where=str(subject),
        means="there is nothing to hold the record against",
        next_step=f"ls -l {subject}",
    )


def _document(told: "WitnessRecord", results: "list[Witnessed]", code: int) -> dict[str, object]:
    return {
        "schema": "draftproof.witness/1",
        "record": told.file,
        "exit": code,
        "processes": told.num_processes,
        "opened": [
            {"pid": one.pid, "time_ns": one.time_ns, "how": one.how, "path": one.path, "sha256": one.sha256}
            for one in told.opened
        ],
        "trouble": list(told.trouble),
        "files": [one.as_dict() for one in results],
    }


def _print(told: "WitnessRecord", results: "list[Witnessed]") -> None:
    line(f"{told.num_processes} processes, {len(told.opened)} openings in {told.file}")
    for why in told.trouble:
        line(f"  the witness could not tell: {why}", style="warning")
    if not results:
        for one in told.opened:
            line(f"  process {one.pid} {one.how} {one.path} sha256 {one.sha256} ({one.hashed})")
    for result in results:
        level = "L7" if result.evidence.holds else "L7 not shown"
        style = "good" if result.evidence.holds else "error" if result.is_other else "warning"
        line(f"  {level}: {result.wanted.path}: {result.evidence.how}", style=style)
