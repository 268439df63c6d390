"""An engine's build as its own Python told it: every value of the agreed type, or refused."""

from collections.abc import Mapping
from dataclasses import dataclass

from draftproof.config.raw import JsonValue
from draftproof.runtimes.agreed import a_count, a_flag, a_text, an_object, objects, texts
from draftproof.runtimes.build.call import Call, read_calls
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
    calls: tuple[Call, ...]
    """Of native operators."""

    calls_unread: tuple[str, ...]
    """Files that make such calls, and why they could not be read."""


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
    def is_importable(self) -> bool:
        """Whether a child imported it; False where nobody asked."""
        return self.importing is not None and not self.importing.get("why")

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
        return _build(engine, an_object(body))
    except (KeyError, TypeError, ValueError) as error:
        return NoAnswer(f"an answer of another form than agreed ({type(error).__name__}: {error})")


def _build(engine: str, body: Json) -> Build:
    found = an_object(body["imported"])
    imported = Imported(*(a_text(found[key]) for key in ("kind", "root", "finder", "why")))
    entries = [a_text(one["entry"]) for one in objects(body["path"])]
    root = imported.root
    return Build(
        engine,
        {key: a_text(value) for key, value in an_object(body["python"]).items()},
        tuple(
            Copy(*(a_text(one[key]) for key in ("entry", "from", "kind", "root")))
            for one in objects(body["copies"])
        ),
        tuple(one for one in entries if root and (one == root or one.startswith(root + "/"))),
        imported,
        tuple(map(_claim, objects(body["claims"]))),
        _contents(an_object(body["contents"])) if "contents" in body else None,
        {name: texts(value) for name, value in an_object(body["installed"]).items()},
        {
            name: _optional_texts(an_object(an_object(value)["constants"]))
            for name, value in an_object(body["beside"]).items()
            if value is not None
        },
        None if body["process"] is None else _process(an_object(body["process"])),
        an_object(body["import"]) if "import" in body else None,
    )


def _claim(one: Json) -> Claim:
    return Claim(
        a_text(one["name"]),
        a_text(one["version"]),
        a_text(one["folder"]),
        texts(one["requires"]),
        a_text(one["direct_url"]),
        a_text(one["installer"]),
        a_flag(one["has_record"]),
    )


def _contents(body: Json) -> Contents:
    return Contents(
        None if body["owner"] is None else a_text(body["owner"]),
        None if body["record"] is None else _record(an_object(body["record"])),
        texts(body["extra"]),
        _bytecode(an_object(body["bytecode"])),
        tuple(map(_library, objects(body["native"]))),
        _optional_texts(an_object(body["constants"])),
        a_text(body["commit"]),
        tuple(map(_said, objects(body["answers"]))),
        read_calls(an_object(body["calls"])["made"]),
        _reasons(an_object(body["calls"])["unread"]),
    )


def _record(one: Json) -> Record:
    rows, hashed, checked = (a_count(one[key]) for key in ("rows", "hashed", "checked"))
    missing, modified = texts(one["missing"]), texts(one["modified"])
    return Record(rows, hashed, checked, modified, missing, _reasons(one["unreadable"]))


def _bytecode(one: Json) -> Bytecode:
    current, compared, foreign = (a_count(one[key]) for key in ("current", "compared", "foreign"))
    outdated, stale, sourceless = (texts(one[key]) for key in ("outdated", "stale", "sourceless"))
    return Bytecode(current, compared, foreign, outdated, stale, sourceless, _reasons(one["unread"]))


def _library(one: Json) -> Library:
    holds = None if one["holds"] is None else texts(one["holds"])
    return Library(
        a_text(one["path"]), a_count(one["size"]), a_text(one["build_id"]), holds, a_text(one["why"])
    )


def _said(one: Json) -> Said:
    forms = one["forms"]
    if not isinstance(forms, list):
        raise TypeError(f"a list was agreed, not {forms!r}")
    file = None if one["file"] is None else a_text(one["file"])
    return Said(file, a_flag(one["has_symbol"]), tuple(map(a_flag, forms)), a_text(one["why"]))


def _process(one: Json) -> Process:
    env = {key: a_text(value) for key, value in an_object(one["env"]).items()}
    return Process(
        a_count(one["pid"]),
        a_text(one["exe"]),
        a_text(one["cwd"]),
        env,
        texts(one["roots"]),
        a_text(one["why"]),
    )


def _reasons(value: JsonValue) -> tuple[str, ...]:
    return tuple(f"{a_text(one['path'])}: {a_text(one['why'])}" for one in objects(value))


def _optional_texts(value: Json) -> dict[str, str | None]:
    return {key: None if one is None else a_text(one) for key, one in value.items()}
