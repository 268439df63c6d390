"""The script that runs inside somebody else's Python and lets its transformers parse a config.

It is sent as text and never imported here. Standard library only, Python 3.9 syntax, no torch needed.
Input, on standard input: one JSON object ``{"nonce", "text"}``, the text of the file as it stands.
Output, on the standard output it was started with: one frame (see ``reply``); everything else that prints
goes to standard error.

A config is parsed as ``AutoConfig.from_pretrained`` does, from a copy in a directory of its own, without
network and with ``trust_remote_code=False``: code that a checkpoint names is never run. Then the same
class parses variations of it, so that a cause is observed and not guessed:

- ablation: a key whose value did not arrive is removed (or doubled); what moves shows where it went;
- flips: each flag is negated, each number set to 0 and 1; what comes back shows which gate was shut;
- hoists: a value inside a dict that the class does not know is written where the class looks for it.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import json
import math
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Json = dict[str, Any]
KeyPath = tuple[str, ...]  # outermost first
Attempt = tuple[Any, Any]  # a result and None, or None and what was raised
OF_THE_PROCESS = ("_name_or_path", "_commit_hash")
UNTRIED = ("transformers_version", "model_type", "architectures", "auto_map")


def main() -> None:
    """Read the request, look, write one frame."""
    out = os.dup(1)
    os.dup2(2, 1)  # stray prints of the library or of a sitecustomize must not reach the frame
    request = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    answer = {"python": platform.python_version(), "executable": sys.executable}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        answer.update(look(request["text"]))
        os.chdir(Path(folder).parent)
    reply(out, request["nonce"], answer)


def reply(out: int, nonce: str, answer: Json) -> None:
    """Frame the answer: a line with nonce, length and sha256, the bytes, a line with the nonce again."""
    body = json.dumps(answer, ensure_ascii=True, allow_nan=False, sort_keys=True).encode("ascii")
    head = f"\ndraftproof-frame {nonce} {len(body)} {hashlib.sha256(body).hexdigest()}\n"
    left = head.encode("ascii") + body + f"\ndraftproof-end {nonce}\n".encode("ascii")
    while left:
        left = left[os.write(out, left) :]


def look(text: str) -> Json:
    """What this Python's transformers is, and what it makes of a file that says ``text``."""
    library, error = attempt(load)
    if error:
        return {"library": None, "error": dict(error, stage="import")}
    version, path, auto, mapping = library
    answer = {"library": {"name": "transformers", "version": version, "path": path}, "error": None}
    config, error = attempt(json.loads, text)
    if error:
        answer["error"] = dict(error, stage="json")
        return answer
    model_type = config.get("model_type")
    if model_type is None:
        answer["error"] = {"stage": "class", "type": "NoModelType", "message": "the file has no model_type"}
        return answer
    if not isinstance(model_type, str) or model_type not in mapping:
        answer["error"] = {"stage": "class", "type": "UnknownModelType", "message": str(model_type)}
        return answer
    parsed, error = attempt(parse_as_the_library_does, auto, text)
    if error:
        answer["error"] = dict(error, stage="parse")
        return answer
    answer.update(describe(config, parsed))
    return answer


def load() -> tuple[str, str, Any, Any]:
    """Import the configuration side of transformers: version, file, AutoConfig, model types."""
    library = importlib.import_module("transformers")
    auto = importlib.import_module("transformers.models.auto.configuration_auto")
    return str(library.__version__), str(library.__file__), auto.AutoConfig, auto.CONFIG_MAPPING


def attempt(call: Callable[..., Any], *args: Any) -> Attempt:
    """(result, None), or (None, what was raised): whatever a library raises is a result here."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call, *args)
        raised = future.exception()  # a Future keeps any exception, SystemExit included
    if raised is None:
        return future.result(), None
    return None, {"type": type(raised).__name__, "message": str(raised)[:4000]}


def parse_as_the_library_does(auto: Any, text: str) -> Any:
    """The config object that ``AutoConfig.from_pretrained`` makes of a directory holding the file."""
    Path("checkpoint").mkdir()
    Path("checkpoint", "config.json").write_bytes(text.encode("utf-8"))
    return auto.from_pretrained("checkpoint", trust_remote_code=False)


def describe(config: Json, parsed: Any) -> Json:
    """Class, values, class defaults and the trials that explain what changed."""
    kind = type(parsed)
    values = plain(parsed)
    defaults, _ = attempt(lambda: plain(kind.from_dict({})))
    again, _ = attempt(lambda: plain(kind.from_dict(copy.deepcopy(config))))
    trials, _ = attempt(lambda: Trials(kind, config, values, defaults or {}).run())
    return {
        "class": kind.__name__,
        "module": kind.__module__,
        "values": values,
        "defaults": defaults,
        "aliases": {str(old): str(new) for old, new in getattr(kind, "attribute_map", {}).items()},
        "trials": trials if again == values else None,
    }


def plain(parsed: Any) -> Json:
    """A config object as JSON values: what ``to_dict`` shows, without what belongs to this process."""
    shown = parsed.to_dict()
    shown["transformers_version"] = getattr(parsed, "transformers_version", None)  # to_dict shows its own
    return {str(key): jsonable(value) for key, value in shown.items() if key not in OF_THE_PROCESS}


def jsonable(value: Any) -> Any:
    """Any value as one that JSON carries; a float that JSON has no word for is named."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value)


class Trials:
    """Variations of one config through one class."""

    def __init__(self, kind: Any, config: Json, values: Json, defaults: Json) -> None:
        self.kind, self.config, self.values, self.defaults = kind, config, values, defaults
        nested = [key for key in getattr(kind, "sub_configs", {}) if isinstance(config.get(key), dict)]
        self.homes: list[KeyPath] = [()] + [(key,) for key in nested]

    def run(self) -> Json:
        """All trials that showed something; ``{"ablations", "flips", "hoists"}``."""
        lost, made = self.lost(), self.made()
        flips = self.flips(self.config, self.values, set(lost) | set(made)) if lost or made else []
        for opening in [flip for flip in flips if restores(flip, self.config)]:
            opened = put(self.config, tuple(opening["set"]["path"]), opening["set"]["value"])
            after, error = attempt(self.parse, opened)
            deeper = self.flips(opened, after, set(made)) if error is None else []
            flips = flips + [dict(flip, given=opening["set"]) for flip in deeper]
        return {"ablations": [self.ablation(path) for path in lost], "flips": flips, "hoists": self.hoists()}

    def parse(self, config: Json) -> Json:
        """The class's values for a variation."""
        return plain(self.kind.from_dict(copy.deepcopy(config)))

    def lost(self) -> list[KeyPath]:
        """Keys whose written value is not what the class holds under that name."""
        return [
            (*home, key)
            for home in self.homes
            for key, value in get(self.config, home).items()
            if (*home, key) not in self.homes and not same(value, find(self.values, (*home, key)))
        ]

    def made(self) -> list[KeyPath]:
        """Keys the file does not fill and the class fills with something other than its default."""
        return [
            (*home, key)
            for home in self.homes
            for key, value in get(self.values, home).items()
            if find(self.config, (*home, key)) is None
            and not isinstance(value, dict)
            and not same(value, find(self.defaults, (*home, key)))
        ]

    def ablation(self, path: KeyPath) -> Json:
        """What moves when ``path`` is removed; if nothing does and it is a number, when it is doubled."""
        value = get(self.config, path)
        after, error = attempt(self.parse, put(self.config, path, None, drop=True))
        moved = [] if error else changes(self.values, after)
        if not moved and not error and isinstance(value, (int, float)) and not isinstance(value, bool):
            after, error = attempt(self.parse, put(self.config, path, 2 * value + 2))
            moved = [] if error else changes(self.values, after)
        return {"path": list(path), "moved": moved}

    def flips(self, config: Json, values: Json, puzzles: set[KeyPath]) -> list[Json]:
        """Single settings that change one of the ``puzzles``."""
        found = []
        for home in self.homes:
            for key, value in get(values, home).items():
                for other in alternatives(key, value):
                    path = (*home, key)
                    after, error = attempt(self.parse, put(config, path, other))
                    seen = [] if error else changes(values, after)
                    moved = [m for m in seen if tuple(m["path"]) in puzzles - {path}]
                    if moved:
                        setting = {"path": list(path), "value": other}
                        found.append({"set": setting, "given": None, "moved": moved})
        return found

    def hoists(self) -> list[Json]:
        """Values inside an object unknown to the class which the class would read one floor up."""
        found = []
        for home in self.homes:
            known = find(self.defaults, home) or {}
            for key, inside in get(self.config, home).items():
                if isinstance(inside, dict) and key not in known and (*home, key) not in self.homes:
                    names = [name for name in inside if name in known]
                    found += [self.hoist(home, key, name, inside[name]) for name in names]
        return [hoist for hoist in found if hoist]

    def hoist(self, home: KeyPath, key: str, name: str, value: Any) -> Json | None:
        """The trial of writing ``value`` one floor up; None where a value stands there or nothing moves."""
        to = (*home, name)
        if find(self.config, to) is not None:
            return None
        after, error = attempt(self.parse, put(self.config, to, value))
        moved = changes(self.values, after) if error is None else []
        is_taken = any(tuple(m["path"]) == to for m in moved)
        return {"path": [*home, key, name], "to": list(to), "moved": moved} if is_taken else None


def alternatives(key: str, value: Any) -> list[Any]:
    """Other settings worth trying for a scalar."""
    if key in UNTRIED:
        return []
    if isinstance(value, bool):
        return [not value]
    return [other for other in (0, 1) if other != value] if isinstance(value, int) else []


def restores(flip: Json, config: Json) -> bool:
    """Whether a setting brings a lost value back exactly as written."""
    back = [m for m in flip["moved"] if m["after"] is not None]
    return any(same(find(config, tuple(m["path"])), m["after"]) for m in back)


def changes(before: Json, after: Json, path: KeyPath = ()) -> list[Json]:
    """Leaves that differ, as ``{"path", "before", "after"}``; lists are leaves, absent counts as null."""
    found = []
    for key in sorted(set(before) | set(after)):
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) or isinstance(new, dict):
            sides = [side if isinstance(side, dict) else {} for side in (old, new)]
            found += changes(sides[0], sides[1], (*path, key))
        elif not same(old, new):
            found.append({"path": [*path, key], "before": old, "after": new})
    return found


def same(one: Any, other: Any) -> bool:
    """Equal in value and in JSON type."""
    return json.dumps(jsonable(one), sort_keys=True) == json.dumps(jsonable(other), sort_keys=True)


def get(tree: Json, path: KeyPath) -> Any:
    """The value at ``path``, which exists."""
    for key in path:
        tree = tree[key]
    return tree


def find(tree: Any, path: KeyPath) -> Any:
    """The value at ``path``, or None."""
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return None
        tree = tree[key]
    return tree


def put(tree: Json, path: KeyPath, value: Any, *, drop: bool = False) -> Json:
    """A copy with ``path`` set, or removed."""
    changed = copy.deepcopy(tree)
    holder = get(changed, path[:-1])
    if drop:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return changed


if __name__ == "__main__":
    main()
