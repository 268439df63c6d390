"""Reads typed values out of a RawConfig and remembers what it read, so that nothing is dropped unnamed.

A value of the wrong type is never coerced: it becomes Unknown, and a Problem says what stood there.
Paths are relative to the reader and may count into lists: ``"dflash_config/mask_token_id"``.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from draftproof.config.coverage import leaves, uncovered
from draftproof.config.json.pointer import pointer_of, resolve, split_pointer
from draftproof.config.problem import Problem, ProblemKind
from draftproof.config.raw import JsonValue, RawConfig
from draftproof.config.source import ClassDefault, Derived, Sourced, Unknown, Written

__all__ = ["Reader", "default", "derived", "unknown"]

T = TypeVar("T")


@dataclass(slots=True)
class _Log:
    read: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


def unknown(reason: str) -> Sourced[T]:
    """A value that is not known, with the reason."""
    return Sourced(None, Unknown(reason))


def derived(value: T | None, rule: str) -> Sourced[T]:
    """A value computed by a named rule."""
    return Sourced(value, Derived(rule))


def default(value: T | None, library: str) -> Sourced[T]:
    """A value that the named library class fills in."""
    return Sourced(value, ClassDefault(library))


class Reader:
    """A view of one object of the file; every reader of the file shares one record of what was read."""

    def __init__(self, raw: RawConfig, base: str = "", log: _Log | None = None) -> None:
        """Read below pointer ``base``, which must be an object or absent."""
        self._raw = raw
        self._base = base
        self._log = log if log is not None else _Log()
        found = _lookup(raw.value, base)
        self._here: Mapping[str, JsonValue] = found if isinstance(found, dict) else {}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything stepped over so far, in the order of the file."""
        return tuple(sorted(set(self._log.problems), key=lambda p: (p.line, p.pointer, p.kind, p.expected)))

    @property
    def base(self) -> str:
        """Pointer of the object read here."""
        return self._base

    def pointer(self, path: str) -> str:
        """Pointer, from the top of the file, of a path below this reader."""
        return self._base + pointer_of(path.split("/"))

    def keys(self) -> tuple[str, ...]:
        """The keys of this object, in file order."""
        return tuple(self._here)

    def has(self, path: str) -> bool:
        """Whether the file says anything there, null included."""
        return self._find(path) is not _ABSENT

    def says(self, *paths: str) -> bool:
        """Whether the file holds anything but null at one of the paths."""
        return any(self.has(path) and not self.is_null(path) for path in paths)

    def is_object(self, path: str) -> bool:
        """Whether an object stands there."""
        return isinstance(self._find(path), dict)

    def is_null(self, path: str) -> bool:
        """Whether a null stands there."""
        return self._find(path) is None

    def within(self, path: str) -> "Reader":
        """A reader for the object at ``path``; empty where there is none. Other types are a Problem."""
        found = self._find(path)
        if found is not _ABSENT and not isinstance(found, dict):
            self._log.read.add(self.pointer(path))
            if found is not None:
                self._mistyped(self.pointer(path), "an object", found)
        return Reader(self._raw, self.pointer(path), self._log)

    def integer(self, *paths: str, absent: Sourced[int] | None = None) -> Sourced[int]:
        """An integer (true and 1.0 are not) from the first path that holds one."""
        return self._typed(paths, "an integer", _as_int, absent)

    def number(self, *paths: str, absent: Sourced[float] | None = None) -> Sourced[float]:
        """An integer or a float, as written."""
        return self._typed(paths, "a number", _as_number, absent)

    def boolean(self, *paths: str, absent: Sourced[bool] | None = None) -> Sourced[bool]:
        """``true`` or ``false``."""
        return self._typed(paths, "true or false", _as_bool, absent)

    def string(self, *paths: str, absent: Sourced[str] | None = None) -> Sourced[str]:
        """A string."""
        return self._typed(paths, "a string", _as_str, absent)

    def integers(
        self, *paths: str, absent: Sourced[tuple[int, ...]] | None = None
    ) -> Sourced[tuple[int, ...]]:
        """A list of integers."""
        return self._typed(paths, "a list of integers", _as_ints, absent)

    def strings(
        self, *paths: str, absent: Sourced[tuple[str, ...]] | None = None
    ) -> Sourced[tuple[str, ...]]:
        """A list of strings."""
        return self._typed(paths, "a list of strings", _as_strs, absent)

    def mapping(self, *paths: str) -> Sourced[Mapping[str, JsonValue]]:
        """An object, taken whole."""
        return self._typed(paths, "an object", _as_object, None)

    def anything(self, path: str) -> Sourced[JsonValue]:
        """Whatever JSON stands there, taken whole."""
        found = self._find(path)
        if found is _ABSENT:
            return unknown(f"the file does not say: no {self.pointer(path)}")
        self._log.read.add(self.pointer(path))
        return Sourced(_json(found), self._written(self.pointer(path)))

    def collect(self, keys: tuple[str, ...], homes: tuple[str, ...] = ("",)) -> dict[str, Sourced[JsonValue]]:
        """Those of ``keys`` that the file has, from the first of the ``homes`` that has each.

        The same key in a later home is read too, and is a Problem where its value differs.
        """
        found: dict[str, Sourced[JsonValue]] = {}
        for key in keys:
            for path in (f"{home}/{key}" if home else key for home in homes):
                if not self.has(path):
                    continue
                said = self.anything(path)
                if key not in found:
                    found[key] = said
                elif found[key].value != said.value:
                    self.complain(ProblemKind.CONFLICT, path, _shown(found[key].value), _shown(said.value))
        return found

    def item(self, path: str, index: int) -> Written:
        """The place of one item of the list at ``path``."""
        return self._written(f"{self.pointer(path)}/{index}")

    def complain(self, kind: ProblemKind, path: str, expected: str, found: str) -> None:
        """Record a Problem at ``path`` (the whole file where the file has no such place)."""
        pointer = self.pointer(path) if path and self.has(path) else self._base
        self._complain_at(kind, pointer, expected, found)

    def leaves_read(self) -> tuple[str, ...]:
        """Pointers of every value that is no container (or an empty one) and was read, in file order."""
        found = {
            leaf
            for pointer in self._log.read
            if pointer in self._raw.positions
            for leaf in leaves(resolve(self._raw.value, pointer), pointer)
        }
        return tuple(sorted(found, key=self._order))

    def unread(self) -> tuple[str, ...]:
        """Pointers of everything in the file that was not read, subtrees by their root, in file order."""
        return tuple(uncovered(self._raw.value, frozenset(self._log.read)))

    def _typed(
        self,
        paths: tuple[str, ...],
        expected: str,
        convert: Callable[[object], T | None],
        absent: Sourced[T] | None,
    ) -> Sourced[T]:
        said: list[tuple[str, Sourced[T]]] = []
        for path in paths:
            found = self._find(path)
            if found is _ABSENT:
                continue
            pointer = self.pointer(path)
            self._log.read.add(pointer)
            said.append((path, self._converted(pointer, found, expected, convert)))
        chosen = next((s for _, s in said if s.value is not None), said[0][1] if said else None)
        if chosen is None:
            return absent or unknown(f"the file does not say: no {' or '.join(map(self.pointer, paths))}")
        for path, other in said:
            if other.value is not None and other.value != chosen.value:
                self.complain(ProblemKind.CONFLICT, path, _shown(chosen.value), _shown(other.value))
        return chosen

    def _converted(
        self, pointer: str, found: object, expected: str, convert: Callable[[object], T | None]
    ) -> Sourced[T]:
        if found is None:
            return Sourced(None, self._written(pointer))
        value = convert(found)
        if value is None:
            self._mistyped(pointer, expected, found)
            return unknown(f"{pointer} holds {_shown(found)} where {expected} is expected")
        return Sourced(value, self._written(pointer))

    def _mistyped(self, pointer: str, expected: str, found: object) -> None:
        self._complain_at(ProblemKind.MISTYPED, pointer, expected, _shown(found))

    def _complain_at(self, kind: ProblemKind, pointer: str, expected: str, found: str) -> None:
        self._log.problems.append(Problem(kind, pointer, self._raw.line(pointer), expected, found))

    def _order(self, pointer: str) -> tuple[int, int]:
        place = self._raw.positions[pointer]
        return place.line, place.column

    def _written(self, pointer: str) -> Written:
        return Written(pointer, self._raw.line(pointer))

    def _find(self, path: str) -> object:
        found: object = self._here
        for part in path.split("/"):
            if isinstance(found, dict) and part in found:
                found = found[part]
            elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
                found = found[int(part)]
            else:
                return _ABSENT
        return found


_ABSENT = object()
_MAX_SHOWN = 80


def _lookup(value: JsonValue, pointer: str) -> JsonValue:
    for key in split_pointer(pointer):
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def _json(found: object) -> JsonValue:
    """The same value; everything inside a RawConfig is JSON."""
    if isinstance(found, list):
        return [_json(x) for x in found]
    if isinstance(found, dict):
        return {str(k): _json(v) for k, v in found.items()}
    return found if isinstance(found, str | bool | int | float) else None


def _as_int(found: object) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _as_number(found: object) -> float | None:
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _as_bool(found: object) -> bool | None:
    return found if isinstance(found, bool) else None


def _as_str(found: object) -> str | None:
    return found if isinstance(found, str) else None


def _as_ints(found: object) -> tuple[int, ...] | None:
    if not isinstance(found, list):
        return None
    ints = tuple(x for x in found if isinstance(x, int) and not isinstance(x, bool))
    return ints if len(ints) == len(found) else None


def _as_strs(found: object) -> tuple[str, ...] | None:
    if not isinstance(found, list):
        return None
    strs = tuple(x for x in found if isinstance(x, str))
    return strs if len(strs) == len(found) else None


def _as_object(found: object) -> Mapping[str, JsonValue] | None:
    return {str(k): _json(v) for k, v in found.items()} if isinstance(found, dict) else None


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
