"""What the verbs over a plan share: every file worked on, each result told, the worst exit status of all."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from draftproof.cli.ledger_option import read_source
from draftproof.cli.output import emit_json, line
from draftproof.config.raw import JsonValue
from draftproof.deploy.fleet.fleet import each_file, worst
from draftproof.deploy.fleet.plan import PlannedFile, read_plan
from draftproof.deploy.process import Process
from draftproof.deploy.writing.write import WriteOrder
from draftproof.errors import DraftproofError, UsageError

__all__ = ["checked_jobs", "order_for", "run_plan", "sources"]


class Result(Protocol):
    """What became of one file."""

    def as_dict(self) -> dict[str, JsonValue]:
        """For ``--json``."""


R = TypeVar("R", bound=Result)


def run_plan(
    verb: str,
    plan_file: Path,
    work: Callable[[PlannedFile, bytes], R],
    tell: Callable[[R], None],
    exit_of: Callable[[R], int],
    *,
    jobs: int,
    as_json: bool,
) -> int:
    """Do ``work`` for every file of the plan, tell each result or error as it comes, return the worst status.

    Args:
        verb: Names the schema.
        plan_file: Read whole, with every source, before anything is done.
        work: Given a file and its content; an error meant for the user is that file's result.
        tell: Prints one result as text.
        exit_of: The exit status that one result stands for.
        jobs: So many files at a time.
        as_json: One object at the end instead of text.
    """
    files, workers = read_plan(plan_file).files, checked_jobs(jobs)
    contents = sources(files)
    codes: list[int] = []
    results: list[dict[str, object]] = []
    for told in each_file(files, lambda file: work(file, contents[file.source]), jobs=workers):
        if isinstance(told.result, DraftproofError):
            codes.append(told.result.exit_code)
            results.append({"target": str(told.file.place), "error": told.result.as_dict()})
            if not as_json:
                _tell_error(told.file, told.result)
            continue
        codes.append(exit_of(told.result))
        results.append(dict(told.result.as_dict()))
        if not as_json:
            tell(told.result)
    if as_json:
        emit_json({"schema": f"draftproof.{verb}/1", "plan": str(plan_file), "files": results})
    return worst(codes)


def checked_jobs(jobs: int) -> int:
    """The number of files at a time. Raises UsageError below one."""
    if jobs < 1:
        raise UsageError(
            "--jobs",
            expected="at least 1",
            found=str(jobs),
            where="command line",
            means="nothing was done",
            next_step="--jobs 8",
        )
    return jobs


def sources(files: tuple[PlannedFile, ...]) -> dict[Path, bytes]:
    """Every source once, read before anything is done. Raises CouldNotLook where one cannot be."""
    return {path: read_source(path) for path in dict.fromkeys(file.source for file in files)}


def order_for(file: PlannedFile, content: bytes) -> WriteOrder:
    """The write that a planned file stands for."""
    return WriteOrder(
        file.place,
        content,
        source=str(file.source.absolute()),
        expected_old=file.expected_old,
        level=file.level,
        root=file.root,
        process=Process(port=file.port),
    )


def _tell_error(file: PlannedFile, error: DraftproofError) -> None:
    line(f"{file.place}: {error.id}: expected {error.expected}, found {error.found}", style="error")
