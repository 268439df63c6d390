"""cli.write: one object with --json, and an exit status that says what happened to the file."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main

OLD, NEW = '{"taps": [1, 17], "hf_token": "one"}\n', '{"taps": [1, 16], "hf_token": "two"}\n'


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """SRC with the new content and DEST with the old one; the ledger below the state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "src.json").write_text(NEW)
    (tmp_path / "config.json").write_text(OLD)
    return str(tmp_path / "src.json"), str(tmp_path / "config.json")


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    """Exit status and the one JSON object of a call."""
    code = main([*argv, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def test_receipt_has_the_contract_fields(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The receipt names both digests, the level reached, the first not reached, and its ledger entry."""
    code, receipt = run(capsys, "write", *files)
    assert code == 0
    assert Path(files[1]).read_text() == NEW
    assert receipt["schema"] == "draftproof.receipt/1"
    assert receipt["target"] == files[1]
    assert receipt["sha256"] == hashlib.sha256(NEW.encode()).hexdigest()
    assert receipt["old_sha256"] == hashlib.sha256(OLD.encode()).hexdigest()
    assert receipt["level"] in {"L2", "L3"}
    assert receipt["not_reached"].keys() == {"level", "reason"}
    assert [item["level"] for item in receipt["evidence"]] == [f"L{n}" for n in range(8)]
    assert receipt["ledger_entry"] == 1
    assert (tmp_path / "state" / "draftproof" / "ledger.jsonl").exists()


def test_level_not_reached_is_exit_three_and_tells_the_state(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """L5 needs another boot: the file holds the new content, and the exit status says: not that far."""
    code, receipt = run(capsys, "write", *files, "--level", "L5")
    assert code == 3
    assert (receipt["state"], receipt["asked"]) == ("new", "L5")
    assert Path(files[1]).read_text() == NEW


def test_conflict_is_exit_four(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """An unexpected old content changes nothing; the error carries its id."""
    code, document = run(capsys, "write", *files, "--expect-old", "absent")
    assert (code, document["error"]["id"], document["error"]["exit"]) == (4, "write-conflict", 4)
    assert Path(files[1]).read_text() == OLD
    digest = hashlib.sha256(OLD.encode()).hexdigest()
    assert run(capsys, "write", *files, "--expect-old", digest)[0] == 0


def test_wrong_calls_are_exit_two(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """A level or digest that is none is a fault of the call, and nothing was done."""
    assert run(capsys, "write", *files, "--level", "L9")[0] == 2
    assert run(capsys, "write", *files, "--expect-old", "abc")[0] == 2
    assert run(capsys, "write", files[0], "host:relative.json")[0] == 2
    assert Path(files[1]).read_text() == OLD


def test_missing_source_or_directory_is_exit_three(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be read or reached is said to be so."""
    assert run(capsys, "write", files[0] + ".none", files[1])[0] == 3
    assert run(capsys, "write", files[0], str(Path(files[1]).parent / "none" / "config.json"))[0] == 3


def test_unusable_ledger_is_exit_three_and_nothing_is_sent(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Where neither intent nor pre-image can be kept, nothing is written."""
    for verb in ("write", "expect"):
        code, document = run(capsys, verb, *files, "--ledger", "/proc/none/ledger")
        assert (code, document["error"]["id"]) == (3, "ledger-unusable")
    assert Path(files[1]).read_text() == OLD


def test_dry_run_changes_nothing_and_masks_secrets(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The diff shows what would change, no credential, and neither file nor ledger is touched."""
    code, plan = run(capsys, "write", *files, "--dry-run")
    assert (code, plan["would"]) == (0, "replace")
    assert any('"taps": [1, 16]' in text for text in plan["diff"])
    assert "two" not in json.dumps(plan["diff"])
    assert Path(files[1]).read_text() == OLD
    assert not (tmp_path / "state").exists()


def test_dry_run_refuses_what_the_write_would(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A link is refused before anything is promised."""
    link = Path(files[1]).with_name("link.json")
    link.symlink_to("config.json")
    code, document = run(capsys, "write", files[0], str(link), "--dry-run")
    assert (code, document["error"]["id"]) == (1, "write-through-symlink")


def test_text_names_the_level_and_never_just_verified(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """People get the same facts: the level, its claim, each level's observation."""
    assert main(["write", *files]) == 0
    text = capsys.readouterr().out
    assert "verified" not in text
    assert "L2 holds: another process resolved the path anew and read the whole file" in text


def test_relative_target_is_taken_from_the_working_directory(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leading ``..`` is the parent of where we are."""
    below = Path(files[1]).parent / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    code, receipt = run(capsys, "write", files[0], "../config.json")
    assert (code, receipt["target"]) == (0, os.path.realpath(files[1]))
