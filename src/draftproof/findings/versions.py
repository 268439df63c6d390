"""Engines and their versions: what a row of the tables is known to hold for, and what stays unknown."""

import re
from dataclasses import dataclass
from enum import StrEnum

from draftproof.errors import UsageError

__all__ = ["Engine", "Verdict", "Version", "Versions", "parse_engine", "trimmed", "version_text"]

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine at a version, as the user names it: ``vllm@0.20.1``."""

    name: str
    version: Version

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}"


class Verdict(StrEnum):
    """Whether a row holds for a version."""

    HOLDS = "holds"
    HOLDS_NOT = "holds not"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of one engine that a row is known to hold for."""

    engine: str
    since: Version | None
    """First version read in source; None where only a commit or a report is known."""

    until: Version | None
    """First version known to be free of it, or not read; None where none is."""

    def verdict(self, engine: Engine) -> Verdict:
        """Whether the row holds for ``engine``; UNKNOWN outside what was read in source."""
        if engine.name != self.engine:
            return Verdict.HOLDS_NOT
        if self.until is not None and engine.version >= self.until:
            return Verdict.HOLDS_NOT
        if self.since is None or engine.version < self.since or self.until is None:
            return Verdict.UNKNOWN
        return Verdict.HOLDS

    def __str__(self) -> str:
        if self.since is None:
            return f"{self.engine}, from which version on is not recorded here"
        start = ".".join(map(str, self.since))
        if self.until is None:
            return f"{self.engine} {start} and possibly later"
        return f"{self.engine} {start} until before {'.'.join(map(str, self.until))}"


def trimmed(version: Version) -> Version:
    """The version without trailing zeros: 0.26.0 is 0.26."""
    while version and version[-1] == 0:
        version = version[:-1]
    return version


def version_text(version: Version) -> str:
    """``0.20.1``."""
    return ".".join(map(str, version))


_NAMED = re.compile(r"(?P<name>vllm|sglang)@(?P<version>\d+(?:\.\d+){1,3})")


def parse_engine(text: str) -> Engine:
    """The engine a user names. Raises UsageError where the text is not ``NAME@VERSION``."""
    match = _NAMED.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(
            "--engine",
            expected="vllm@VERSION or sglang@VERSION, e.g. vllm@0.20.1",
            found=repr(text),
            where="command line",
            means="nothing was read and nothing was done",
            next_step="draftproof check --help",
        )
    return Engine(match["name"], tuple(int(part) for part in match["version"].split(".")))
