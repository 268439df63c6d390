"""RFC 6902 patches: differences written as operations, and operations applied type for type."""

import copy
import re
from collections.abc import Sequence

from draftproof.config.json.diff import Difference, Kind
from draftproof.config.json.pointer import pointer_of, resolve, split_pointer
from draftproof.config.json.value import JsonValue

__all__ = ["Operation", "apply", "patch"]

Operation = dict[str, JsonValue]
"""``{"op": "add" | "remove" | "replace", "path": pointer, "value": ...}``."""

_INDEX = re.compile(r"0|[1-9][0-9]*")


def patch(differences: Sequence[Difference]) -> list[Operation]:
    """The operations that turn ``a`` into ``b``, for ``diff(a, b)``; the order does not matter."""
    operations: list[Operation] = []
    for difference in differences:
        if difference.kind is Kind.REMOVED:
            operations.append({"op": "remove", "path": difference.pointer})
        else:
            name = "add" if difference.kind is Kind.ADDED else "replace"
            operations.append({"op": name, "path": difference.pointer, "value": difference.b})
    return operations


def apply(operations: Sequence[Operation], document: JsonValue) -> JsonValue:
    """The document after the operations; the one given is left as it is.

    Raises:
        ValueError: an operation other than add, remove and replace, or one without path or value.
        KeyError: the place to remove or replace, or the container to add to, is not there.
    """
    result = copy.deepcopy(document)
    for operation in operations:
        name, path = operation["op"], operation["path"]
        if name not in ("add", "remove", "replace") or not isinstance(path, str):
            raise ValueError(f"expected add, remove or replace with a path, found {name!r} at {path!r}")
        if name != "remove" and "value" not in operation:
            raise ValueError(f"expected a value to {name} at {path!r}, found none")
        if not path:
            result = copy.deepcopy(operation["value"]) if name != "remove" else None
            continue
        *parents, last = split_pointer(path)
        holder = resolve(result, pointer_of(parents))
        if name != "add":
            resolve(result, path)
        _change(holder, last, operation, path)
    return result


def _change(holder: JsonValue, last: str, operation: Operation, path: str) -> None:
    if isinstance(holder, dict):
        if operation["op"] == "remove":
            del holder[last]
        else:
            holder[last] = copy.deepcopy(operation["value"])
    elif isinstance(holder, list) and operation["op"] != "add":
        if operation["op"] == "remove":
            del holder[int(last)]
        else:
            holder[int(last)] = copy.deepcopy(operation["value"])
    elif isinstance(holder, list) and (last == "-" or _INDEX.fullmatch(last)):
        index = len(holder) if last == "-" else int(last)
        if index > len(holder):
            raise KeyError(path)
        holder.insert(index, copy.deepcopy(operation["value"]))
    else:
        raise KeyError(path)
