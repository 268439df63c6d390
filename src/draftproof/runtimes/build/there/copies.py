"""Every copy of a package that this interpreter could import, and the one that it would."""

from __future__ import annotations

import importlib.util
import os
import site
import sys
from pathlib import Path
from typing import Any

__all__ = ["copies_of", "imported", "path_entries"]

Json = dict[str, Any]
MAX_PTH_BYTES = 1 << 20


def path_entries(cwd: str) -> list[Json]:
    """``sys.path`` in order, each entry with what put it there; a server's directory stands first.

    The ``""`` of ``python -c`` is this probe's own and is taken out.
    """
    kept = [entry for entry in sys.path if entry]
    sys.path[:] = [cwd, *kept] if cwd else kept
    named = pth_lines()
    return [{"entry": entry, "from": origin_of(entry, cwd, named)} for entry in sys.path]


def origin_of(entry: str, cwd: str, named: dict[str, str]) -> str:
    """Why a directory is on the path."""
    if cwd and entry == cwd:
        return "the server's directory"
    given = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    if any(same(entry, one) for one in given):
        return "PYTHONPATH"
    if entry in site_directories():
        return "user site" if entry == site.getusersitepackages() else "site-packages"
    if entry in named:
        return named[entry]
    return "the interpreter"


def site_directories() -> list[str]:
    """The directories whose ``.pth`` files are obeyed."""
    found = list(site.getsitepackages())
    return [*found, site.getusersitepackages()] if site.ENABLE_USER_SITE else found


def pth_lines() -> dict[str, str]:
    """Directories that a ``.pth`` file puts on the path, each with that file's name."""
    named: dict[str, str] = {}
    for folder in site_directories():
        for file in sorted(Path(folder).glob("*.pth")):
            for line in text_of(file).splitlines():
                entry = line.strip()
                if entry and not entry.startswith(("#", "import ", "import\t")):
                    named.setdefault(str(Path(folder, entry)), file.name)
    return named


def text_of(file: Path) -> str:
    """A small text file; empty where it cannot be read, as ``site`` treats it."""
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_PTH_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def copies_of(package: str, entries: list[Json]) -> list[Json]:
    """What stands under the package's name in each directory of the path, in the order of the search."""
    found = []
    for entry in entries:
        kind = kind_at(Path(entry["entry"]), package)
        if kind is not None:
            found.append(dict(entry, kind=kind, root=str(Path(entry["entry"]) / package)))
    return found


def kind_at(folder: Path, package: str) -> str | None:
    """``package``, ``namespace`` (a directory without ``__init__.py``), ``module``, or None."""
    if (folder / package / "__init__.py").is_file():
        return "package"
    if (folder / f"{package}.py").is_file():
        return "module"
    if (folder / package).is_dir():
        return "namespace"
    return None


def imported(package: str) -> Json:
    """What an import would load, as the finders say; they load nothing for a name without dots."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError, OSError) as error:
        return {
            "kind": "error",
            "root": "",
            "origin": "",
            "finder": "",
            "why": f"{type(error).__name__}: {error}",
        }
    if spec is None:
        return {"kind": "absent", "root": "", "origin": "", "finder": "", "why": ""}
    roots = [str(one) for one in spec.submodule_search_locations or ()]
    kind = "module" if spec.submodule_search_locations is None else "package" if spec.origin else "namespace"
    finder = type(spec.loader).__module__ if spec.loader else ""
    return {
        "kind": kind,
        "root": roots[0] if roots else "",
        "origin": spec.origin or "",
        "finder": finder,
        "why": "",
    }


def same(left: str, right: str) -> bool:
    """Whether two names lead to one directory."""
    return os.path.realpath(left) == os.path.realpath(right)
