"""Cases: real reports as files, each a clean config or header set with one mutation, put to ``check``."""

import json
from pathlib import Path
from typing import Any

import pytest

from cases.builder import Case
from cases.history import clean, prepared
from draftproof.cli.main import main

HERE = Path(__file__).parent
CASES = sorted(path for path in HERE.glob("*/*.json") if path.parent.name not in ("met", "act"))
RECORDS: dict[str, list[str]] = json.loads((HERE / "records.json").read_text("utf-8"))["records"]
UNDECIDABLE: dict[str, str] = json.loads((HERE / "undecidable.json").read_text("utf-8"))["records"]
FEWEST_CASES = 100


def _load(path: Path) -> Case:
    case: Case = json.loads(path.read_text("utf-8"))
    return case


def _run(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["check", *argv, "--json"])
    output = capsys.readouterr()
    assert output.err == ""
    document: dict[str, Any] = json.loads(output.out)
    return code, document


def _says(finding: dict[str, Any], wanted: str) -> bool:
    """``id`` or ``id@place``, the place being a pointer or a part of the subject."""
    kind, _, place = wanted.partition("@")
    at_place = place in (finding["pointer"], finding["subject"]) or place in finding["subject"].split(", ")
    return bool(finding["id"] == kind and (not place or at_place))


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The check says what the case must hear, and nothing that the case forbids."""
    case = _load(path)
    with prepared(case, tmp_path) as argv:
        code, document = _run(argv, capsys)
    findings = document["findings"]
    told = [f"{f['severity']} {f['id']}@{f['pointer'] or f['subject']}" for f in findings]
    for wanted in case["must_say"]:
        assert any(_says(finding, wanted) for finding in findings), (wanted, told, document["not_looked"])
    for forbidden in case["must_not_say"]:
        assert not any(_says(finding, forbidden) for finding in findings), (forbidden, told)
    for text in case.get("must_mention", []):
        assert text in json.dumps(findings, ensure_ascii=False), (text, told)
    for text in case.get("must_not_mention", []):
        assert text not in json.dumps(findings, ensure_ascii=False), (text, told)
    assert [f["cause"] for f in findings if "cause" in f] == case.get("causes", [])
    if "only" in case:
        grave = {f["id"] for f in findings if f["severity"] != "note"}
        assert grave == set(case["only"]), told
    assert code == case["exit"], told
    layers = {finding["layer"] for finding in findings}
    assert layers <= set(case.get("layers", ["INTENT", "BYTES"])), told


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_base_of_a_case_is_clean(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without its mutation none of a case's errors and warnings is heard: the mutation is what is found."""
    case = _load(path)
    with prepared(clean(case), tmp_path) as argv:
        code, document = _run(argv, capsys)
    told = {f["id"] for f in document["findings"] if f["severity"] != "note"}
    wanted = {wanted.partition("@")[0] for wanted in case["must_say"]}
    assert not told & wanted, (code, document["findings"])


def test_every_record_has_a_case_or_a_reason() -> None:
    """No report of these classes is left out: a case file, or the reason why files cannot decide it."""
    known = {record for records in RECORDS.values() for record in records}
    covered = {_load(path)["record"] for path in CASES} & known
    assert covered | set(UNDECIDABLE) == known
    assert not covered & set(UNDECIDABLE)


def test_the_acceptance_cases_are_here() -> None:
    """The acceptance cases that need files alone are among them: A1, A2, A4, A5 and A6."""
    accepted = {case["acceptance"] for case in map(_load, CASES) if "acceptance" in case}
    assert accepted == {"A1", "A2", "A4", "A5", "A6"}


def test_there_are_cases_to_run() -> None:
    """An empty folder does not pass."""
    assert len(CASES) >= FEWEST_CASES


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case_file_is_complete(path: Path) -> None:
    """Each case says which report it stands for, why it matters, and what must and must not be heard."""
    case = _load(path)
    home = case["record"].split("-")[0].lower()
    assert home == path.parent.name or home in {"a1", "none"}
    assert len(case["why"]) > 40
    assert case["must_say"] or case["must_not_say"]
