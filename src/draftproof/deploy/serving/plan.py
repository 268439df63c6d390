"""The ``[serve]`` part of a plan: what is to be served with which drafter, said once for every engine.

::

    [serve]
    method = "dflash"
    target = "/models/Qwen3.6-27B"
    drafter = "/models/Qwen3.6-27B-DFlash"
    block_size = 16                   # counts the anchor; or num_draft_tokens, which does not
    engine = "vllm"                   # the command line may name another
    version = "0.33.0"
    tensor_parallel = 2

    [serve.env]
    OMP_NUM_THREADS = "1"

    [serve.extra.vllm]                # flags of one engine by their own names; nothing else is passed on
    "enforce-eager" = true

``[[files]]`` may stand beside it (``deploy.fleet.plan``); no key of either part is ignored.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draftproof.config.raw import JsonValue, pointer_of
from draftproof.deploy.fleet.plan import Plan, PlanRefused, parse_plan
from draftproof.deploy.serving.keys import KEYS, METHODS, Key
from draftproof.deploy.serving.reason import Said
from draftproof.errors import CouldNotLook
from draftproof.printable import is_secret_key

__all__ = ["ENGINES", "ServePlan", "parse_serve_plan", "read_serve_plan"]

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")
_PARTS = ("serve", "files", "level", "root", "port", "hosts")
_TABLES = ("env", "extra")
_MAX_PLAN_BYTES = 1 << 20
_ADAPTIVE = frozenset({"dflash", "eagle3", "draft"})


@dataclass(frozen=True, slots=True)
class ServePlan:
    """The intended deployment; a key that the plan does not write has its stated default, or is absent."""

    origin: Path
    said: Mapping[str, Said]
    """Key -> value, why it is that, and where it stands."""

    env: Mapping[str, Said]
    extra: Mapping[str, Mapping[str, Said]]
    """Engine -> flag without dashes -> value."""

    files: Plan | None
    """The ``[[files]]`` beside it, where there are any."""

    def get(self, key: str) -> JsonValue:
        """The value of a key of ``[serve]``; None where nobody says one and there is no default."""
        return self.said[key].value if key in self.said else None

    def number(self, key: str) -> int:
        """The value of a key that has a whole number by its kind and a default."""
        value = self.said[key].value
        if not isinstance(value, int):
            raise TypeError(f"{key} is no number")
        return value

    def text(self, key: str) -> str:
        """The value of a key that is a text by its kind; empty where nobody says one."""
        value = self.get(key)
        return value if isinstance(value, str) else ""

    @property
    def method(self) -> str:
        """The drafting method."""
        return self.text("method")


def read_serve_plan(path: Path) -> ServePlan:
    """The plan in a file.

    Raises:
        CouldNotLook: it cannot be read, or is larger than any plan.
        PlanRefused: as parse_serve_plan.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_PLAN_BYTES + 1)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unread(path, str(error)) from error
    if len(data) > _MAX_PLAN_BYTES:
        raise _unread(path, f"more than {_MAX_PLAN_BYTES} bytes")
    return parse_serve_plan(text, path)


def parse_serve_plan(text: str, path: Path) -> ServePlan:
    """The plan that ``text`` says. Raises PlanRefused with every fault, each with its pointer."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refused(path, [str(error)]) from error
    table = document.get("serve")
    if not isinstance(table, dict):
        raise _refused(path, ["#/serve: there is no [serve] table"])
    faults = [f"#/{key}: no key of a plan" for key in document if key not in _PARTS]
    faults += _serve_faults(table)
    env, extra = _table(table, "env"), _table(table, "extra")
    faults += _env_faults(env) + _extra_faults(extra)
    if faults:
        raise _refused(path, faults)
    return ServePlan(
        path,
        _all_said(table, path),
        {name: _said(value, path, "env", name) for name, value in env.items()},
        {
            engine: {flag: _said(value, path, "extra", engine, flag) for flag, value in flags.items()}
            for engine, flags in extra.items()
        },
        parse_plan(text, path) if "files" in document else None,
    )


def _all_said(table: Mapping[str, Any], path: Path) -> dict[str, Said]:
    said = {key.name: Said(key.default, key.why, "draftproof") for key in KEYS if key.default is not None}
    said |= {key: _said(table[key], path, key) for key in table if key not in _TABLES}
    return said


def _said(value: JsonValue, path: Path, *steps: str) -> Said:
    return Said(value, "the plan says so", f"{path}#{pointer_of(('serve', *steps))}")


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = table.get(name, {})
    return value if isinstance(value, dict) else {}


def _serve_faults(table: Mapping[str, Any]) -> list[str]:
    known = {key.name: key for key in KEYS}
    faults = [_unknown(key, [*known, *_TABLES]) for key in table if key not in known and key not in _TABLES]
    faults += [
        f"#/serve/{name}: must be a table" for name in _TABLES if not isinstance(_of(table, name), dict)
    ]
    wrong = [
        f"#/serve/{name}: must be {key.kind}, is {table[name]!r}"
        for name, key in known.items()
        if name in table and not key.takes(table[name])
    ]
    faults += [f"#/serve/{key.name}: is missing" for key in KEYS if key.is_required and key.name not in table]
    return faults + wrong if wrong else faults + _pair_faults(table)


def _of(table: Mapping[str, Any], name: str) -> object:
    return table.get(name, {})


def _unknown(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, 1)
    return f"#{pointer_of(('serve', key))}: no key of [serve]" + (f", perhaps {near[0]}" if near else "")


def _pair_faults(table: Mapping[str, Any]) -> list[str]:
    """Keys that speak of each other."""
    method = table.get("method")
    faults = []
    if method in _ADAPTIVE and "drafter" not in table:
        faults.append(f"#/serve/drafter: is missing, and method {method} needs one")
    if method in METHODS and method not in _ADAPTIVE and "drafter" in table:
        faults.append(f"#/serve/drafter: method {method} has no drafter of its own")
    if "block_size" in table and "num_draft_tokens" in table:
        block, drafts = table["block_size"], table["num_draft_tokens"]
        if block != drafts + 1:
            faults.append(
                f"#/serve/block_size: {block} slots with the anchor are {block - 1} drafted tokens, "
                f"and num_draft_tokens is {drafts}; say one of them"
            )
    if "nodes" in table and table["nodes"] > 1 and "leader" not in table:
        faults.append("#/serve/leader: is missing; every node must know the first one's address")
    return faults


def _env_faults(env: Mapping[str, Any]) -> list[str]:
    faults = []
    for name, value in env.items():
        at = f"#{pointer_of(('serve', 'env', name))}"
        if not name.isidentifier() or not name.isascii():
            faults.append(f"{at}: no name of an environment variable")
        elif not isinstance(value, str) or "\x00" in value:
            faults.append(f"{at}: must be a string")
        elif is_secret_key(name):
            faults.append(f"{at}: a credential does not belong into a plan; set it where the service runs")
    return faults


def _extra_faults(extra: Mapping[str, Any]) -> list[str]:
    faults = []
    for engine, flags in extra.items():
        at = f"#{pointer_of(('serve', 'extra', engine))}"
        if engine not in ENGINES:
            faults.append(f"{at}: no engine; known are {', '.join(ENGINES)}")
        elif not isinstance(flags, dict):
            faults.append(f"{at}: must be a table of flags")
        else:
            faults += [
                f"#{pointer_of(('serve', 'extra', engine, flag))}: {why}"
                for flag, value in flags.items()
                if (why := _flag_fault(flag, value))
            ]
    return faults


def _flag_fault(flag: str, value: object) -> str:
    if not Key.is_flag(flag):
        return "a flag is written without its dashes, in letters, digits, - and _"
    if is_secret_key(flag):
        return "a credential does not belong into a plan; set it where the service runs"
    if not Key.is_json(value):
        return f"{value!r} is no text, number, truth, list or table"
    return ""


def _unread(path: Path, found: str) -> CouldNotLook:
    return CouldNotLook(
        str(path),
        expected="a plan in TOML",
        found=found,
        where=str(path),
        means="nothing was rendered and nothing was started",
        next_step=f"ls -l {path}",
    )


def _refused(path: Path, faults: list[str]) -> PlanRefused:
    return PlanRefused(
        str(path),
        expected="a plan with a [serve] table of known keys",
        found="; ".join(faults),
        where=f"{path}{faults[0].partition(':')[0] if faults[0].startswith('#') else ''}",
        means="nothing was rendered and nothing was started",
        next_step="mend the plan",
    )
