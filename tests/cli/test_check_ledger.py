"""``draftproof check`` asks the ledger: what it adds to the report, and to the exit status."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main

CONFIGS = Path(__file__).parents[1] / "configs"
CLEAN = CONFIGS / "zlab-qwen3.6-27b-dflash.json"
STALE = CONFIGS / "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json"
CAUSES: dict[str, Callable[[bytes], bytes]] = {
    "cut_at": lambda data: data[:700],
    "zero_tail": lambda data: data[:700] + b"\0" * (len(data) - 700),
    "newlines_or_bom": lambda data: data.replace(b"\n", b"\r\n"),
    "reformatted": lambda data: json.dumps(json.loads(data)).encode(),
    "heredoc_open": lambda data: data + b"EOF\nsystemctl restart engine\n",
    "unknown": lambda data: data.replace(b"248070", b"248069"),
    "never_took_effect": lambda _: STALE.read_bytes(),
}
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """A call with --json: exit status and object."""

    def call(*argv: object) -> tuple[int, dict[str, Any]]:
        code = main([*map(str, argv), "--json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document

    return call


@pytest.fixture
def drafter(tmp_path: Path, run: Run) -> Path:
    """A drafter with the stale config, the clean one announced for it."""
    directory = tmp_path / "drafter"
    directory.mkdir()
    shutil.copyfile(STALE, directory / "config.json")
    assert run("expect", CLEAN, directory / "config.json", "--ledger", tmp_path / "ledger")[0] == 0
    return directory


@pytest.mark.parametrize("cause", CAUSES)
def test_a_wrong_file_carries_its_cause(cause: str, drafter: Path, tmp_path: Path, run: Run) -> None:
    """One finding has a cause, the others have no such key; the directory and the file say the same."""
    (drafter / "config.json").write_bytes(CAUSES[cause](CLEAN.read_bytes()))
    for subject in (drafter, drafter / "config.json"):
        code, document = run("check", subject, "--ledger", tmp_path / "ledger")
        told = [finding for finding in document["findings"] if "cause" in finding]
        assert [(f["id"], f["cause"], f["layer"]) for f in told] == [("file-not-as-written", cause, "BYTES")]
        assert told[0]["where"] == str(drafter / "config.json")
        assert code == (0 if cause == "reformatted" else 1)


def test_the_default_ledger_is_asked_and_not_made(
    drafter: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --ledger it is the one of XDG_STATE_HOME, if there is one; a check makes none."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copyfile(CLEAN, drafter / "config.json")
    code, document = run("check", drafter)
    assert (code, [f for f in document["findings"] if "cause" in f]) == (0, [])
    assert not any("ledger" in entry["check"] for entry in document["not_looked"])
    assert not (tmp_path / "state").exists()
    shutil.copytree(tmp_path / "ledger", tmp_path / "state" / "draftproof")
    shutil.copyfile(STALE, drafter / "config.json")
    code, document = run("check", drafter)
    assert (code, [f["cause"] for f in document["findings"] if "cause" in f]) == (1, ["never_took_effect"])


def test_seen_in_place_then_reverted(drafter: Path, tmp_path: Path, run: Run) -> None:
    """A check that finds the file as meant is remembered: the old bytes after it are a reversion."""
    ledger = ("--ledger", tmp_path / "ledger")
    shutil.copyfile(CLEAN, drafter / "config.json")
    assert run("check", drafter, *ledger)[0] == 0
    shutil.copyfile(STALE, drafter / "config.json")
    code, document = run("check", drafter, *ledger)
    assert (code, [f["cause"] for f in document["findings"] if "cause" in f]) == (1, ["reverted"])


def test_a_named_ledger_must_be_one(drafter: Path, tmp_path: Path, run: Run) -> None:
    """A ledger named and not there, or damaged, is exit 3 on a file that is clean otherwise."""
    shutil.copyfile(CLEAN, drafter / "config.json")
    assert run("check", drafter, "--ledger", tmp_path / "none")[0] == 3
    lines = tmp_path / "ledger" / "ledger.jsonl"
    lines.write_text(lines.read_text().replace("expect", "expecT"))
    code, document = run("check", drafter, "--ledger", tmp_path / "ledger")
    assert code == 3
    assert any("ledger-damaged" in entry["reason"] for entry in document["not_looked"])


def test_an_empty_name_is_no_place(
    drafter: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unset shell variable does not mean the current directory, to the ledger and to --pid neither."""
    monkeypatch.chdir(drafter)
    code, document = run("check", "", "--ledger", tmp_path / "ledger", "--pid", 1)
    assert (code, document["findings"]) == (3, [])
    assert any(entry["reason"] == "an empty path" for entry in document["not_looked"])


def test_the_text_says_it_in_one_line(
    drafter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person reads that the write never took effect, and why that is known."""
    capsys.readouterr()
    assert main(["check", str(drafter), "--ledger", str(tmp_path / "ledger")]) == 1
    assert "write never took effect (bytes equal the recorded pre-image)" in capsys.readouterr().out
