"""Recipes: TOML files that say everything a training run depends on; nothing in one is ignored or guessed.

A recipe is a dataclass whose fields are its keys and whose fields' dataclasses are its tables. What a file
says otherwise is a fault with its pointer, and all of them are told at once.
"""

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.training.machine import Machine

__all__ = ["fingerprint", "read_recipe"]

T = TypeVar("T")


def read_recipe(path: Path, kind: type[T]) -> T:
    """The recipe in a file.

    Raises:
        CouldNotLook: it cannot be read.
        RefusedInput: it is no TOML, a key is missing, unknown or mistyped; every fault is listed.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise CouldNotLook(
            str(path),
            expected="a recipe in TOML",
            found=error.strerror or type(error).__name__,
            where=str(path),
            means="nothing was trained",
            next_step=f"ls -l {path}",
        ) from error
    except ValueError as error:  # no TOML, or no UTF-8
        raise _refused(path, [str(error)]) from error
    faults: list[str] = []
    made = _table(kind, document, "", faults)
    if faults or made is None:
        raise _refused(path, faults)
    return made


def fingerprint(recipe: Any, *others: str) -> str:
    """The sha256 of a recipe's values and of what else decides the outcome.

    The machine counts where it is another than 32-bit floats on a CPU, what all runs were made with before
    recipes could name one.
    """
    said = asdict(recipe)
    if said["machine"] == asdict(Machine()):
        del said["machine"]
    return hashlib.sha256(json.dumps([said, *others], sort_keys=True).encode()).hexdigest()


def _table(kind: type[T], table: Mapping[str, Any], pointer: str, faults: list[str]) -> T | None:
    """One table as its dataclass; None where it has a fault, which is then listed."""
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type] # always a dataclass
    hints = get_type_hints(kind)
    before = len(faults)
    faults += [
        f"{pointer}/{key}: no such key; known are {', '.join(known)}" for key in table if key not in known
    ]
    faults += [
        f"{pointer}/{name}: missing" for name, each in known.items() if name not in table and _needed(each)
    ]
    values = {
        name: _value(hints[name], table[name], f"{pointer}/{name}", faults) for name in known if name in table
    }
    return kind(**values) if len(faults) == before else None


def _needed(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _value(kind: Any, said: Any, pointer: str, faults: list[str]) -> Any:
    """A value of the file as the type asked for."""
    if get_origin(kind) is Literal:
        if said not in get_args(kind):
            faults.append(f"{pointer}: {said!r} is none of {', '.join(get_args(kind))}")
        return said
    if get_origin(kind) is tuple:
        if not isinstance(said, list) or not said:
            faults.append(f"{pointer}: a list of at least one is wanted, not {said!r}")
            return ()
        return tuple(_value(get_args(kind)[0], each, f"{pointer}/{i}", faults) for i, each in enumerate(said))
    is_record = hasattr(kind, "__dataclass_fields__")
    if is_record or get_origin(kind) is dict:
        if not isinstance(said, dict):
            faults.append(f"{pointer}: a table is wanted, not {said!r}")
            return None
        return _table(kind, said, pointer, faults) if is_record else said
    is_number = kind is float and isinstance(said, int) and not isinstance(said, bool)
    if type(said) is not kind and not is_number:
        faults.append(f"{pointer}: a {kind.__name__} is wanted, not {said!r}")
    elif kind in (int, float) and said < 0:
        faults.append(f"{pointer}: {said} is below 0")
    elif kind is float and not math.isfinite(said):
        faults.append(f"{pointer}: {said} is no finite number")
    return float(said) if is_number else said


def _refused(path: Path, faults: list[str]) -> RefusedInput:
    return RefusedInput(
        "recipe",
        expected="a recipe: every key known, none missing, each of its type",
        found="; ".join(faults),
        where=str(path),
        means="nothing was trained",
        next_step="mend the recipe; those of the shipped pair show every key",
    )
