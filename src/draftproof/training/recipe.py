"""Recipes: TOML files that say everything a training run depends on; a key not known is refused."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from draftproof.errors import CouldNotLook, RefusedInput

__all__ = ["read_recipe", "section"]

T = TypeVar("T")


def read_recipe(path: Path) -> dict[str, Any]:
    """The tables of a recipe.

    Raises:
        CouldNotLook: the file cannot be read.
        RefusedInput: it is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CouldNotLook(
            "recipe",
            expected="a TOML file",
            found=error.strerror or type(error).__name__,
            where=str(path),
            means="it is not known what to train",
            next_step="name a recipe that exists",
        ) from error
    except ValueError as error:
        raise refused(path, "TOML in UTF-8", str(error)) from error


def section(kind: type[T], tables: Mapping[str, Any], name: str, path: Path) -> T:
    """One table as the record it describes; every key is used and every needed one is there.

    Raises:
        RefusedInput: a key is unknown, missing, or of another type.
    """
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise refused(path, f"a table [{name}]", repr(table))
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    if extra := sorted(table.keys() - known.keys()):
        raise refused(path, f"keys of [{name}]: {', '.join(known)}", ", ".join(extra))
    for key, field in known.items():
        if key not in table and field.default is MISSING:
            raise refused(path, f"{key} in [{name}]", "no such key")
        if key in table and not _fits(table[key], field.type):
            raise refused(path, f"{key} in [{name}] as {field.type}", repr(table[key]))
    return kind(**table)


def _fits(value: object, wanted: object) -> bool:
    wanted = (
        wanted
        if isinstance(wanted, type)
        else {"int": int, "float": float, "str": str, "bool": bool}[str(wanted)]
    )
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))


def refused(path: Path, expected: str, found: str) -> RefusedInput:
    """The recipe is not what it must be."""
    return RefusedInput(
        "recipe",
        expected=expected,
        found=found,
        where=str(path),
        means="what would be trained is not known",
        next_step="mend the recipe",
    )
