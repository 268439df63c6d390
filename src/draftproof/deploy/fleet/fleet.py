"""Many files on many hosts at once, so many at a time; one that fails hides none of the others."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from draftproof.deploy.fleet.plan import PlannedFile
from draftproof.errors import DraftproofError

__all__ = ["Told", "each_file", "worst"]

T = TypeVar("T")

_WORST_FIRST = (5, 4, 1, 3, 0)
"""Unknown before conflict before a finding before a place that could not be looked at."""


@dataclass(frozen=True, slots=True)
class Told(Generic[T]):
    """What became of one planned file: its result, or the error that stood in the way."""

    file: PlannedFile
    result: T | DraftproofError


def each_file(
    files: Sequence[PlannedFile], work: Callable[[PlannedFile], T], *, jobs: int
) -> Iterator[Told[T]]:
    """Do ``work`` for every file, at most ``jobs`` at a time; results in the order of the plan.

    An error that is meant for the user belongs to its file alone; a fault of our own ends everything.
    """

    def told(file: PlannedFile) -> Told[T]:
        try:
            return Told(file, work(file))
        except DraftproofError as error:
            return Told(file, error)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(told, files)


def worst(codes: Sequence[int]) -> int:
    """The exit status of many: unknown, conflict, finding, could not look, the first that occurs; else 0."""
    for code in _WORST_FIRST:
        if code in codes:
            return code
    return 0
