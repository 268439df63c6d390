"""The ledger: what was intended where, what was there before, and what was proven; only ever appended to.

One JSON object a line, each carrying the digest of the line before it; every append is synced. A last line
without its line feed is an append that a crash cut short (it was never acknowledged); anything else that does
not fit the chain is damage, and nothing is repaired by guessing. ``head`` repeats the last acknowledged
entry, so that whole lines cut off the end are noticed too.
"""

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from draftproof.config.raw import JsonValue
from draftproof.deploy.ledger.objects import Objects, sha256_hex, sync_directory
from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.names import Sha256
from draftproof.printable import MASKED, is_secret_key

__all__ = ["Entry", "Ledger", "LedgerDamaged", "LedgerText", "LedgerUnusable", "parse_ledger"]

GENESIS = "0" * 64


class LedgerUnusable(CouldNotLook):
    """The ledger's directory cannot be used."""

    id = "ledger-unusable"


class LedgerDamaged(RefusedInput):
    """The ledger was changed after it was written, or lost acknowledged entries."""

    id = "ledger-damaged"


@dataclass(frozen=True, slots=True)
class Entry:
    """One acknowledged line."""

    seq: int
    """Counted from 1."""

    time: str
    """UTC, ISO 8601; the controlling machine's clock."""

    kind: str
    """write, expect, receipt, refused or seen."""

    facts: Mapping[str, JsonValue]
    digest: Sha256
    """Of the line; the next line carries it."""


@dataclass(frozen=True, slots=True)
class LedgerText:
    """A ledger as read."""

    entries: tuple[Entry, ...]
    torn: bytes
    """An append that a crash cut short: bytes after the last line feed, empty as a rule."""

    @property
    def set_back(self) -> tuple[int, ...]:
        """Numbers of the entries whose clock was behind that of the one before; the order is by number."""
        pairs = zip(self.entries, self.entries[1:], strict=False)
        return tuple(later.seq for earlier, later in pairs if later.time < earlier.time)


def parse_ledger(data: bytes, origin: str) -> LedgerText:
    """Every entry, the chain checked. Raises LedgerDamaged at the first line that does not fit."""
    *lines, torn = data.split(b"\n")
    entries: list[Entry] = []
    for seq, line in enumerate(lines, 1):
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            _damaged(origin, seq, "a JSON object", "something else")
        if not isinstance(document, dict) or document.keys() != {"seq", "prev", "time", "kind", "facts"}:
            _damaged(origin, seq, "an entry's five fields", "others")
        kinds = [document["time"], document["kind"], document["facts"]]
        if [type(each) for each in kinds] != [str, str, dict]:
            _damaged(origin, seq, "a time, a kind and facts", "values of other types")
        previous = entries[-1].digest if entries else GENESIS
        if (document["seq"], document["prev"]) != (seq, previous):
            _damaged(
                origin, seq, f"entry {seq} after {previous[:16]}", "another entry, or a changed one before"
            )
        entries.append(Entry(seq, document["time"], document["kind"], document["facts"], sha256_hex(line)))
    return LedgerText(tuple(entries), torn)


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger in a directory of its own, readable by its owner only."""

    directory: Path

    @property
    def objects(self) -> Objects:
        """The contents that entries name by digest."""
        return Objects(self.directory / "objects")

    @property
    def _file(self) -> Path:
        return self.directory / "ledger.jsonl"

    def read(self) -> LedgerText:
        """All entries; an absent ledger is an empty one. Raises LedgerDamaged."""
        with self._usable():
            return self._read()

    def check_owner(self) -> None:
        """Raise LedgerUnusable where another user owns it, or all may write; one that is absent is nobody's.

        Its group is trusted: many systems give each user one of his own.
        """
        for path in (self.directory, self._file):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                self._unusable(path, str(error.strerror), error)
            is_ours = status.st_uid == os.geteuid()
            if not is_ours or status.st_mode & stat.S_IWOTH:
                whose = f"mode {stat.S_IMODE(status.st_mode):04o}"
                self._unusable(
                    path, whose if is_ours else f"owner uid {status.st_uid}, we are {os.geteuid()}"
                )

    def _read(self) -> LedgerText:
        self.check_owner()
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            data = b""
        text = parse_ledger(data, str(self._file))
        self._check_head(text)
        return text

    def append(self, kind: str, facts: Mapping[str, JsonValue]) -> Entry:
        """Add one entry and return when it is synced. Raises LedgerDamaged, or OSError where it cannot."""
        with self._locked():
            last = self._untouched_last() or self._checked_last()
            entry = self._write_line(last, kind, _redacted(facts))
            self._write_head(entry)
        return entry

    def _untouched_last(self) -> tuple[int, str] | None:
        """Number and digest of the last entry, where nobody but ``append`` has touched the file since it.

        Every append leaves the file's size, inode and change time in ``head``; a change time cannot be set,
        so a file that still has all three is the one whose chain was checked. None for any other: the whole
        ledger is read then.
        """
        words = self._head_words()
        if len(words) != 5 or not words[0].isdigit():  # noqa: PLR2004 - number, digest and the stamp
            return None
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return None
        if words[2:] != _stamp(status):
            return None
        return int(words[0]), words[1]

    def _checked_last(self) -> tuple[int, str]:
        """The same from reading the whole ledger; an append that a crash cut short is set aside."""
        text = self._read()
        if text.torn:
            self._set_aside(text)
        return len(text.entries), text.entries[-1].digest if text.entries else GENESIS

    def _write_line(self, last: tuple[int, str], kind: str, facts: JsonValue) -> Entry:
        seq, previous = last[0] + 1, last[1]
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        document = {"seq": seq, "prev": previous, "time": time, "kind": kind, "facts": facts}
        line = json.dumps(document, ensure_ascii=True, allow_nan=False).encode("ascii")
        is_new = not self._file.exists()
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "ab") as stream:
            stream.write(line + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        if is_new:
            sync_directory(self.directory)
        return Entry(seq, time, kind, json.loads(line)["facts"], sha256_hex(line))

    def _write_head(self, entry: Entry) -> None:
        temporary = self.directory / "head.part"
        stamp = " ".join(_stamp(self._file.stat()))
        temporary.write_text(f"{entry.seq} {entry.digest} {stamp}\n", "ascii")
        temporary.chmod(0o600)
        temporary.replace(self.directory / "head")

    def _check_head(self, text: LedgerText) -> None:
        """Raise LedgerDamaged where an acknowledged entry is gone; a crash may only leave the head behind."""
        words = self._head_words()
        if len(words) not in {2, 5}:  # without and with the file's stamp; a cut head is a crash's, no proof
            return
        if not words[0].isdigit() or words[0] == "0":
            _damaged(str(self.directory / "head"), 1, "a number and a digest", "something else")
        seq, digest = int(words[0]), words[1]
        if seq > len(text.entries) or text.entries[seq - 1].digest != digest:
            _damaged(
                str(self._file), seq, f"entry {seq}, digest {digest[:16]}", "it is missing or another one"
            )

    def _head_words(self) -> list[str]:
        try:
            return (self.directory / "head").read_text("ascii", "replace").split()
        except FileNotFoundError:
            return []

    def _set_aside(self, text: LedgerText) -> None:
        """Move a torn line out of the way, keeping its bytes."""
        self.objects.keep(text.torn)
        with self._file.open("r+b") as stream:
            stream.truncate(stream.seek(0, os.SEEK_END) - len(text.torn))
            os.fsync(stream.fileno())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._usable():
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.check_owner()
            descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._unusable(self.directory, str(error.strerror), error)

    def _unusable(self, path: Path, found: str, cause: OSError | None = None) -> NoReturn:
        raise LedgerUnusable(
            str(self.directory),
            expected="a directory of our own that we can read and write, and not everybody",
            found=found,
            where=str(path),
            means="nothing is concluded from what others can write, and without its entry a write could not "
            "be told from none; it is not done",
            next_step="name a directory of your own with --ledger DIR, or make this one so: chown, chmod o-w",
        ) from cause


def _stamp(status: os.stat_result) -> list[str]:
    """What changes whenever a file is touched by anybody."""
    return [str(status.st_size), str(status.st_ino), str(status.st_ctime_ns)]


def _redacted(value: JsonValue | Mapping[str, JsonValue]) -> JsonValue:
    """The value with everything under a secret's key masked, at any depth."""
    if isinstance(value, Mapping):
        return {
            key: MASKED if is_secret_key(key) and isinstance(inner, str) else _redacted(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_redacted(inner) for inner in value]
    return value


def _damaged(origin: str, seq: int, expected: str, found: str) -> NoReturn:
    raise LedgerDamaged(
        origin,
        expected=expected,
        found=found,
        where=f"{origin} line {seq}",
        means="the ledger was changed after it was written; nothing is concluded from it and nothing added",
        next_step="restore it from a backup, or start another one with --ledger DIR",
    )
