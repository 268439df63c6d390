"""Cases of counters, logs and answers: what was recorded, put to ``probe``, which then asks nobody."""

import json
from pathlib import Path
from typing import Any

import pytest

from cases.builder import Case
from draftproof.cli.main import main

HERE = Path(__file__).parent
CASES = sorted(path for folder in ("met", "act") for path in (HERE / folder).glob("*.json"))
RECORDS: dict[str, list[str]] = json.loads((HERE / "records.json").read_text("utf-8"))["recorded"]
UNDECIDABLE: dict[str, str] = json.loads((HERE / "undecidable.json").read_text("utf-8"))["recorded"]


def load(path: Path) -> Case:
    """A case file."""
    case: Case = json.loads(path.read_text("utf-8"))
    return case


def says(finding: dict[str, Any], wanted: str) -> bool:
    """``id`` or ``id@subject``."""
    kind, _, subject = wanted.partition("@")
    return bool(finding["id"] == kind and subject in ("", finding["subject"]))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The probe says what the case must hear, and nothing that it forbids."""
    case = load(path)
    for name, text in case["recorded"].items():
        (tmp_path / name).write_text(text, "utf-8")
    argv = [str(tmp_path / word) if word in case["recorded"] else word for word in case["argv"]]
    code = main(["probe", *argv, "--json"])
    output = capsys.readouterr()
    assert output.err == ""
    document = json.loads(output.out)
    told = [f"{f['severity']} {f['id']}@{f['subject']}" for f in document["findings"]]
    for wanted in case["must_say"]:
        assert any(says(finding, wanted) for finding in document["findings"]), (wanted, told)
    for forbidden in case["must_not_say"]:
        assert not any(says(finding, forbidden) for finding in document["findings"]), (forbidden, told)
    for text in case["must_mention"]:
        assert text in json.dumps(document, ensure_ascii=False), (text, told)
    assert code == case["exit"], told


def test_every_record_has_a_case_or_a_reason() -> None:
    """No report of these classes is left out."""
    known = {record for records in RECORDS.values() for record in records}
    covered = {load(path)["record"] for path in CASES}
    assert covered | set(UNDECIDABLE) == known
    assert not covered & set(UNDECIDABLE)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case_file_is_complete(path: Path) -> None:
    """Each says which report it stands for, why it matters, and what must and must not be heard."""
    case = load(path)
    assert case["record"].split("-")[0].lower() == path.parent.name
    assert len(case["why"]) > 40
    assert case["must_say"] or case["must_not_say"]


def test_there_are_cases_to_run() -> None:
    """An empty folder does not pass."""
    assert len(CASES) >= 12
