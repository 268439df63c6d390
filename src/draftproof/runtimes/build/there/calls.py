"""Where the package's own Python calls native operators by name, and with how much; read, not run."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from draftproof.runtimes.build.there.records import read_limited

__all__ = ["operator_calls"]

Json = dict[str, Any]
CALLERS = ("_custom_ops.py", "utils/cpu_triton_utils.py")
"""The files of vLLM that hand work to its compiled operators; the second is read on the CPU alone."""

MAX_SOURCE_BYTES = 8 << 20


def operator_calls(root: Path) -> Json:
    """Each ``torch.ops.SPACE.NAME(...)`` of ``CALLERS``, but for those with a star or behind ``hasattr``.

    ``made`` are the calls, ``unread`` the files that are there and could not be read.
    """
    found: list[Json] = []
    unread: list[Json] = []
    for name in CALLERS:
        try:
            tree = ast.parse(read_limited(root / name, MAX_SOURCE_BYTES))
        except FileNotFoundError:
            continue  # of other versions and machines
        except (OSError, ValueError, SyntaxError, RecursionError) as error:
            unread.append({"path": name, "why": f"{type(error).__name__}: {error}"})
            continue
        guarded = {
            node.args[1].value
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "hasattr"
            and len(node.args) > 1
            and isinstance(node.args[1], ast.Constant)
        }
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        found += [call_of(node, name) for node in calls if operator_of(node.func).rpartition("::")[2]]
        found = [one for one in found if one["operator"].rpartition("::")[2] not in guarded]
    return {"made": [one for one in found if not one.pop("is_open")], "unread": unread}


def operator_of(node: ast.expr) -> str:
    """``SPACE::NAME`` of ``torch.ops.SPACE.NAME``; empty for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    is_torch = isinstance(node, ast.Name) and node.id == "torch"
    return "::".join(names[1:]) if is_torch and names[:1] == ["ops"] and names[3:] == [] else ""


def call_of(node: ast.Call, file: str) -> Json:
    """One call: what it names, where it stands, what it passes."""
    stars = any(isinstance(one, ast.Starred) for one in node.args)
    return {
        "operator": operator_of(node.func),
        "file": file,
        "line": node.lineno,
        "positional": len(node.args),
        "keywords": sorted(one.arg for one in node.keywords if one.arg),
        "is_open": stars or any(one.arg is None for one in node.keywords),
    }
