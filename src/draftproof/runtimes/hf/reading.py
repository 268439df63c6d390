"""What a given Python's transformers makes of a config: asked of that library itself, never guessed.

Source: the library's own answer, framed by ``hf.probe``; see that module for what runs and what never does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from draftproof.config.raw import JsonValue, RawConfig
from draftproof.runtimes.agreed import a_text, an_object, objects
from draftproof.runtimes.interpreter import NoAnswer, Way, ask

__all__ = [
    "Ablation",
    "Flip",
    "HfReading",
    "Hoist",
    "Moved",
    "Refusal",
    "Trials",
    "parse_answer",
    "read_with",
]

KeyPath = tuple[str, ...]
TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Moved:
    """A parsed value that differs between the file and a variation of it."""

    path: KeyPath
    before: JsonValue
    after: JsonValue


@dataclass(frozen=True, slots=True)
class Ablation:
    """What moved when one key was removed (or, if nothing did, its number changed)."""

    path: KeyPath
    moved: tuple[Moved, ...]


@dataclass(frozen=True, slots=True)
class Flip:
    """A single setting that changes a field; ``given`` is a setting already made."""

    path: KeyPath
    value: JsonValue
    given: tuple[KeyPath, JsonValue] | None
    moved: tuple[Moved, ...]


@dataclass(frozen=True, slots=True)
class Hoist:
    """A value at ``path`` that the class does not read, and would read at ``to``."""

    path: KeyPath
    to: KeyPath


@dataclass(frozen=True, slots=True)
class Trials:
    """Everything the library was seen to do with variations of the file."""

    ablations: tuple[Ablation, ...]
    flips: tuple[Flip, ...]
    hoists: tuple[Hoist, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The library's own error: a result of parsing, not a failure to look."""

    stage: str
    """``json``, ``class`` (no class for this file) or ``parse``."""

    type: str
    message: str

    @property
    def sentence(self) -> str:
        """The refusal in words."""
        if self.type == "UnknownModelType":
            return f"no class for model_type {self.message}"
        return f"no class: {self.message}" if self.stage == "class" else f"{self.type}: {self.message}"


@dataclass(frozen=True, slots=True)
class HfReading:
    """One interpreter's reading of one file."""

    python: str
    """As named by the caller."""

    python_version: str
    version: str
    path: str
    """The file transformers was imported from."""

    class_name: str | None
    values: Mapping[str, JsonValue]
    defaults: Mapping[str, JsonValue]
    """What the class holds when a file says nothing; empty where the class cannot be made of nothing."""

    aliases: Mapping[str, str]
    trials: Trials | None
    """None where the library did not parse the same file to the same values twice."""

    refusal: Refusal | None

    @property
    def name(self) -> str:
        """Library, version and class, as shown beside a default."""
        return f"transformers {self.version}" + (f" {self.class_name}" if self.class_name else "")


def read_with(
    python: str, raw: RawConfig, *, timeout_seconds: float = TIMEOUT_SECONDS, way: Way | None = None
) -> HfReading | NoAnswer:
    """Let ``python``'s transformers parse the file; NoAnswer with the reason where it could not be asked.

    ``way`` leads to a Python that is not on this machine.
    """
    script = (files("draftproof.runtimes.hf") / "probe.py").read_text(encoding="utf-8")
    answer = ask(python, script, {"text": raw.text}, timeout_seconds=timeout_seconds, way=way)
    return answer if isinstance(answer, NoAnswer) else parse_answer(python, answer.body)


def parse_answer(python: str, body: Mapping[str, object]) -> HfReading | NoAnswer:
    """The probe's answer as a reading; NoAnswer where it has no transformers or is not of the agreed form."""
    try:
        return _reading(python, body)
    except (KeyError, TypeError, ValueError) as error:
        return NoAnswer(f"an answer of another form than agreed ({type(error).__name__}: {error})")


def _reading(python: str, body: Mapping[str, object]) -> HfReading | NoAnswer:
    error = body["error"]
    refusal = None if error is None else _refusal(an_object(error))
    if body["library"] is None:
        said = f"{refusal.type}: {refusal.message}" if refusal else "no reason given"
        return NoAnswer(f"it has no transformers that can be imported ({said})")
    library = an_object(body["library"])
    parsed = refusal is None
    return HfReading(
        python,
        a_text(body["python"]),
        a_text(library["version"]),
        a_text(library["path"]),
        a_text(body["class"]) if parsed else None,
        an_object(body["values"]) if parsed else {},
        an_object(body["defaults"]) if parsed and body["defaults"] is not None else {},
        {old: a_text(new) for old, new in an_object(body["aliases"]).items()} if parsed else {},
        _trials(an_object(body["trials"])) if parsed and body["trials"] is not None else None,
        refusal,
    )


def _refusal(error: Mapping[str, JsonValue]) -> Refusal:
    return Refusal(a_text(error["stage"]), a_text(error["type"]), " ".join(a_text(error["message"]).split()))


def _trials(body: Mapping[str, JsonValue]) -> Trials:
    return Trials(
        tuple(Ablation(_path(one["path"]), _moved(one["moved"])) for one in objects(body["ablations"])),
        tuple(
            Flip(
                *_setting(one["set"]),
                None if one["given"] is None else _setting(one["given"]),
                _moved(one["moved"]),
            )
            for one in objects(body["flips"])
        ),
        tuple(Hoist(_path(one["path"]), _path(one["to"])) for one in objects(body["hoists"])),
    )


def _setting(value: JsonValue) -> tuple[KeyPath, JsonValue]:
    body = an_object(value)
    return _path(body["path"]), body["value"]


def _moved(value: JsonValue) -> tuple[Moved, ...]:
    return tuple(Moved(_path(one["path"]), one["before"], one["after"]) for one in objects(value))


def _path(value: JsonValue) -> KeyPath:
    if not isinstance(value, list):
        raise TypeError(f"a path is a list, not {value!r}")
    return tuple(a_text(key) for key in value)
