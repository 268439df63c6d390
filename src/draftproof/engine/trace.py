"""What happened, step by step, as JSON lines: a head, one line a step, a closing line.

The file appears under its name when it is whole; until then it has ``.partial`` behind it.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from draftproof.errors import CouldNotLook

__all__ = ["Trace"]

SCHEMA = "draftproof.trace/1"


class Trace:
    """A trace file while it is written; a context manager."""

    def __init__(self, path: Path, head: Mapping[str, object]) -> None:
        """Name the file, and what the run was; nothing is opened yet."""
        self._path = path
        self._partial = path.with_name(path.name + ".partial")
        self._head = head
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        try:
            self._file = self._partial.open("w", encoding="ascii")
        except OSError as error:
            raise self._unwritable(error) from error
        self.write("head", {"schema": SCHEMA, **self._head})
        return self

    def write(self, kind: str, record: Mapping[str, object]) -> None:
        """One line.

        Raises:
            CouldNotLook: the file cannot be written.
        """
        assert self._file is not None, "a trace is written inside its with block"  # noqa: S101 - invariant
        try:
            self._file.write(json.dumps({"kind": kind, **record}, allow_nan=False) + "\n")
        except OSError as error:
            raise self._unwritable(error) from error

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None, "a trace is closed once"  # noqa: S101 - invariant
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            if kind is None:
                self._partial.replace(self._path)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> CouldNotLook:
        return CouldNotLook(
            "--trace",
            expected="a file that can be written",
            found=error.strerror or type(error).__name__,
            where=str(self._path),
            means="the steps of this run are not recorded",
            next_step="name a file in a writable directory with room",
        )
