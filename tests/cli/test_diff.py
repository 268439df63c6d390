"""draftproof diff: what it prints, what it puts out for programs, and the status it ends with."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from draftproof.config.diff import apply

CONFIGS = Path(__file__).parents[1] / "configs"
INTENDED = CONFIGS / "zlab-qwen3.6-27b-dflash.json"
STALE = CONFIGS / "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json"


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, standard output not a terminal."""
    command = [sys.executable, "-m", "draftproof", "diff", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def document(status: int, *args: str | Path) -> dict[str, Any]:
    """The one JSON object of a call that must end with ``status`` and say nothing else."""
    result = run(*args, "--json")
    assert (result.returncode, result.stderr) == (status, "")
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def written(path: Path, data: bytes) -> Path:
    """The path, after the bytes were written there."""
    path.write_bytes(data)
    return path


def test_the_case_study_is_five_lines() -> None:
    """The intended against the stale config: a line for each of the five fields, with types and lines."""
    result = run(INTENDED, STALE)
    assert result.returncode == 1
    lines = [" ".join(text.split()) for text in result.stdout.splitlines()]
    assert lines == [
        "/bos_token_id null (l.11) -> 248044 (integer, l.11)",
        "/dflash_config/mask_token_id 248070 (integer, l.13) -> 248064 (integer, l.13)",
        (
            "/dflash_config/target_layer_ids [1, 16, 31, 46, 61] (array, l.14)"
            " -> [1, 17, 33, 49, 63] (array, l.14) [1-4]"
        ),
        (
            '/layer_types [4 x "sliding_attention", "full_attention"] (array, l.29)'
            ' -> [5 x "full_attention"] (array, l.29) [0-3]'
        ),
        "/sliding_window 2048 (integer, l.45) -> null (l.45)",
        "5 values differ",
    ]


def test_the_object_says_all_of_it() -> None:
    """--json carries pointer, kind, both sides with type and place, and a patch that leads from A to B."""
    told = document(1, INTENDED, STALE)
    assert told["schema"] == "draftproof.diff/1"
    assert (told["equal"], told["bytes"], told["patch_leaves_out"]) == (False, "differs", [])
    assert told["a"]["path"] == str(INTENDED)
    assert len(told["a"]["sha256"]) == 64
    assert told["differences"][1] == {
        "pointer": "/dflash_config/mask_token_id",
        "kind": "value",
        "a": {"type": "integer", "value": 248070, "line": 13, "column": 22},
        "b": {"type": "integer", "value": 248064, "line": 13, "column": 22},
        "indexes": [],
    }
    a, b = (json.loads(path.read_text(encoding="utf-8")) for path in (INTENDED, STALE))
    assert apply(told["patch"], a) == b


def test_a_directory_stands_for_its_config(tmp_path: Path) -> None:
    """A directory is its config.json."""
    written(tmp_path / "config.json", INTENDED.read_bytes())
    told = document(0, tmp_path, INTENDED)
    assert (told["equal"], told["bytes"]) == (True, "identical")
    assert told["a"]["path"] == str(tmp_path / "config.json")


def test_absent_is_null_in_the_object_and_null_is_not(tmp_path: Path) -> None:
    """A side where nothing is written is null; a written null has its type and place."""
    a = written(tmp_path / "a.json", b'{"x": null}\n')
    b = written(tmp_path / "b.json", b'{"y": 1.0}\n')
    removed, added = document(1, a, b)["differences"]
    assert (removed["kind"], removed["b"]) == ("removed", None)
    assert removed["a"] == {"type": "null", "value": None, "line": 1, "column": 7}
    assert (added["kind"], added["a"], added["b"]["type"]) == ("added", None, "float")
    assert "absent" in run(a, b).stdout


@pytest.mark.parametrize(
    ("other", "verdict", "said"),
    [
        (b'{"a": 1, "b": [2]}\n', "identical", "values agree; bytes identical"),
        (b'{"a": 1, "b": [2]}\r\n', "line-endings", "values agree; bytes differ: line-endings"),
        (b'{"b":[2],"a":1}', "formatting", "values agree; bytes differ: key order, blanks"),
    ],
)
def test_formatting_is_no_difference(tmp_path: Path, other: bytes, verdict: str, said: str) -> None:
    """Where the typed values agree the status is 0, and what the bytes differ in is said."""
    a = written(tmp_path / "a.json", b'{"a": 1, "b": [2]}\n')
    b = written(tmp_path / "b.json", other)
    assert document(0, a, b)["bytes"] == verdict
    assert run(a, b).stdout == said + "\n"


@pytest.mark.parametrize("other", [b'{"a": 1.0}', b'{"a": true}', b'{"a": "1"}', b'{"a": null}', b"{}"])
def test_types_are_told_apart(tmp_path: Path, other: bytes) -> None:
    """1, 1.0, true, "1", null and nothing are six things."""
    a, b = written(tmp_path / "a.json", b'{"a": 1}'), written(tmp_path / "b.json", other)
    assert [d["pointer"] for d in document(1, a, b)["differences"]] == ["/a"]


def test_a_refused_file_is_told_with_every_defect(tmp_path: Path) -> None:
    """A file that is no strict JSON ends with 1 and lists all defects, with other readers' views."""
    bad = written(tmp_path / "bad.json", b'{"a": 1, "a": null}\nEOF\ncat config.json\n')
    told = document(1, INTENDED, bad)
    assert told["schema"] == "draftproof.error/1"
    assert [d["id"] for d in told["error"]["defects"]] == [
        "json-duplicate-key",
        "json-heredoc-delimiter",
        "json-shell-text",
    ]
    assert told["error"]["defects"][0]["readers"]["json"] == "keeps the last: null"
    text = run(INTENDED, bad)
    assert (text.returncode, text.stdout) == (1, "")
    assert "json-heredoc-delimiter" in text.stderr
    assert "every other reader keeps the last: null" in text.stderr


def test_both_files_are_told_and_refused_beats_missing(tmp_path: Path) -> None:
    """Neither fault hides the other: both are in the object, and the status is that of the refusal."""
    bad = written(tmp_path / "bad.json", b"")
    told = document(1, tmp_path / "gone.json", bad)
    assert told["error"]["defects"][0]["id"] == "json-empty-file"
    assert [error["exit"] for error in told["errors"]] == [3, 1]


@pytest.mark.parametrize("kind", ["missing", "empty directory", "fifo", "device"])
def test_what_cannot_be_read_is_three(tmp_path: Path, kind: str) -> None:
    """Nothing there, no config.json, a pipe, a device: status 3 at once, all parts said."""
    path = tmp_path / "x"
    if kind == "empty directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    error = document(3, INTENDED, path)["error"]
    assert error["id"] == "could-not-look"
    assert all(error[part] for part in ("subject", "expected", "found", "where", "means", "next"))


def test_secrets_are_compared_and_not_shown(tmp_path: Path) -> None:
    """Two credentials differ, the status says so, and neither is printed, not even in the patch."""
    a = written(tmp_path / "a.json", b'{"hf_token": "hf_aaa", "x": {"api_key": "k1"}}\n')
    b = written(tmp_path / "b.json", b'{"hf_token": "hf_bbb", "x": {"api_key": "k2"}}\n')
    for result in (run(a, b), run(a, b, "--json")):
        assert result.returncode == 1
        assert not any(secret in result.stdout + result.stderr for secret in ("hf_aaa", "hf_bbb", "k1", "k2"))
    told = document(1, a, b)
    assert told["patch_leaves_out"] == ["/hf_token", "/x/api_key"]
    assert told["patch"] == []


def test_foreign_text_cannot_drive_the_terminal(tmp_path: Path) -> None:
    """Escapes, bidi marks and raw control bytes of a file reach neither output; the file is called odd."""
    a = written(tmp_path / "a.json", b'{"a": "x"}\n')
    b = written(tmp_path / "b.json", b'{"a": "\\u001b[2J\\u202e\xc2\x9b", "\\u001b]0;k": 1}\n')
    c = written(tmp_path / "c.json", b'{"a": \x1b[31m}\n')
    for result in (run(a, b), run(a, b, "--json"), run(a, c), run(c, c, "--json")):
        output = result.stdout + result.stderr
        assert not any(character in output for character in "\x1b\u202e\x9b")
    assert "json-terminal-escape" in run(a, b).stdout
    assert {oddity["id"] for oddity in document(1, a, b)["b"]["oddities"]} == {
        "json-terminal-escape",
        "json-hidden-character",
    }


def test_a_lone_surrogate_does_not_break_the_output(tmp_path: Path) -> None:
    """A string that cannot be encoded is refused and still told."""
    bad = written(tmp_path / "bad.json", b'{"a": "\\ud800", "\\udfff": "\\ud800"}\n')
    assert run(INTENDED, bad).returncode == 1
    assert document(1, INTENDED, bad)["error"]["defects"]


def test_a_hostile_key_widens_no_column(tmp_path: Path) -> None:
    """A key of 200,000 characters is told once: the other rows are not padded to its length."""
    long = written(tmp_path / "long.json", b'{"' + b"k" * 200_000 + b'": 1, "a": 1, "b": 2}')
    result = run(long, written(tmp_path / "other.json", b'{"a": 2, "b": 3}'))
    assert result.returncode == 1
    assert len(result.stdout) < 201_000
