"""cli.expect, cli.history, cli.rollback: intent before any writer, what became of it, and the way back."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main

OLD, NEW = '{"taps": [1, 17]}\n', '{"taps": [1, 16]}\n'
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def src(tmp_path: Path) -> Path:
    """The intended content."""
    path = tmp_path / "src.json"
    path.write_text(NEW)
    return path


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    """The target, with old content."""
    path = tmp_path / "config.json"
    path.write_text(OLD)
    return path


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A call with --json into the test's ledger: exit status and object."""

    def call(*argv: object) -> tuple[int, dict[str, Any]]:
        code = main([*map(str, argv), "--ledger", str(tmp_path / "ledger"), "--json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document

    return call


def sha256(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def test_expectation_names_both_digests_and_writes_nothing(run: Run, src: Path, dest: Path) -> None:
    """Intent and pre-image are recorded; the file is as it was."""
    code, document = run("expect", src, dest)
    assert code == 0
    assert (document["sha256"], document["old_sha256"]) == (sha256(NEW), sha256(OLD))
    assert (document["ledger_entry"], document["is_there_already"]) == (1, False)
    assert dest.read_text() == OLD


def test_expectation_of_a_new_file_says_absent(run: Run, src: Path, tmp_path: Path) -> None:
    """No file is a pre-image too."""
    assert run("expect", src, tmp_path / "new.json")[1]["old_sha256"] == "absent"


def test_expectation_is_refused_like_a_write(run: Run, src: Path, dest: Path, tmp_path: Path) -> None:
    """Content with a key twice, a directory as a target, a missing source: nothing is recorded."""
    src.write_text('{"a": 1, "a": 2}')
    assert run("expect", src, dest)[0] == 1
    src.write_text(NEW)
    assert run("expect", src, tmp_path)[0] == 1
    assert run("expect", tmp_path / "none", dest)[0] == 3
    assert run("history")[1]["num_lines"] == 0


def test_history_tells_the_outcome_of_each_intent(run: Run, src: Path, dest: Path) -> None:
    """An expectation is not seen in place until somebody looked; a write's receipt gives its level."""
    run("expect", src, dest)
    run("write", src, dest)
    code, document = run("history", dest)
    assert code == 0
    first, second = document["entries"]
    assert (first["kind"], first["is_seen"], first["level"]) == ("expect", False, None)
    assert (second["kind"], second["is_seen"]) == ("write", True)
    assert second["level"] in {"L2", "L3"}
    assert run("history", dest.with_name("other.json"))[1]["entries"] == []


def test_damaged_ledger_is_exit_one(run: Run, src: Path, dest: Path, tmp_path: Path) -> None:
    """History checks the chain it shows."""
    run("write", src, dest)
    path = tmp_path / "ledger" / "ledger.jsonl"
    path.write_text(path.read_text().replace(sha256(NEW), sha256(OLD)))
    code, document = run("history")
    assert (code, document["error"]["id"]) == (1, "ledger-damaged")
    assert run("write", src, dest)[0] == 1


def test_rollback_is_a_verified_write_of_the_pre_image(run: Run, src: Path, dest: Path) -> None:
    """The old bytes come back with a receipt, and going back is itself in the ledger."""
    run("write", src, dest)
    code, receipt = run("rollback", dest)
    assert (code, receipt["schema"], receipt["sha256"]) == (0, "draftproof.receipt/1", sha256(OLD))
    assert dest.read_text() == OLD
    assert len(run("history", dest)[1]["entries"]) == 2


def test_rollback_over_a_foreign_change_is_a_conflict(run: Run, src: Path, dest: Path) -> None:
    """What somebody else wrote since is not overwritten."""
    run("write", src, dest)
    dest.write_text('{"taps": [7]}\n')
    assert run("rollback", dest)[0] == 4
    assert dest.read_text() == '{"taps": [7]}\n'


def test_rollback_needs_something_to_go_back_to(run: Run, src: Path, tmp_path: Path) -> None:
    """No record is exit 3; a file that was not there before is not removed."""
    new = tmp_path / "new.json"
    assert run("rollback", new)[0] == 3
    run("write", src, new)
    code, document = run("rollback", new)
    assert (code, document["error"]["id"]) == (1, "rollback-to-nothing")
    assert new.exists()


def test_rollback_can_be_rehearsed_and_aimed(run: Run, src: Path, dest: Path) -> None:
    """--dry-run shows the diff; --entry goes back before an older write."""
    run("write", src, dest)
    src.write_text('{"taps": [2]}\n')
    run("write", src, dest)
    assert run("rollback", dest, "--dry-run")[1]["would"] == "replace"
    assert run("rollback", dest, "--entry", "1")[1]["sha256"] == sha256(OLD)
    assert dest.read_text() == OLD
