"""An answer of one of our programs in an engine becomes an Effective; what has another form is no answer."""

import re
from collections.abc import Mapping

from draftproof.config.raw import JsonValue
from draftproof.runtimes.agreed import an_object
from draftproof.runtimes.effective import Effective, Fact, How, LayerFacts, unknown
from draftproof.runtimes.interpreter import NoAnswer

__all__ = ["Told", "parse_records"]

MAX_LAYERS = 4096
MAX_WORDS = 600


class Told:
    """One answer, opened: the record, and what is needed to complete it."""

    def __init__(
        self, effective: Effective, tensors: tuple[str, ...] | None, missing: Mapping[str, str]
    ) -> None:
        self.effective = effective
        self.tensors = tensors
        """Names of the drafter's tensors; None where they could not be listed."""

        self.missing = missing
        """Facts for which the engine has no function, with what was looked for."""


def parse_records(body: Mapping[str, object], *, stage: str) -> list[Told] | NoAnswer:
    """The records of a preflight or of a worker; NoAnswer where there is no engine or no agreed form."""
    try:
        if body["engine"] is None:
            return NoAnswer(f"it has no engine that can be imported ({_line(body['reason'])})")
        records = body["records"]
        if not isinstance(records, list):
            return NoAnswer("an answer of another form than agreed (records are a list)")
        return [_told(an_object(body["engine"]), an_object(one), stage) for one in records]
    except (KeyError, TypeError, ValueError) as error:
        return NoAnswer(f"an answer of another form than agreed ({type(error).__name__}: {error})")


def _told(engine: Mapping[str, object], body: Mapping[str, object], stage: str) -> Told:
    facts, missing = {}, {}
    for name, said in an_object(body["facts"]).items():
        one = an_object(said)
        if "missing" in one:
            missing[name] = _line(one["missing"])
        else:
            facts[name] = _fact(one, stage)
    effective = Effective(
        _line(engine["name"]),
        _line(engine["version"]),
        _line(engine["path"]),
        stage,
        _rank(body.get("rank")),
        facts,
        _layers(body["layers"], stage),
        None if body["refusal"] is None else _words(body["refusal"]),
        None if body["config"] is None else an_object(body["config"]),
    )
    return Told(effective, _tensors(body.get("tensors")), missing)


def _fact(one: Mapping[str, JsonValue], stage: str) -> Fact:
    if "unknown" in one:
        return unknown(_line(one["unknown"]))
    if "raised" in one:
        return Fact(None, f"{_words(one['raised'])} ({_line(one['source'])})", How.RAISED)
    return Fact(one["value"], _line(one["source"]), How.ASKED if stage == "preflight" else How.READ)


def _layers(value: object, stage: str) -> tuple[LayerFacts, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > MAX_LAYERS:
        raise TypeError("layers are a list")
    rows = [an_object(one) for one in value]
    return tuple(
        LayerFacts(*(_fact(an_object(row[key]), stage) for key in ("window", "causal"))) for row in rows
    )


def _tensors(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, dict) or "names" not in value:
        return None
    return tuple(_line(name) for name in value["names"])


def _rank(value: object) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"a rank is a number, not {value!r}")
    return value


def _words(value: object) -> str:
    """What an engine says when it refuses: pydantic quotes the whole input behind it, which is not kept."""
    return re.sub(r" \[type=.*", "", _line(value))[:MAX_WORDS]


def _line(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a string was agreed, not {value!r}")
    return " ".join(value.split())
