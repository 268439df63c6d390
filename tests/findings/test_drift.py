"""findings.rules.drift: whatever single value changes on disk, it is named at exactly its place."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from draftproof.config.json.value import JsonValue
from draftproof.config.raw import pointer_of
from draftproof.findings.check import check
from draftproof.findings.evidence import read_evidence
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.rules import drift

CONFIGS = Path(__file__).parents[1] / "configs"
SUBJECTS = ["zlab-qwen3.6-27b-dflash.json", "redhat-qwen3-8b-speculator-dflash-trimmed.json"]
ADVISORY = {
    "/attention_dropout",
    "/auto_map/AutoModel",
    "/bos_token_id",
    "/dtype",
    "/eos_token_id",
    "/initializer_range",
    "/pad_token_id",
    "/transformers_version",
    "/use_cache",
}


def _scalars(value: JsonValue, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _scalars(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _scalars(inner, (*path, index))
    else:
        yield path


def _changed(value: JsonValue, path: tuple[str | int, ...], change: JsonValue) -> JsonValue:
    if not path:
        return change
    if isinstance(value, dict) and isinstance(path[0], str):
        return value | {path[0]: _changed(value[path[0]], path[1:], change)}
    assert isinstance(value, list)
    assert isinstance(path[0], int)
    changed = list(value)
    changed[path[0]] = _changed(value[path[0]], path[1:], change)
    return changed


def _drift(value: JsonValue, intent: Path, directory: Path) -> list[Finding]:
    (directory / "config.json").write_text(json.dumps(value), "utf-8")
    report = check(read_evidence(str(directory), intent=str(intent)), drift.RULES)
    assert report.not_looked == ()
    return [finding for finding in report.findings if finding.id == "intent-drift"]


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_single_change_is_named_at_its_pointer(name: str, tmp_path: Path) -> None:
    """One value turned into text, one drift: at the value, or at the list of scalars that it stands in."""
    intended = json.loads((CONFIGS / name).read_text("utf-8"))
    for path in _scalars(intended):
        here = path[:-1] if isinstance(path[-1], int) else path
        found = _drift(_changed(intended, path, "changed"), CONFIGS / name, tmp_path)
        assert [finding.pointer for finding in found] == [pointer_of(here)]


def test_advisory_fields_are_warnings_and_say_that_nobody_reads_them(tmp_path: Path) -> None:
    """A field that no engine reads of a drafter is at least a warning; every other is an error."""
    intended = json.loads((CONFIGS / SUBJECTS[0]).read_text("utf-8"))
    for path in _scalars(intended):
        if isinstance(path[-1], int):
            continue
        (finding,) = _drift(_changed(intended, path, "changed"), CONFIGS / SUBJECTS[0], tmp_path)
        is_advisory = pointer_of(path) in ADVISORY
        assert (finding.severity is Severity.WARNING) == is_advisory, finding.pointer
        assert ("no engine reads" in finding.means) == is_advisory


def test_a_key_too_many_and_a_key_too_few_are_two_drifts(tmp_path: Path) -> None:
    """What is only on disk, and what is only intended, are both named; absent is not null."""
    intended = json.loads((CONFIGS / SUBJECTS[0]).read_text("utf-8"))
    disk = {key: value for key, value in intended.items() if key != "head_dim"} | {"extra": None}
    found = {finding.pointer: finding for finding in _drift(disk, CONFIGS / SUBJECTS[0], tmp_path)}
    assert found.keys() == {"/head_dim", "/extra"}
    assert (found["/head_dim"].expected, found["/head_dim"].found) == (128, "absent")
    assert (found["/extra"].expected, found["/extra"].found) == ("absent", None)
