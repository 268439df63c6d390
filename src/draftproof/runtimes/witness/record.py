"""The record that the hook writes, read strictly: who opened what, and what could not be told."""

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.names import Sha256

__all__ = ["VARIABLE", "Opened", "WitnessRecord", "hook_directory", "read_record"]

VARIABLE = "DRAFTPROOF_WITNESS"
MAX_BYTES = 80 << 20


@dataclass(frozen=True, slots=True)
class Opened:
    """One file that a process was about to open for reading."""

    pid: int
    time_ns: int
    how: str
    """``open`` or ``safe_open``."""

    path: str
    """As it was named, made absolute."""

    real: str
    """Links followed."""

    dev: int
    ino: int
    hashed: str
    """``whole``, or ``header`` for safetensors: eight bytes of length and the header."""

    sha256: Sha256 | None
    """None where the file was too long to hash."""


@dataclass(frozen=True, slots=True)
class WitnessRecord:
    """All lines of a record."""

    file: str
    opened: tuple[Opened, ...]
    """In the order of the file."""

    num_processes: int
    trouble: tuple[str, ...]
    """What the hook could not tell."""


def hook_directory() -> Path:
    """The directory to put first on an engine's PYTHONPATH; its one module needs nothing of ours."""
    return Path(__file__).parent / "hook"


def read_record(file: Path) -> WitnessRecord:
    """Every line of a record.

    Raises:
        CouldNotLook: it cannot be read, or is no regular file of at most 80 MiB.
        RefusedInput: it is not what the hook writes, or others may write into it.
    """
    data = _bytes_of(file)
    opened: list[Opened] = []
    trouble: list[str] = []
    starts = 0
    for number, line in enumerate(data.splitlines(), 1):
        try:
            entry = _entry(line)
            match entry["event"]:
                case "opened":
                    opened.append(_opened(entry))
                case "trouble":
                    trouble.append(f"process {_count(entry['pid'])}: {_text(entry['why'])}")
                case _:
                    starts += 1
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _refused(file, f"{type(error).__name__}: {error}", number) from error
    return WitnessRecord(str(file), tuple(opened), starts, tuple(trouble))


def _bytes_of(file: Path) -> bytes:
    """The record as it is; a pipe under its name holds nobody."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _unread(file, "no regular file")
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unread(file, error.strerror or str(error)) from error
    if len(data) > MAX_BYTES:
        raise _unread(file, f"more than {MAX_BYTES >> 20} MiB")
    if stat.S_IMODE(status.st_mode) & 0o022:
        raise _refused(file, f"mode {stat.S_IMODE(status.st_mode):04o}", 0)
    return data


def _entry(line: bytes) -> Mapping[str, object]:
    value = json.loads(line)
    if not isinstance(value, dict) or value["v"] != 1 or value["event"] not in ("start", "opened", "trouble"):
        raise ValueError("no line of a witness")
    return value


def _opened(entry: Mapping[str, object]) -> Opened:
    digest = entry["sha256"]
    return Opened(
        _count(entry["pid"]),
        _count(entry["time_ns"]),
        _text(entry["how"]),
        _text(entry["path"]),
        _text(entry["real"]),
        _count(entry["dev"]),
        _count(entry["ino"]),
        _text(entry["hashed"]),
        None if digest is None else Sha256(_text(digest)),
    )


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a whole number was agreed, not {value!r}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was agreed, not {value!r}")
    return value


def _unread(file: Path, why: str) -> CouldNotLook:
    return CouldNotLook(
        str(file),
        expected="a record that the witness wrote",
        found=why,
        where=str(file),
        means="nothing is known of what was opened",
        next_step=f"start the engine with {VARIABLE}={file}; draftproof witness says how",
    )


def _refused(file: Path, why: str, number: int) -> RefusedInput:
    return RefusedInput(
        str(file),
        expected="lines that the witness wrote, in a file that only its owner writes",
        found=why,
        where=f"{file} line {number}" if number else str(file),
        means="the record cannot be relied upon; none of it is used",
        next_step="start the engine again with a new record",
    )
