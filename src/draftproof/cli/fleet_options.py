"""What the verbs over a plan share: the plan read, a host for each place, errors as lines and objects."""

from pathlib import Path

from draftproof.cli.ledger_option import read_source
from draftproof.cli.output import line
from draftproof.deploy.fleet.plan import PlannedFile
from draftproof.deploy.writing.write import WriteOrder
from draftproof.errors import DraftproofError, UsageError

__all__ = ["checked_jobs", "error_line", "error_object", "order_for", "sources"]


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
    )


def error_object(file: PlannedFile, error: DraftproofError) -> dict[str, object]:
    """A file's error among the results."""
    return {"target": str(file.place), "error": error.as_dict()}


def error_line(file: PlannedFile, error: DraftproofError) -> None:
    """A file's error as text."""
    line(f"{file.place}: {error.id}: expected {error.expected}, found {error.found}", style="error")
