"""A serving engine looked at: its workers' own records where they can be had, what shows from outside."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from draftproof.config.json.bytes import read_limited
from draftproof.config.raw import JsonValue, RefusedConfig, parse_raw
from draftproof.errors import CouldNotLook
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import Place
from draftproof.printable import MASKED, is_secret_key
from draftproof.runtimes.agreed import an_object
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.effective import Effective, Fact, How
from draftproof.runtimes.interpreter import NoAnswer
from draftproof.runtimes.record import parse_records

__all__ = ["Running", "look_at", "read_records"]

MAX_RECORD_BYTES = 8 * 1024 * 1024

FAKING = {"SGLANG_SIMULATE_ACC_LEN": "0"}
"""Switches that make up acceptance -> the value that does not."""

THRESHOLDS = ("--speculative-accept-threshold-single", "--speculative-accept-threshold-acc")
ASKED_BY: tuple[tuple[tuple[str, ...], str], ...] = (
    (("-md", "--model-draft", "--spec-draft-model"), "--spec-type"),
    (("--speculative-draft-model-path", "--speculative-draft-model"), "--speculative-algorithm"),
)
"""Options that name a drafter -> the one without which it only takes memory.

Source: ggml-org/llama.cpp#25345, whose --spec-type defaults to none; SGLang 0.5.23 speculative_hook.
"""

LOOPBACK = ("0100007F", "00000000000000000000000001000000")
DEV_MODE = "VLLM_SERVER_DEV_MODE"


@dataclass(frozen=True, slots=True)
class Running:
    """One look at one server."""

    url: str
    records: tuple[Effective, ...]
    """One per rank; empty where the workers could not be asked."""

    outside: Mapping[str, Fact]
    """What its HTTP answers, command line and environment show."""

    findings: tuple[Finding, ...]
    not_looked: tuple[NotLooked, ...]

    def as_dict(self) -> dict[str, JsonValue]:
        """The entry for ``--json``."""
        return {
            "url": self.url,
            "ranks": [record.as_dict() for record in self.records],
            "outside": {name: fact.as_dict() for name, fact in self.outside.items()},
        }


def look_at(
    there: EnginePython, url: str, pid: int | None, *, timeout_seconds: float, is_required: bool = True
) -> Running:
    """Ask the server at ``url`` and look at process ``pid``, from the machine that it runs on."""
    request: dict[str, object] = {"url": url, "pid": pid or 0, "seconds": timeout_seconds / 2}
    answer = there.ask("outside", request, timeout_seconds=timeout_seconds)
    name = url or f"process {pid}"
    if isinstance(answer, NoAnswer):
        return Running(name, (), {}, (), (_blind(f"{there}: {answer.reason}", is_required=is_required),))
    try:
        return _running(name, answer.body, is_required=is_required and bool(url))
    except (KeyError, TypeError, ValueError) as error:
        reason = f"an answer of another form than agreed ({type(error).__name__}: {error})"
        return Running(name, (), {}, (), (_blind(reason, is_required=is_required),))


def read_records(folder: Path) -> Running:
    """What workers have written into a directory (SGLang's plugin), one file for each rank."""
    records: list[Effective] = []
    for path in sorted(folder.glob("effective-*.json")):
        try:
            body = parse_raw(read_limited(path, MAX_RECORD_BYTES), str(path)).value
        except (CouldNotLook, RefusedConfig) as error:
            return _unread(folder, f"{error.subject}: {error.found}")
        told = parse_records(body, stage="running")
        if isinstance(told, NoAnswer):
            return _unread(folder, f"{path}: {told.reason}")
        records += [one.effective for one in told]
    lacks = () if records else (_blind(f"{folder}: no effective-*.json", is_required=True),)
    return Running(str(folder), tuple(records), {}, tuple(_ranks(str(folder), records)), lacks)


def _unread(folder: Path, reason: str) -> Running:
    return Running(str(folder), (), {}, (), (_blind(reason, is_required=True),))


def _blind(reason: str, *, is_required: bool) -> NotLooked:
    return NotLooked("the drafter in the worker", f"could not look: {reason}", is_required=is_required)


def _running(name: str, body: Mapping[str, object], *, is_required: bool) -> Running:
    workers = an_object(body["workers"]) if body["workers"] is not None else {"error": "no URL was given"}
    records, why = _records(workers)
    outside = dict(_outside(body))
    findings = [
        *_ranks(name, records),
        *_switches(name, body),
        *_exposed(name, body, is_open="json" in workers),
    ]
    lacks = () if records else (_blind(why, is_required=is_required and not outside),)
    return Running(name, records, outside, tuple(findings), lacks)


def _records(workers: Mapping[str, JsonValue]) -> tuple[tuple[Effective, ...], str]:
    """The workers' records, or why there are none."""
    if "error" in workers:
        return (), f"/collective_rpc: {workers['error']}"
    results = an_object(workers["json"])["results"]
    if not isinstance(results, list) or not results:
        return (), "/collective_rpc answered without results"
    records: list[Effective] = []
    for result in results:
        told = parse_records(an_object(result), stage="running")
        if isinstance(told, NoAnswer):
            return (), told.reason
        records += [one.effective for one in told]
    return tuple(records), ""


def _ranks(name: str, records: Sequence[Effective]) -> Iterator[Finding]:
    """Every fact in which a rank differs from the first."""
    for record in records[1:]:
        first, here = records[0].flat, record.flat
        for fact in dict.fromkeys((*first, *here)):
            values = [one[fact].value if fact in one else "not told" for one in (first, here)]
            if values[0] != values[1]:
                yield found(
                    "effective-ranks-differ",
                    fact,
                    expected=values[0],
                    found=values[1],
                    at=_at(f"{name} rank {record.rank}"),
                )


def _outside(body: Mapping[str, object]) -> Iterator[tuple[str, Fact]]:
    """What shows without a look into the worker."""
    for page, key in (("/version", "version"), ("/v1/models", "data")):
        said = an_object(an_object(body["pages"]).get(page, {})).get("json")
        if isinstance(said, dict) and key in said:
            yield page, Fact(said[key], page, How.READ)
    info = an_object(an_object(body["pages"]).get("/server_info", {})).get("json")
    config = _below(info, "vllm_config", "speculative_config")
    for name, key in (("k", "num_speculative_tokens"), ("method", "method"), ("model", "model")):
        if isinstance(config, dict) and key in config:
            yield name, Fact(config[key], f"/server_info vllm_config.speculative_config.{key}", How.READ)
    if isinstance(info, dict):
        for key in sorted(info):
            if key.startswith("speculative_"):
                yield key, Fact(info[key], f"/server_info {key}", How.READ)
    process = body["process"]
    if isinstance(process, dict) and isinstance(process["argv"], list):
        yield "argv", Fact([*_without_secrets(process["argv"])], "/proc/PID/cmdline", How.READ)


def _without_secrets(argv: Sequence[JsonValue]) -> Iterator[JsonValue]:
    hide = False
    for word in argv:
        name, equals, _ = str(word).partition("=")
        is_secret = name.startswith("--") and is_secret_key(name)
        yield MASKED if hide else f"{name}={MASKED}" if is_secret and equals else word
        hide = is_secret and not equals


def _switches(name: str, body: Mapping[str, object]) -> Iterator[Finding]:
    """Faked and lossy acceptance, by the environment and the command line."""
    process = body["process"]
    if not isinstance(process, dict):
        return
    environment = an_object(process["environment"])
    for switch, harmless in FAKING.items():
        if environment.get(switch, harmless) not in (harmless, ""):
            yield found(
                "acceptance-faked",
                switch,
                expected=harmless,
                found=environment[switch],
                at=_at(f"{name} environment"),
            )
    argv = [str(word) for word in process["argv"] or ()]
    yield from _inactive(name, argv)
    for option, value in _options(argv):
        if option in THRESHOLDS and _as_number(value) != 1:
            yield found("acceptance-lossy", option, expected=1.0, found=value, at=_at(f"{name} command line"))
        if option in ("--speculative-config", "-sc"):
            yield from _rejection(name, value)


def _inactive(name: str, argv: Sequence[str]) -> Iterator[Finding]:
    """A drafter without a method."""
    given = {word.partition("=")[0] for word in argv}
    for options, method in ASKED_BY:
        named = [option for option in options if option in given]
        if named and method not in given:
            at = _at(f"{name} command line")
            yield found("speculation-not-asked-for", named[0], expected=method, found="absent", at=at)


def _rejection(name: str, text: str) -> Iterator[Finding]:
    try:
        config = json.loads(text)
    except ValueError:
        return
    method = config.get("rejection_sample_method") if isinstance(config, dict) else None
    kind = {"synthetic": "acceptance-faked", "fly": "acceptance-lossy"}.get(str(method))
    if kind:
        at = _at(f"{name} command line")
        yield found(kind, "rejection_sample_method", expected="standard", found=method, at=at)


def _options(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    for index, word in enumerate(argv):
        option, equals, value = word.partition("=")
        if equals:
            yield option, value
        elif index + 1 < len(argv):
            yield word, argv[index + 1]


def _exposed(name: str, body: Mapping[str, object], *, is_open: bool) -> Iterator[Finding]:
    """Whether the endpoint that answered is listened on beyond loopback."""
    listens = body["listens"]
    beyond = [str(one) for one in listens if one not in LOOPBACK] if isinstance(listens, list) else []
    if is_open and beyond:
        is_any = any(set(one) == {"0"} for one in beyond)
        address = "every address" if is_any else f"{beyond[0]} (as /proc/net writes it)"
        yield found("dev-endpoints-exposed", DEV_MODE, expected="127.0.0.1", found=address, at=_at(name))


def _at(where: str) -> Place:
    return Place(where)


def _as_number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _below(value: JsonValue, *keys: str) -> JsonValue:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
