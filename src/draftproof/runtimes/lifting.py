"""One function of an engine, to be called: imported, or lifted alone out of its source.

Sent with the programs that run in an engine's Python. Kernels that do not load, or a GPU that is not there,
keep a module from being imported; a small function in it that only reads a config runs all the same.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from draftproof.runtimes.frame import Json, attempt

__all__ = ["engine_function", "lifted", "root_of"]


def engine_function(path: str, name: str) -> tuple[Callable[..., Any], str]:
    """The function as the engine would call it; lifted from its file where the module cannot be imported."""
    module, error = attempt(importlib.import_module, path[: -len(".py")].replace("/", "."))
    if error:
        return lifted(path, name, {}), ", lifted from its source"
    found = module
    for part in name.split("."):
        found = getattr(found, part)
    return found, ""


def root_of(package: str) -> Path:
    """The directory of an installed package, which is not imported for it."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise ModuleNotFoundError(f"No module named {package!r}")
    return Path(places[0])


def lifted(path: str, name: str, names: Json) -> Callable[..., Any]:
    """One function of a source file, with what of the file it uses; ``names`` stand for what is imported."""
    file = root_of(path.partition("/")[0]).parent / path
    tree = ast.parse(file.read_text(encoding="utf-8"))
    defined = definitions(tree)
    wanted = [name]
    for one in wanted:
        used = {node.id for node in ast.walk(defined[one]) if isinstance(node, ast.Name)}
        wanted += [other for other in defined if other in used and other not in wanted]
    body: list[ast.stmt] = [ast.ImportFrom("__future__", [ast.alias("annotations")], 0)]
    body += [node for node in tree.body if is_ground(node)]
    body += [bare(defined[one]) for one in in_order(wanted, defined)]
    code = compile(ast.fix_missing_locations(ast.Module(body, [])), str(file), "exec")
    space: Json = {"__name__": "lifted", **names}
    sys.modules.setdefault("lifted", sys)  # dataclasses look their module up
    exec(code, space)  # noqa: S102 - the engine's own code, in the engine's own Python
    space.update(names)
    called: Callable[..., Any] = space[name.rpartition(".")[2]]
    return called


def definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    """Functions and classes of a module by name, methods as ``Class.method``."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        if isinstance(node, ast.ClassDef):
            inside = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            found.update({f"{node.name}.{one.name}": one for one in inside})
    return found


def in_order(wanted: Iterable[str], defined: Json) -> list[str]:
    """Names in the order of the file: a class must stand before what is made of it."""
    return sorted(set(wanted), key=lambda one: int(defined[one].lineno))


def is_ground(node: ast.stmt) -> bool:
    """Whether a statement gives a name a literal, or imports from the standard library."""
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and str(node.module).partition(".")[0] in standard()
    if isinstance(node, ast.Import):
        return all(one.name.partition(".")[0] in standard() for one in node.names)
    if not isinstance(node, ast.Assign):
        return False
    items = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return all(isinstance(item, ast.Constant) for item in items)


def standard() -> frozenset[str]:
    """Names of the standard library that lifted code may import."""
    return frozenset(getattr(sys, "stdlib_module_names", ())) - {"__future__"}


def bare(node: ast.stmt) -> ast.stmt:
    """A function without its decorators, which name what was not lifted; a class as it stands."""
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
    return node
