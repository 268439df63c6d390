"""Moments on a machine: how exact a process's start is known, and how one is told."""

from datetime import UTC, datetime

__all__ = ["CLOCK_NS", "told_time"]

CLOCK_NS = 20_000_000
"""Two ticks: a start is known to a hundredth of a second, and by another clock than a change."""


def told_time(moment_ns: int) -> str:
    """Nanoseconds since the epoch as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(moment_ns / 1e9, UTC).isoformat(timespec="milliseconds")
