"""What the package's own source says, read as syntax trees: versions, and forms of code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from draftproof.runtimes.build.there.records import read_limited

__all__ = ["ask_source", "constants", "file_of"]

Json = dict[str, Any]
MAX_SOURCE_BYTES = 8 << 20


def file_of(root: Path, module: str) -> Path | None:
    """The source file of a dotted module of the package; a directory's is its ``__init__.py``."""
    place = root.joinpath(*module.split(".")[1:])
    for file in (place.with_name(place.name + ".py") if place != root else place, place / "__init__.py"):
        if file.is_file():
            return file
    return place if place.is_dir() else None


def constants(root: Path, names: tuple[str, ...]) -> dict[str, str | None]:
    """The texts that the version files and ``__init__.py`` assign to ``names``; nothing is run."""
    found: dict[str, str | None] = {}
    for file in ("_version.py", "version.py", "__init__.py"):
        try:
            tree = ast.parse(read_limited(root / file, MAX_SOURCE_BYTES))
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        for node in ast.walk(tree):
            for target in targets_of(node):
                value = getattr(node, "value", None)
                if (
                    target in names
                    and isinstance(value, ast.Constant)
                    and isinstance(value.value, (str, type(None)))
                ):
                    found.setdefault(target, value.value)
    return found


def targets_of(node: ast.AST) -> list[str]:
    """The plain names that an assignment gives a value to."""
    if isinstance(node, ast.Assign):
        return [one.id for one in node.targets if isinstance(one, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        return [node.target.id]
    return []


def ask_source(root: Path, question: Json) -> Json:
    """Whether ``symbol`` of ``module`` is there, and which of the ``forms`` of code stand in it.

    A form is an expression or statement of Python in which a name with a leading underscore stands for any
    expression.
    """
    file = file_of(root, question["module"])
    answer: Json = {"file": None, "has_symbol": False, "forms": [], "why": ""}
    if file is None:
        return answer
    answer["file"] = str(file)
    if file.is_dir():
        answer["has_symbol"] = not question["symbol"]
        return answer
    try:
        tree: ast.AST | None = ast.parse(read_limited(file, MAX_SOURCE_BYTES))
    except (OSError, ValueError, SyntaxError, RecursionError) as error:
        answer["why"] = f"{type(error).__name__}: {error}"
        return answer
    for name in question["symbol"].split(".") if question["symbol"] else ():
        tree = member(tree, name) if tree is not None else None
    if tree is None:
        return answer
    answer["has_symbol"] = True
    answer["forms"] = [stands(form_of(text), tree) for text in question["forms"]]
    return answer


def member(tree: ast.AST, name: str) -> ast.AST | None:
    """The function, class or assigned field called ``name`` in a module's or class's body."""
    for node in walk_body(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            return node
        if name in targets_of(node) or (
            isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name
        ):
            return node
    return None


def walk_body(tree: ast.AST) -> list[ast.AST]:
    """The statements of a body, those under ``if`` and ``try`` included."""
    found: list[ast.AST] = []
    for node in ast.iter_child_nodes(tree):
        found.append(node)
        if isinstance(node, (ast.If, ast.Try)):
            found += walk_body(node)
    return found


def form_of(text: str) -> ast.AST:
    """The tree of one expression or statement."""
    (statement,) = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def stands(form: ast.AST, tree: ast.AST) -> bool:
    """Whether the form is found anywhere below ``tree``."""
    return any(fits(form, node) for node in ast.walk(tree))


def fits(form: object, node: object) -> bool:
    """Whether one node has the form; where it is read or assigned makes no difference."""
    if isinstance(form, ast.Name) and form.id.startswith("_"):
        return isinstance(node, ast.expr)
    if isinstance(form, list):
        return isinstance(node, list) and len(form) == len(node) and all(map(fits, form, node))
    if not isinstance(form, ast.AST):
        return type(form) is type(node) and form == node
    if type(form) is not type(node):
        return False
    fields = [name for name in form._fields if name not in ("ctx", "kind", "type_comment")]
    return all(fits(getattr(form, name, None), getattr(node, name, None)) for name in fields)
