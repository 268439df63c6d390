"""A plan: which files are meant for which places, read from TOML; nothing in it is ignored.

::

    level = "L3"                  # for all files that say nothing else; L2 where nobody says
    root = "/models"              # every path must lie below it; "/" where nobody says
    port = 8000                   # whoever listens there is to see the files; L6 and L7 need it
    hosts = ["gpu1", "gpu2"]      # "" is this machine, and is meant where nobody says

    [serve]                       # read by render and launch: deploy.serving.plan

    [[files]]
    source = "config.json"        # beside the plan
    path = "/models/dflash/config.json"
    hosts = ["gpu1"]              # level, root, port and expect_old may be said here too
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import ABSENT, OldDigest
from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.names import Sha256

__all__ = ["Plan", "PlanRefused", "PlannedFile", "parse_plan", "read_plan"]

_SAID_BY_NOBODY: dict[str, Any] = {"level": "L2", "root": "/", "hosts": [""], "expect_old": "", "port": 0}
_FOR_ALL = {"level": str, "root": str, "hosts": list, "port": int, "files": list, "serve": dict}
_FOR_ONE = {
    "source": str,
    "path": str,
    "hosts": list,
    "level": str,
    "root": str,
    "port": int,
    "expect_old": str,
}
_DIGEST_LENGTH = 64
_NEEDS_PROCESS = ("L6", "L7")
_LAST_PORT = 65535
_LONGEST = 16 << 20
"""Characters of a plan."""


class PlanRefused(RefusedInput):
    """The file is not a plan; every fault is listed."""

    id = "plan-refused"


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One content for one place."""

    place: Place
    source: Path
    root: str
    level: Level
    expected_old: OldDigest | None
    port: int = 0
    """Of the process that is to see the file, 0 for none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it, in the order of the file, hosts in the order given."""

    origin: str
    files: tuple[PlannedFile, ...]


def read_plan(path: Path) -> Plan:
    """The plan in a file. Raises CouldNotLook where it cannot be read, PlanRefused as parse_plan."""
    try:
        with path.open(encoding="utf-8") as stream:
            text = stream.read(_LONGEST)
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a NUL in the path
        raise CouldNotLook(
            str(path),
            expected="a plan in TOML",
            found=str(error),
            where=str(path),
            means="nothing was done",
            next_step=f"ls -l {path}",
        ) from error
    return parse_plan(text, path)


def parse_plan(text: str, path: Path) -> Plan:
    """The plan that ``text`` says; sources are beside ``path``. Raises PlanRefused with every fault."""
    if len(text) >= _LONGEST:
        raise _refused(path, [f"{_LONGEST} characters or more"])
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _refused(path, [str(error)]) from error
    faults = _key_faults(document, _FOR_ALL, "the plan")
    entries = document["files"] if "files" in document and isinstance(document["files"], list) else []
    files: list[PlannedFile] = []
    for number, entry in enumerate(entries, 1):
        where = f"files entry {number}"
        found = (
            _key_faults(entry, _FOR_ONE, where) if isinstance(entry, dict) else [f"{where} is not a table"]
        )
        if not found:
            merged = {**_SAID_BY_NOBODY, **document, **entry}
            found = _value_faults(merged, where)
            files += [] if found else _planned(merged, path)
        faults += found
    if not entries:
        faults.append("no [[files]]")
    places = [planned.place for planned in files]
    faults += [f"two contents for {place}" for place in dict.fromkeys(places) if places.count(place) > 1]
    if faults:
        raise _refused(path, faults)
    return Plan(str(path), tuple(files))


def _planned(merged: Mapping[str, Any], path: Path) -> list[PlannedFile]:
    old = merged["expect_old"]
    return [
        PlannedFile(
            Place(host, merged["path"]),
            path.parent / merged["source"],
            merged["root"],
            Level[merged["level"]],
            ABSENT if old == ABSENT else Sha256(old) if old else None,
            merged["port"],
        )
        for host in merged["hosts"]
    ]


def _key_faults(table: Mapping[str, Any], known: Mapping[str, type], where: str) -> list[str]:
    unknown = [f"{where}: {key!r} is no key of a plan" for key in table if key not in known]
    return unknown + [
        f"{where}: {key} must be a {kind.__name__}, is {table[key]!r}"
        for key, kind in known.items()
        if key in table and not isinstance(table[key], kind)
    ]


def _value_faults(merged: Mapping[str, Any], where: str) -> list[str]:
    faults = [f"{where}: {key} is missing" for key in ("source", "path") if key not in merged]
    names = [merged[key] for key in ("source", "path", "root") if key in merged]
    faults += [f"{where}: {name!r} holds a NUL" for name in [*names, *merged["hosts"]] if "\0" in str(name)]
    if "path" in merged and not merged["path"].startswith("/"):
        faults.append(f"{where}: path must be absolute, is {merged['path']!r}")
    if merged["level"] not in Level.__members__:
        faults.append(f"{where}: level must be L0 to L7, is {merged['level']!r}")
    elif merged["level"] in _NEEDS_PROCESS and not merged["port"]:
        faults.append(f"{where}: {merged['level']} needs a port: of the process that is to see the file")
    if not 0 <= merged["port"] <= _LAST_PORT:
        faults.append(f"{where}: {merged['port']} is no port")
    if not merged["hosts"]:
        faults.append(f"{where}: hosts is empty")
    faults += [
        f"{where}: {host!r} is no host"
        for host in merged["hosts"]
        if not isinstance(host, str) or host.startswith("-") or "/" in host or ":" in host
    ]
    old = merged["expect_old"]
    if old not in {"", ABSENT} and (len(old) != _DIGEST_LENGTH or set(old) - set("0123456789abcdef")):
        faults.append(f"{where}: expect_old must be a sha256 in hex or absent, is {old!r}")
    return faults


def _refused(path: Path, faults: list[str]) -> PlanRefused:
    return PlanRefused(
        str(path),
        expected="a plan: level, root, hosts, and [[files]] of source and path",
        found="; ".join(faults),
        where=str(path),
        means="nothing was done",
        next_step="mend the plan",
    )
