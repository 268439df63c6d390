"""One function of an engine, to be called: imported, or lifted alone out of its source.

Sent with the programs that run in an engine's Python. Kernels that do not load, or a GPU that is not there,
keep a module from being imported; a small function in it that only reads a config runs all the same.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from draftproof.runtimes.frame import Json, attempt

__all__ = ["engine_function", "lifted"]


def engine_function(path: str, name: str) -> tuple[Callable[..., Any], str]:
    """The function as the engine would call it; lifted from its file where the module cannot be imported."""
    module, error = attempt(importlib.import_module, path[: -len(".py")].replace("/", "."))
    if error:
        return lifted(path, name, {}), ", lifted from its source"
    found = module
    for part in name.split("."):
        found = getattr(found, part)
    return found, ""


def lifted(path: str, name: str, names: Json) -> Callable[..., Any]:
    """One function of a source file, with the file's constants and the functions it calls."""
    root = Path(str(importlib.import_module(path.partition("/")[0]).__file__)).parent.parent
    tree = ast.parse((root / path).read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in [node for node in tree.body if isinstance(node, ast.ClassDef)]:
        inside = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        functions.update({f"{node.name}.{one.name}": one for one in inside})
    wanted, body = [name], [node for node in tree.body if is_constant(node)]
    for one in wanted:
        function = functions[one]
        used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        wanted += [other for other in functions if other in used and other not in wanted]
        body.append(bare(function))
    space: Json = {"__name__": "lifted"}
    code = compile(ast.fix_missing_locations(ast.Module(body, [])), str(root / path), "exec")
    exec(code, space)  # noqa: S102 - the engine's own code, in the engine's own Python
    space.update(names)
    called: Callable[..., Any] = space[name.rpartition(".")[2]]
    return called


def is_constant(node: ast.AST) -> bool:
    """Whether a statement gives a name a literal."""
    if not isinstance(node, ast.Assign):
        return False
    items = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return all(isinstance(item, ast.Constant) for item in items)


def bare(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function without annotations and decorators, which name what was not lifted."""
    function.decorator_list, function.returns = [], None
    for argument in [*function.args.args, *function.args.kwonlyargs]:
        argument.annotation = None
    return function
