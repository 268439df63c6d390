"""Distributions that claim the package, and their RECORD held against the files: digests, missing, extra."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import os
import stat
import time
from pathlib import Path
from typing import Any

__all__ = ["check_record", "claims", "extra_files", "installed", "read_limited"]

Json = dict[str, Any]
MAX_TEXT_BYTES = 64 << 20
CHUNK = 1 << 20


def installed() -> dict[str, list[str]]:
    """Every distribution on the path and its versions, first on the path first."""
    found: dict[str, list[str]] = {}
    for one in importlib.metadata.distributions():
        name = one.metadata["Name"]
        if name:
            found.setdefault(str(name), []).append(str(one.version))
    return found


def claims(package: str) -> list[Json]:
    """The distributions that bring the package: by ``top_level.txt``, their RECORD, or their name."""
    found = []
    for one in importlib.metadata.distributions():
        name = one.metadata["Name"]
        record = read_text(one, "RECORD")
        if not name or not brings(one, str(name), package, record):
            continue
        found.append(
            {
                "name": str(name),
                "version": str(one.version),
                "folder": str(one.locate_file("")),
                "requires": [str(line) for line in one.requires or ()],
                "direct_url": read_text(one, "direct_url.json"),
                "installer": read_text(one, "INSTALLER").strip(),
                "wheel": read_text(one, "WHEEL"),
                "has_record": bool(record),
                "rows": rows_of(record),
            }
        )
    return found


def brings(one: importlib.metadata.Distribution, name: str, package: str, record: str) -> bool:
    """Whether the distribution says that it is where the package comes from."""
    if package in read_text(one, "top_level.txt").split():
        return True
    folded = name.lower().replace("_", "-").replace(".", "-")
    return f"\n{package}/__init__.py," in "\n" + record or folded == package


def read_text(one: importlib.metadata.Distribution, name: str) -> str:
    """A file of the metadata; empty where there is none."""
    return (one.read_text(name) or "")[:MAX_TEXT_BYTES]


def rows_of(record: str) -> list[list[str]]:
    """Path, hash and size of each row that has a path."""
    rows = csv.reader(record.splitlines())
    return [[*row, "", ""][:3] for row in rows if row and row[0]]


def check_record(claim: Json, until: float) -> Json:
    """Each row that carries a digest against its file, until time is up; what was left is counted."""
    folder = Path(claim["folder"])
    rows = [row for row in claim["rows"] if row[1]]
    answer: Json = {
        "rows": len(claim["rows"]),
        "hashed": len(rows),
        "checked": 0,
        "modified": [],
        "missing": [],
    }
    answer["unreadable"] = []
    for path, digest, _ in rows:
        if time.monotonic() > until:
            break
        answer["checked"] += 1
        algorithm, _, value = digest.partition("=")
        try:
            found = digest_of(folder / path, algorithm)
        except FileNotFoundError:
            answer["missing"].append(path)
        except (OSError, ValueError) as error:
            answer["unreadable"].append({"path": path, "why": str(error)})
        else:
            if found != value:
                answer["modified"].append(path)
    return answer


def digest_of(file: Path, algorithm: str) -> str:
    """The digest as RECORD writes it: URL-safe base64 without padding. Raises OSError and ValueError."""
    hasher = hashlib.new(algorithm)
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)  # a pipe under a file's name must not hold us
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            hasher.update(chunk)
    return base64.urlsafe_b64encode(hasher.digest()).rstrip(b"=").decode("ascii")


def extra_files(root: Path, claim: Json | None) -> list[str]:
    """Files below the package that no row names, compiled caches aside; none where no row names its own."""
    if claim is None or not any(row[0] == f"{root.name}/__init__.py" for row in claim["rows"]):
        return []
    folder = os.path.realpath(claim["folder"])
    known = {os.path.normpath(f"{folder}/{row[0]}") for row in claim["rows"]}
    found = []
    for here, folders, names in os.walk(os.path.realpath(root)):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        found += [path for path in (f"{here}/{name}" for name in sorted(names)) if path not in known]
    return [os.path.relpath(path, folder) for path in found]


def read_limited(file: Path, limit: int) -> bytes:
    """At most ``limit`` bytes of a regular file. Raises OSError where it is none or holds more."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"more than {limit} bytes")
    return data
