"""An engine's build as its own Python told it: every value of the agreed type, or refused."""

from collections.abc import Mapping
from dataclasses import dataclass

from draftproof.config.raw import JsonValue
from draftproof.runtimes.interpreter import NoAnswer

__all__ = [
    "Build",
    "Bytecode",
    "Claim",
    "Contents",
    "Copy",
    "Imported",
    "Library",
    "Process",
    "Record",
    "Said",
    "read_build",
]

Json = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Copy:
    """Something that stands under the engine's name on the path."""

    entry: str
    by: str
    """What put the directory on the path: ``site-packages``, ``PYTHONPATH``, a ``.pth`` file's name."""

    kind: str
    """``package``, ``namespace`` or ``module``."""

    root: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import would load."""

    kind: str
    """``package``, ``namespace``, ``module``, ``absent`` or ``error``."""

    root: str
    finder: str
    why: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A distribution that says it brings the engine."""

    name: str
    version: str
    folder: str
    requires: tuple[str, ...]
    direct_url: str
    """PEP 610: where it was installed from, empty for an index."""

    installer: str
    has_record: bool


@dataclass(frozen=True, slots=True)
class Record:
    """The owner's RECORD against its files."""

    rows: int
    hashed: int
    checked: int
    modified: tuple[str, ...]
    missing: tuple[str, ...]
    unreadable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bytecode:
    """Compiled files by what Python would do with them."""

    current: int
    compared: int
    foreign: int
    outdated: tuple[str, ...]
    stale: tuple[str, ...]
    sourceless: tuple[str, ...]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Library:
    """A native library of the engine."""

    path: str
    size: int
    build_id: str
    holds: tuple[str, ...] | None
    """Which of the wanted names its bytes hold; None where they were not searched."""

    why: str


@dataclass(frozen=True, slots=True)
class Said:
    """What the source said to one question."""

    file: str | None
    has_symbol: bool
    forms: tuple[bool, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Contents:
    """The copy that would be imported."""

    owner: str | None
    record: Record | None
    extra: tuple[str, ...]
    bytecode: Bytecode
    native: tuple[Library, ...]
    constants: Mapping[str, str | None]
    commit: str
    """Of the work tree it lies in; empty where it lies in none."""

    answers: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Process:
    """A running process: what it was started as, and which copies of the engine it has mapped."""

    pid: int
    exe: str
    cwd: str
    env: Mapping[str, str]
    roots: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Build:
    """All of it."""

    engine: str
    python: Mapping[str, str]
    copies: tuple[Copy, ...]
    inside: tuple[str, ...]
    """Directories of the path that lie inside the engine's own package."""

    imported: Imported
    claims: tuple[Claim, ...]
    contents: Contents | None
    installed: Mapping[str, tuple[str, ...]]
    beside: Mapping[str, Mapping[str, str | None]]
    """Package -> what its own version file says; absent where it is not installed."""

    process: Process | None
    importing: Json | None
    """What a child said that imported it; None where nobody asked."""

    @property
    def version(self) -> str | None:
        """The version that the imported source states."""
        said = self.contents.constants if self.contents else {}
        return said.get("__version__")

    @property
    def owner(self) -> Claim | None:
        """The distribution that the imported copy belongs to."""
        name = self.contents.owner if self.contents else None
        return next((claim for claim in self.claims if claim.name == name), None)


def read_build(engine: str, body: Mapping[str, object]) -> Build | NoAnswer:
    """The probe's answer; NoAnswer where it is not of the agreed form."""
    try:
        return _build(engine, _object(body))
    except (KeyError, TypeError, ValueError) as error:
        return NoAnswer(f"an answer of another form than agreed ({type(error).__name__}: {error})")


def _build(engine: str, body: Json) -> Build:
    found = _object(body["imported"])
    imported = Imported(*(_text(found[key]) for key in ("kind", "root", "finder", "why")))
    entries = [_text(one["entry"]) for one in _objects(body["path"])]
    root = imported.root
    return Build(
        engine,
        {key: _text(value) for key, value in _object(body["python"]).items()},
        tuple(
            Copy(*(_text(one[key]) for key in ("entry", "from", "kind", "root")))
            for one in _objects(body["copies"])
        ),
        tuple(one for one in entries if root and (one == root or one.startswith(root + "/"))),
        imported,
        tuple(map(_claim, _objects(body["claims"]))),
        _contents(_object(body["contents"])) if "contents" in body else None,
        {name: _texts(value) for name, value in _object(body["installed"]).items()},
        {
            name: _optional_texts(_object(_object(value)["constants"]))
            for name, value in _object(body["beside"]).items()
            if value is not None
        },
        None if body["process"] is None else _process(_object(body["process"])),
        _object(body["import"]) if "import" in body else None,
    )


def _claim(one: Json) -> Claim:
    return Claim(
        _text(one["name"]),
        _text(one["version"]),
        _text(one["folder"]),
        _texts(one["requires"]),
        _text(one["direct_url"]),
        _text(one["installer"]),
        _flag(one["has_record"]),
    )


def _contents(body: Json) -> Contents:
    return Contents(
        None if body["owner"] is None else _text(body["owner"]),
        None if body["record"] is None else _record(_object(body["record"])),
        _texts(body["extra"]),
        _bytecode(_object(body["bytecode"])),
        tuple(map(_library, _objects(body["native"]))),
        _optional_texts(_object(body["constants"])),
        _text(body["commit"]),
        tuple(map(_said, _objects(body["answers"]))),
    )


def _record(one: Json) -> Record:
    rows, hashed, checked = (_count(one[key]) for key in ("rows", "hashed", "checked"))
    missing, modified = _texts(one["missing"]), _texts(one["modified"])
    return Record(rows, hashed, checked, modified, missing, _reasons(one["unreadable"]))


def _bytecode(one: Json) -> Bytecode:
    current, compared, foreign = (_count(one[key]) for key in ("current", "compared", "foreign"))
    outdated, stale, sourceless = (_texts(one[key]) for key in ("outdated", "stale", "sourceless"))
    return Bytecode(current, compared, foreign, outdated, stale, sourceless, _reasons(one["unread"]))


def _library(one: Json) -> Library:
    holds = None if one["holds"] is None else _texts(one["holds"])
    return Library(_text(one["path"]), _count(one["size"]), _text(one["build_id"]), holds, _text(one["why"]))


def _said(one: Json) -> Said:
    forms = one["forms"]
    if not isinstance(forms, list):
        raise TypeError(f"a list was agreed, not {forms!r}")
    file = None if one["file"] is None else _text(one["file"])
    return Said(file, _flag(one["has_symbol"]), tuple(map(_flag, forms)), _text(one["why"]))


def _process(one: Json) -> Process:
    env = {key: _text(value) for key, value in _object(one["env"]).items()}
    return Process(
        _count(one["pid"]), _text(one["exe"]), _text(one["cwd"]), env, _texts(one["roots"]), _text(one["why"])
    )


def _reasons(value: JsonValue) -> tuple[str, ...]:
    return tuple(f"{_text(one['path'])}: {_text(one['why'])}" for one in _objects(value))


def _optional_texts(value: Json) -> dict[str, str | None]:
    return {key: None if one is None else _text(one) for key, one in value.items()}


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    if not isinstance(value, list):
        raise TypeError(f"a list was agreed, not {value!r}")
    return [_object(one) for one in value]


def _object(value: object) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise TypeError(f"an object was agreed, not {value!r}")
    return value


def _texts(value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"a list was agreed, not {value!r}")
    return tuple(map(_text, value))


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was agreed, not {value!r}")
    return value


def _count(value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a whole number was agreed, not {value!r}")
    return value


def _flag(value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"true or false was agreed, not {value!r}")
    return value
