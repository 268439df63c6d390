"""The probe: one JSON object on standard input, one frame on standard output, all else to standard error.

Input: ``nonce``, ``package``, ``cwd``, ``seconds``, ``pid`` (0 for none), ``import_seconds`` (0: nothing is
imported), ``questions`` (see ``source.ask_source``), ``symbols``, ``beside`` (packages built together).
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from draftproof.runtimes.build.there.bytecode import compiled_files
from draftproof.runtimes.build.there.calls import operator_calls
from draftproof.runtimes.build.there.copies import copies_of, imported, path_entries
from draftproof.runtimes.build.there.importing import import_in_child
from draftproof.runtimes.build.there.native import libraries
from draftproof.runtimes.build.there.records import check_record, claims, extra_files, installed
from draftproof.runtimes.build.there.served import served
from draftproof.runtimes.build.there.source import ask_source, constants, file_of
from draftproof.runtimes.build.there.tree import checked_out

Json = dict[str, Any]
VERSIONS = ("__version__", "version", "__commit_id__", "commit_id", "git_version", "cuda", "hip")


def main() -> None:
    """Read the request, look, write one frame."""
    out = os.dup(1)
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    body = json.dumps(look(request), ensure_ascii=True, allow_nan=False, sort_keys=True).encode("ascii")
    nonce = request["nonce"]
    head = f"\ndraftproof-frame {nonce} {len(body)} {hashlib.sha256(body).hexdigest()}\n"
    left = head.encode("ascii") + body + f"\ndraftproof-end {nonce}\n".encode("ascii")
    while left:
        left = left[os.write(out, left) :]


def look(request: Json) -> Json:
    """Everything that the request asks for."""
    until = time.monotonic() + request["seconds"]
    package = request["package"]
    entries = path_entries(request["cwd"])
    claimed = claims(package)
    found = imported(package)
    answer = {
        "python": interpreter(),
        "path": entries,
        "copies": copies_of(package, entries),
        "imported": found,
        "process": served(request["pid"], package) if request["pid"] else None,
        "installed": installed(),
        "beside": {name: beside(name) for name in request["beside"]},
    }
    if found["kind"] == "package":
        answer["contents"] = contents(Path(found["root"]), claimed, request, until)
    answer["claims"] = [{key: value for key, value in one.items() if key != "rows"} for one in claimed]
    if request["import_seconds"]:
        answer["import"] = import_in_child(package, request["cwd"], request["import_seconds"])
    return answer


def contents(root: Path, claimed: list[Json], request: Json, until: float) -> Json:
    """The imported copy: its owner, its files, its caches, its libraries, its source."""
    owner = next((one for one in claimed if owns(one, root)), None)
    record = check_record(owner, until) if owner and owner["has_record"] else None
    changed = (
        [] if owner is None or record is None else [str(Path(owner["folder"], p)) for p in record["modified"]]
    )
    asked = [file_of(root, one["module"]) for one in request["questions"]]
    compared = [*changed, *(str(file) for file in asked if file)]
    return {
        "owner": owner["name"] if owner else None,
        "record": record,
        "extra": extra_files(root, owner),
        "bytecode": compiled_files(root, compared, until),
        "native": libraries(root, request["symbols"], until),
        "constants": constants(root, VERSIONS),
        "commit": checked_out(root),
        "answers": [ask_source(root, one) for one in request["questions"]],
        "calls": operator_calls(root),
    }


def owns(claim: Json, root: Path) -> bool:
    """Whether the copy at ``root`` is the one that the distribution brought."""
    here = os.path.realpath(root)
    wanted = f"{root.name}/__init__.py"
    if any(row[0] == wanted for row in claim["rows"]):
        return os.path.realpath(Path(claim["folder"]) / root.name) == here
    try:
        direct = json.loads(claim["direct_url"] or "{}")
    except ValueError:
        return False
    url = direct.get("url", "") if isinstance(direct, dict) else ""
    if not isinstance(url, str) or not url.startswith("file://"):
        return False
    home = os.path.realpath(url[len("file://") :])
    return here.startswith(home + os.sep)


def interpreter() -> Json:
    """This Python, and what markers of requirements ask about it."""
    return {
        "executable": sys.executable,
        "prefix": sys.prefix,
        "implementation_name": sys.implementation.name,
        "implementation_version": platform.python_version(),
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    }


def beside(name: str) -> Json | None:
    """Where another package would be imported from, and what its own source says of its build."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin:
        return None
    return {"root": str(Path(spec.origin).parent), "constants": constants(Path(spec.origin).parent, VERSIONS)}
