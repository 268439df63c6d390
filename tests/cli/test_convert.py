"""draftproof convert: the config on standard output, losses on standard error, nothing written in place."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CONFIGS = Path(__file__).parents[1] / "configs"
DRAFTER = CONFIGS / "zlab-qwen3.6-27b-dflash.json"
LOSSY = CONFIGS / "zlab-gpt-oss-20b-dflash.json"


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, standard output not a terminal."""
    command = [sys.executable, "-m", "draftproof", "convert", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def document(status: int, *args: str | Path) -> dict[str, Any]:
    """The one JSON object of a call that must end with ``status`` and say nothing else."""
    result = run(*args, "--json")
    assert (result.returncode, result.stderr) == (status, "")
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def test_text_is_the_config_and_nothing_else() -> None:
    """Standard output can be redirected into a config.json; no loss, exit 0; a note goes beside it."""
    result = run(DRAFTER, "--to", "speculators")
    assert result.returncode == 0
    assert result.stderr.startswith("note: sliding_window_non_causal is false")
    assert json.loads(result.stdout)["aux_hidden_state_layer_ids"] == [2, 17, 32, 47, 62]


def test_losses_go_to_standard_error_and_make_it_one() -> None:
    """Each loss on a line of its own: place, value, why."""
    result = run(LOSSY, "--to", "speculators")
    assert result.returncode == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("lost /model_type = gpt_oss: ")
    assert json.loads(result.stdout)["speculators_model_type"] == "dflash"


def test_object_follows_the_contract() -> None:
    """From, to, config and losses, in one object."""
    told = document(1, LOSSY, "--to", "speculators")
    assert (told["schema"], told["from"], told["to"]) == ("draftproof.convert/1", "native", "speculators")
    [loss] = told["losses"]
    assert (loss["pointer"], loss["value"]) == ("/model_type", "gpt_oss")
    assert loss["why"]


def test_there_and_back_through_files(tmp_path: Path) -> None:
    """What one call prints the other reads; the file at the end says the same, key by key."""
    there, back = tmp_path / "there.json", tmp_path / "back.json"
    there.write_text(run(DRAFTER, "--to", "speculators").stdout)
    back.write_text(run(there, "--to", "native").stdout)
    before, after = json.loads(DRAFTER.read_text()), json.loads(back.read_text())
    assert after == before


def test_same_format_is_said_and_printed_unchanged() -> None:
    """Already native: the same config, a word on standard error, exit 0."""
    result = run(DRAFTER, "--to", "native")
    assert result.returncode == 0
    assert "native format already" in result.stderr
    assert json.loads(result.stdout) == json.loads(DRAFTER.read_text())
    told = document(0, DRAFTER, "--to", "native")
    assert (told["unchanged"], told["losses"]) == (True, [])


def test_nothing_is_written_in_place(tmp_path: Path) -> None:
    """The directory is the same before and after."""
    (tmp_path / "config.json").write_bytes(DRAFTER.read_bytes())
    assert run(tmp_path, "--to", "speculators").returncode == 0
    assert [p.name for p in tmp_path.iterdir()] == ["config.json"]
    assert (tmp_path / "config.json").read_bytes() == DRAFTER.read_bytes()


def test_calls_that_are_wrong_and_files_that_are_not_there(tmp_path: Path) -> None:
    """No --to or another format is 2, a missing path 3, a target without a head 1."""
    assert document(2, DRAFTER, "--to", "gguf")["error"]["id"] == "usage"
    assert document(2, DRAFTER)["error"]["id"] == "usage"
    assert document(3, tmp_path / "none", "--to", "native")["error"]["id"] == "could-not-look"
    target = CONFIGS / "qwen3.5-35b-a3b-target-text-partial.json"
    assert document(1, target, "--to", "speculators")["error"]["id"] == "refused"


def test_a_credential_that_is_lost_is_not_shown(tmp_path: Path) -> None:
    """The loss is named, its value is not: neither as text nor for programs, at any depth."""
    config = json.loads(DRAFTER.read_text(encoding="utf-8"))
    config |= {"hf_token": "hf_do_not_show", "login": {"apiKey": ["hf_do_not_show"]}}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")
    text = run(path, "--to", "speculators")
    told = document(1, path, "--to", "speculators")
    assert "do_not_show" not in text.stdout + text.stderr + json.dumps(told)
    assert [loss["pointer"] for loss in told["losses"]] == ["/hf_token", "/login"]
