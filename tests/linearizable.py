"""Whether a history of operations on one register could have happened one after the other.

The search of Wing and Gong: pick any operation that nobody finished before, see whether it fits the value,
go on; a state already seen is not searched again.
Source: Wing, Gong 1993, Testing and Verifying Concurrent Objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Operation", "is_linearizable"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as its caller saw it."""

    started: float
    ended: float
    seen: str | None
    """The value that it saw, or needed, at its one moment; None where it saw nothing."""

    written: str | None = None
    """The value that it left, None for a read or a refused write."""

    is_certain: bool = True
    """False for a write that may or may not have happened."""


def is_linearizable(initial: str, history: Sequence[Operation]) -> bool:
    """Whether some order of the operations, each between its start and its end, explains every value seen."""
    refuted: set[tuple[frozenset[int], str]] = set()

    def fits(left: frozenset[int], value: str) -> bool:
        if not left:
            return True
        if (left, value) in refuted:
            return False
        first_end = min(history[number].ended for number in left)
        for number in sorted(left):
            operation = history[number]
            if operation.started > first_end:
                continue  # another one ended before this one began
            rest = left - {number}
            if not operation.is_certain and fits(rest, value):
                return True
            if operation.seen in {None, value} and fits(
                rest, value if operation.written is None else operation.written
            ):
                return True
        refuted.add((left, value))
        return False

    return fits(frozenset(range(len(history))), initial)
