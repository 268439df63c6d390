"""draftproof facts: the table, the object, and the status it ends with."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from unprivileged import without_privileges

CONFIGS = Path(__file__).parents[1] / "configs"
DRAFTER = CONFIGS / "zlab-qwen3.6-27b-dflash.json"


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, standard output not a terminal."""
    command = [sys.executable, "-m", "draftproof", "facts", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def document(status: int, *args: str | Path) -> dict[str, Any]:
    """The one JSON object of a call that must end with ``status`` and say nothing else."""
    result = run(*args, "--json")
    assert (result.returncode, result.stderr) == (status, "")
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def row(text: str, name: str) -> str:
    """The row of one fact, spaces folded."""
    return next(" ".join(line.split()) for line in text.splitlines() if line.split()[:1] == [name])


def test_table_shows_value_and_place() -> None:
    """Line and pointer for what is written, the rule for what is derived, the library for a default."""
    text = run(DRAFTER).stdout
    assert row(text, "mask_token_id") == "mask_token_id 248070 l.13 /dflash_config/mask_token_id"
    assert row(text, "taps.hidden_indexes").endswith("derived: layer id + 1: the output of that layer")
    assert "default of transformers" in row(text, "rope.partial_rotary_factor")


def test_equal_layers_share_their_rows() -> None:
    """Four alike layers are one row a field; a long list of numbers is cut and counted."""
    text = run(DRAFTER).stdout
    assert row(text, "layers.0-3.window") == "layers.0-3.window 2048 l.45 /sliding_window"
    assert row(text, "layers.4.causal").startswith("layers.4.causal false")
    target = run(CONFIGS / "qwen3.6-27b-target.json").stdout
    assert row(target, "layers.0-2,4-6,8-10,...(48).kind").split()[1] == "linear_attention"


def test_what_has_no_value_is_gathered_by_reason() -> None:
    """Names, then the reason they share: never an empty cell."""
    text = run(CONFIGS / "specforge-llama3-8b-eagle3.json").stdout
    lines = [line.strip() for line in text.splitlines()]
    place = lines.index("no value: taps.layer_ids, taps.hidden_indexes")
    assert "L//2" in lines[place + 1]


def test_unparsed_and_problems_are_shown(tmp_path: Path) -> None:
    """A key nobody reads, and a value of the wrong type, both at the end."""
    config = json.loads(DRAFTER.read_text()) | {"zz": 1, "block_size": "16"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    text = run(tmp_path).stdout
    assert "read by nobody here: /zz" in text
    assert 'mistyped: /block_size (l.1): expected an integer, found "16"' in text


def test_object_follows_the_contract() -> None:
    """The schema, the subject, and every field with a source."""
    told = document(0, DRAFTER)
    assert told["schema"] == "draftproof.facts/1"
    assert told["subject"] == str(DRAFTER)
    assert told["taps"]["layer_ids"] == [1, 16, 31, 46, 61]
    assert told["sources"]["mask_token_id"] == {"pointer": "/dflash_config/mask_token_id", "line": 13}


def test_a_directory_stands_for_its_config(tmp_path: Path) -> None:
    """A checkpoint directory and its config.json are the same subject."""
    (tmp_path / "config.json").write_bytes(DRAFTER.read_bytes())
    assert document(0, tmp_path)["subject"] == str(tmp_path / "config.json")


@pytest.mark.parametrize(
    ("data", "status", "id_"),
    [
        (b'{"a": 1, "a": 2}', 1, "refused"),
        (b"", 1, "refused"),
        (b"{}", 1, "refused"),
        (b'{"model": {"type": "BPE"}}', 1, "refused"),
    ],
)
def test_what_cannot_be_described_is_refused(tmp_path: Path, data: bytes, status: int, id_: str) -> None:
    """Refused JSON and configs of something else: one error object, exit 1."""
    path = tmp_path / "config.json"
    path.write_bytes(data)
    told = document(status, path)
    assert (told["error"]["id"], told["error"]["exit"]) == (id_, status)


def test_missing_paths_could_not_be_looked_at(tmp_path: Path) -> None:
    """No such path, no config.json, a directory under that name: exit 3."""
    assert document(3, tmp_path / "none")["error"]["id"] == "could-not-look"
    assert document(3, tmp_path)["error"]["id"] == "could-not-look"
    (tmp_path / "config.json").mkdir()
    assert document(3, tmp_path)["error"]["id"] == "could-not-look"


def test_foreign_text_cannot_drive_the_terminal(tmp_path: Path) -> None:
    """A model_type with an escape sequence is shown as its escape."""
    config = json.loads(DRAFTER.read_text()) | {"model_type": "qwen3\u001b[2J\u202e"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert "\u001b" not in run(path).stdout
    assert "\\x1b" in run(path).stdout


@pytest.mark.parametrize("verb", ["facts", "convert", "diff"])
def test_a_file_without_permission_could_not_be_looked_at(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 3 for every verb that reads a file, never 2: the call was right."""
    further = {"facts": [], "convert": ["--to", "native"], "diff": [str(DRAFTER)]}[verb]
    assert main([verb, str(DRAFTER), *further]) == 0
    locked = tmp_path / "config.json"
    locked.write_text("{}")
    locked.chmod(0)
    capsys.readouterr()
    with without_privileges():
        status = main([verb, str(locked), *further, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (status, told["error"]["id"]) == (3, "could-not-look")
