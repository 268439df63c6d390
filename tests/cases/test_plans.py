"""Cases of plans: real reports as files, each a clean plan with one fault, put to ``render``."""

import json
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main

HERE = Path(__file__).parent
CONFIGS = HERE.parent / "configs"
CASES = sorted(path for kind in ("cfg", "par") for path in (HERE / kind).glob("*/case.json"))
REASONS: dict[str, str] = json.loads((HERE / "cfg/undecidable/reasons.json").read_text("utf-8"))["records"]
RECORDS = {*(f"CFG-0{number}" for number in range(3, 8)), "PAR-01", "PAR-02"}

Case = dict[str, Any]


def planned(case: Case, lines: list[str], root: Path) -> list[str]:
    """The plan of a case and its files below ``root``; the arguments of ``render``."""
    for name, text in case.get("files", {}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    said = [*case["serve"], *lines]
    said += [f'drafter_config = "{CONFIGS / case["drafter"]}"'] if "drafter" in case else []
    text = "\n".join(["[serve]", *said, ""]).replace("ROOT", str(root))
    (root / "plan.toml").write_text(text, "utf-8")
    return ["render", case["engine"], str(root / "plan.toml"), "--engine-version", case["version"], "--json"]


def rendered(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Exit status, and everything that is named as lost or not looked at."""
    capsys.readouterr()
    code = main(argv)
    document = json.loads(capsys.readouterr().out)
    told = [f"{loss['about']}: {loss['why']}" for loss in document["losses"]]
    return code, told + [f"{entry['check']}: {entry['reason']}" for entry in document["not_looked"]]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_the_fault_of_a_plan_is_named(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its fault, the report's finding is heard, in words that name it."""
    case: Case = json.loads(path.read_text("utf-8"))
    code, told = rendered(planned(case, case["fault"], tmp_path), capsys)
    assert code == case["exit"], told
    for words in case["must_say"]:
        assert any(words in text for text in told), told


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_without_the_fault_nothing_of_it_is_heard(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mutation is what is found, and not something of the plan around it."""
    case: Case = json.loads(path.read_text("utf-8"))
    _, told = rendered(planned(case, case.get("clean", []), tmp_path), capsys)
    for words in case["must_say"]:
        assert not any(words in text for text in told), told


def test_every_record_has_a_case_or_a_reason() -> None:
    """No report of these classes is left out."""
    covered = {json.loads(path.read_text("utf-8"))["record"] for path in CASES}
    covered |= {path.stem for path in HERE.glob("cfg/*.json")}
    assert covered | set(REASONS) == RECORDS
    assert not covered & set(REASONS)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_a_case_says_why(path: Path) -> None:
    """Which report it stands for, and why that matters."""
    case: Case = json.loads(path.read_text("utf-8"))
    assert case["record"] == path.parent.name
    assert len(case["why"]) > 40
