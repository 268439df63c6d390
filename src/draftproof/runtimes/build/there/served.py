"""What a running process holds of the package: its interpreter, its path, and the libraries it has mapped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

__all__ = ["served"]

Json = dict[str, Any]
MAX_BYTES = 64 << 20
SHOWN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONPYCACHEPREFIX")


def served(pid: int, package: str) -> Json:
    """Program, directory, path variables, and the roots of ``package`` that process ``pid`` has mapped."""
    place = Path("/proc") / str(pid)
    answer: Json = {"pid": pid, "argv0": "", "exe": "", "cwd": "", "env": {}, "roots": [], "why": ""}
    try:
        answer["argv0"] = read(place / "cmdline").split(b"\0")[0].decode("utf-8", "replace")
        answer["exe"] = str((place / "exe").readlink())
        answer["cwd"] = str((place / "cwd").readlink())
        variables = read(place / "environ").split(b"\0")
        pairs = [one.decode("utf-8", "replace").partition("=") for one in variables]
        answer["env"] = {name: value for name, _, value in pairs if name in SHOWN}
        mapped = read(place / "maps").decode("utf-8", "surrogateescape")
    except OSError as error:
        return dict(answer, why=f"{error.strerror}: {error.filename}")
    found = re.findall(rf"^\S+ \S+ \S+ \S+ \d+ +(/.*?/{re.escape(package)})/[^\n]*$", mapped, re.MULTILINE)
    answer["roots"] = sorted(
        {root.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for root in found}
    )
    return answer


def read(file: Path) -> bytes:
    """At most so much of a file of /proc."""
    with file.open("rb") as stream:
        return stream.read(MAX_BYTES)
