"""``draftproof views`` as a user calls it: its JSON contract, its exit codes, its text.

The interpreters here answer with what real ones were recorded to say; live tests ask real ones.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from draftproof.cli.main import main
from environments import NEW, OLD, VERSIONS
from runtimes.cases import CASES
from runtimes.recorded_python import recorded_python

CONFIGS = Path(__file__).parents[1] / "configs"
CLEAN = CONFIGS / "zlab-qwen3.6-27b-dflash.json"
STALE = "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json"
FIVE = {
    "/layer_types",
    "/sliding_window",
    "/dflash_config/mask_token_id",
    "/dflash_config/target_layer_ids",
    "/bos_token_id",
}
Capture = pytest.CaptureFixture[str]


def run(capsys: Capture, *argv: str | Path) -> tuple[int, dict[str, Any]]:
    """The exit status and the one JSON object of standard output."""
    code = main(["views", *map(str, argv), "--json"])
    output = capsys.readouterr()
    assert output.err == ""
    document: dict[str, Any] = json.loads(output.out)
    return code, document


def text(capsys: Capture, *argv: str | Path) -> tuple[int, str]:
    """The exit status and the text a person sees."""
    code = main(["views", *map(str, argv)])
    return code, capsys.readouterr().out


def laid_out(folder: Path, case: str) -> Path:
    """A directory that holds the case as its config."""
    subject = folder / "drafter"
    subject.mkdir()
    (subject / "config.json").write_text(CASES[case], encoding="utf-8")
    return subject


def pythons(folder: Path, case: str, *versions: str) -> list[str]:
    """``--python`` options of recorded interpreters."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    paths = [recorded_python(programs, case, version) for version in versions]
    return [part for path in paths for part in ("--python", path)]


def fields(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Pointer -> its row."""
    return {row["pointer"]: row for row in document["fields"]}


def test_the_keys_are_the_contract(capsys: Capture, tmp_path: Path) -> None:
    """The document, an interpreter, a field and a parsed value have these parts and no others."""
    subject = laid_out(tmp_path, STALE)
    options = pythons(tmp_path, STALE, NEW)
    code, document = run(capsys, subject, "--intent", CLEAN, *options)
    assert code == 1
    assert list(document) == [
        "schema",
        "subject",
        "intent",
        "interpreters",
        "engine",
        "fields",
        "findings",
        "not_looked",
    ]
    assert document["schema"] == "draftproof.views/1"
    assert (document["subject"], document["intent"]) == (str(subject / "config.json"), str(CLEAN))
    (interpreter,) = document["interpreters"]
    assert set(interpreter) == {
        "python",
        "python_version",
        "library",
        "version",
        "path",
        "class",
        "ok",
        "reason",
    }
    assert (interpreter["library"], interpreter["version"], interpreter["class"]) == (
        "transformers",
        NEW,
        "Qwen3Config",
    )
    assert (interpreter["python"], interpreter["ok"], interpreter["reason"]) == (options[1], True, None)
    row = fields(document)["/layer_types"]
    parts = {"pointer", "intent", "in_intent", "bytes", "in_bytes", "line", "parsed", "first_wrong"}
    assert set(row) == parts
    assert set(row["parsed"]) == {options[1]}
    assert set(row["parsed"][options[1]]) == {"value", "how", "why", "pointer"}


def test_the_case_study_is_wrong_on_disk_and_the_library_is_innocent(capsys: Capture, tmp_path: Path) -> None:
    """Five fields are first wrong at BYTES; both libraries keep them; nothing is found at PARSED."""
    subject = laid_out(tmp_path, STALE)
    _, document = run(capsys, subject, "--intent", CLEAN, *pythons(tmp_path, STALE, *VERSIONS))
    rows = fields(document)
    assert {pointer for pointer, row in rows.items() if row["first_wrong"]} == FIVE
    for pointer in FIVE:
        assert rows[pointer]["first_wrong"] == "BYTES"
        assert {one["how"] for one in rows[pointer]["parsed"].values()} == {"kept"}
        assert {json.dumps(one["value"]) for one in rows[pointer]["parsed"].values()} == {
            json.dumps(rows[pointer]["bytes"])
        }
    assert {finding["layer"] for finding in document["findings"]} == {"BYTES"}
    assert {finding["pointer"] for finding in document["findings"]} == FIVE


def test_a_value_the_library_loses_is_first_wrong_at_parsed(capsys: Capture, tmp_path: Path) -> None:
    """The window that a missing switch nulls is right on disk and wrong from the library on."""
    case = "C types without switch"
    subject = laid_out(tmp_path, case)
    code, document = run(capsys, subject, "--intent", subject, *pythons(tmp_path, case, *VERSIONS))
    assert code == 1
    wrong = {pointer: row["first_wrong"] for pointer, row in fields(document).items() if row["first_wrong"]}
    assert wrong == {"/sliding_window": "PARSED"}
    assert [f["id"] for f in document["findings"]] == ["parsed-window-nulled"] * 2


def test_a_file_that_contradicts_itself_is_wrong_at_bytes(capsys: Capture, tmp_path: Path) -> None:
    """Layers that slide and a window written as null: the parser keeps both, so the file is first wrong."""
    case = "types, null window"
    code, document = run(capsys, laid_out(tmp_path, case), *pythons(tmp_path, case, *VERSIONS))
    assert code == 1
    wrong = {pointer: row["first_wrong"] for pointer, row in fields(document).items() if row["first_wrong"]}
    assert wrong == {"/sliding_window": "BYTES"}
    assert [(f["id"], f["layer"]) for f in document["findings"]] == [("sliding-without-window", "BYTES")]


def test_without_a_python_nothing_is_said_about_parsing(capsys: Capture, tmp_path: Path) -> None:
    """No interpreter, no parsed column; that is said, and costs nothing."""
    code, document = run(capsys, laid_out(tmp_path, "C types without switch"))
    assert (code, document["interpreters"], document["findings"]) == (0, [], [])
    assert all(row["parsed"] == {} and row["first_wrong"] is None for row in document["fields"])
    assert {entry["check"] for entry in document["not_looked"]} == {"intent", "parsed"}


def test_an_interpreter_that_cannot_be_asked_is_status_3(capsys: Capture, tmp_path: Path) -> None:
    """A Python named and not to be had is said, and is no agreement."""
    code, document = run(capsys, laid_out(tmp_path, "D types and switch"), "--python", tmp_path / "gone")
    assert code == 3
    (interpreter,) = document["interpreters"]
    assert (interpreter["ok"], interpreter["reason"]) == (False, "could not look: no such file")
    reasons = {entry["check"]: entry["reason"] for entry in document["not_looked"]}
    assert reasons["parsed"] == f"could not look: {tmp_path / 'gone'}: no such file"


def test_findings_beat_what_could_not_be_asked(capsys: Capture, tmp_path: Path) -> None:
    """1 beats 3: a drift found is not hidden by a missing interpreter."""
    code, document = run(capsys, laid_out(tmp_path, STALE), "--intent", CLEAN, "--python", tmp_path / "gone")
    assert code == 1
    assert len(document["findings"]) == 5


def test_an_interpreter_that_hangs_is_status_3(capsys: Capture, tmp_path: Path) -> None:
    """The time given is kept."""
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 600\n")
    sleeper.chmod(0o755)
    subject = laid_out(tmp_path, "D types and switch")
    code, document = run(capsys, subject, "--python", sleeper, "--timeout", "0.5")
    assert code == 3
    assert document["interpreters"][0]["reason"] == "could not look: no answer within 0.5 s; it was stopped"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("A window alone", 1),
        ("B window and switch", 1),
        ("C types without switch", 1),
        ("D types and switch", 0),
        ("E all full", 0),
        ("starts at its depth", 0),
        ("speculators", 0),
        ("three types", 1),
        ("unknown model_type", 1),
    ],
)
def test_the_status_follows_the_findings(
    capsys: Capture, tmp_path: Path, case: str, code: int, version: str
) -> None:
    """Errors and warnings are 1, notes alone are 0; a refused file is a finding."""
    status, document = run(capsys, laid_out(tmp_path, case), *pythons(tmp_path, case, version))
    assert status == code
    assert bool([f for f in document["findings"] if f["severity"] != "note"]) == bool(code)


def test_a_refusal_is_a_parsed_result(capsys: Capture, tmp_path: Path) -> None:
    """The library's own message is the interpreter's reason, and every field says so."""
    _, document = run(capsys, laid_out(tmp_path, "three types"), *pythons(tmp_path, "three types", OLD))
    (interpreter,) = document["interpreters"]
    assert interpreter["reason"].startswith("ValueError: `num_hidden_layers` (5) must be equal")
    assert interpreter["ok"] is False
    assert {one["how"] for row in document["fields"] for one in row["parsed"].values()} == {"refused"}


def test_a_hole_is_held_against_the_target(capsys: Capture, tmp_path: Path) -> None:
    """With --target, a vocabulary that is the library's constant is an error that names the target's."""
    case = "vocabulary missing"
    target = CONFIGS / "qwen3.6-27b-target.json"
    _, document = run(capsys, laid_out(tmp_path, case), "--target", target, *pythons(tmp_path, case, NEW))
    (finding,) = document["findings"]
    assert (finding["severity"], finding["expected"], finding["found"]) == ("error", 248320, 151936)
    assert "class default of transformers 5.24.0 Qwen3Config" in finding["means"]


def test_absent_and_null_are_told_apart(capsys: Capture, tmp_path: Path) -> None:
    """A written null has a line; what is not in the file has none."""
    _, document = run(capsys, CLEAN, *pythons(tmp_path, CLEAN.name, NEW))
    rows = fields(document)
    null, absent = rows["/bos_token_id"], rows["/rope_parameters/rope_type"]
    assert (null["bytes"], null["in_bytes"], null["line"]) == (None, True, 11)
    assert (absent["bytes"], absent["in_bytes"], absent["line"]) == (None, False, None)
    (moved,) = rows["/rope_theta"]["parsed"].values()
    assert (moved["how"], moved["pointer"]) == ("moved", "/rope_parameters/rope_theta")


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        (b'{"a": 1, "a": 2}', ["json-duplicate-key"]),
        (b"", ["json-empty-file"]),
        (b'{"a": NaN}', ["json-nan"]),
    ],
)
def test_a_file_we_refuse_is_wrong_at_bytes(
    capsys: Capture, tmp_path: Path, content: bytes, ids: list[str]
) -> None:
    """What is no strict JSON object is a BYTES error; no interpreter is asked about it."""
    (tmp_path / "config.json").write_bytes(content)
    code, document = run(capsys, tmp_path, "--python", sys.executable)
    assert code == 1
    assert {finding["layer"] for finding in document["findings"]} == {"BYTES"}
    assert [f["id"] for f in document["findings"] if f["severity"] == "error"] == ids
    assert (document["fields"], document["interpreters"]) == ([], [])
    assert "parsed" in {entry["check"] for entry in document["not_looked"]}


@pytest.mark.parametrize(
    "options", [["gone"], [str(CLEAN), "--intent", "gone"], [str(CLEAN), "--target", "gone"]]
)
def test_a_missing_path_is_status_3(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """The subject, or an input named by an option, that is not there could not be looked at."""
    monkeypatch.chdir(tmp_path)
    code, document = run(capsys, *options)
    assert code == 3
    assert document["not_looked"]


@pytest.mark.parametrize(
    "options",
    [
        ["--timeout", "0"],
        ["--no-such-option"],
        ["--url", "http://127.0.0.1:1"],
        ["--records", "x"],
        ["--k", "3"],
    ],
)
def test_a_wrong_call_is_status_2(capsys: Capture, options: list[str]) -> None:
    """Usage errors are one JSON object too."""
    code, document = run(capsys, CLEAN, *options)
    assert (code, document["error"]["id"]) == (2, "usage")


def test_the_text_shows_the_three_layers(capsys: Capture, tmp_path: Path) -> None:
    """One line a field, equal items counted, the first wrong layer at its end, the library acquitted."""
    subject = laid_out(tmp_path, STALE)
    code, output = text(capsys, subject, "--intent", CLEAN, *pythons(tmp_path, STALE, NEW))
    assert code == 1
    lines = {line.split()[0]: line for line in output.splitlines() if line.startswith("/")}
    assert '[4 x "sliding_attention", "full_attention"] (l.29)' in lines["/layer_types"]
    assert '[5 x "full_attention"] (l.29)' in lines["/layer_types"]
    assert {pointer for pointer, line in lines.items() if line.endswith("BYTES")} == FIVE
    assert "transformers 5.24.0 keeps what the file says" in output
    assert len(lines) == len(
        fields(run(capsys, subject, "--intent", CLEAN, *pythons(tmp_path, STALE, NEW))[1])
    )


def test_only_what_is_not_the_same_everywhere(capsys: Capture, tmp_path: Path) -> None:
    """--changed leaves out the quiet fields and says how many they are."""
    subject = laid_out(tmp_path, STALE)
    options: list[str | Path] = [subject, "--intent", CLEAN, *pythons(tmp_path, STALE, OLD)]
    every = [line for line in text(capsys, *options)[1].splitlines() if line.startswith("/")]
    output = text(capsys, *options, "--changed")[1]
    shown = [line for line in output.splitlines() if line.startswith("/")]
    assert {line.split()[0] for line in shown} == FIVE
    assert f"{len(every) - len(shown)} further fields are the same at every layer looked at" in output


def test_the_text_blames_and_says_why(capsys: Capture, tmp_path: Path) -> None:
    """A library that changes what matters is named with the field, and the reason stands below the table."""
    case = "nested rope"
    code, output = text(capsys, laid_out(tmp_path, case), *pythons(tmp_path, case, *VERSIONS))
    assert code == 1
    assert "transformers 4.57.6 changes what a consumer sees: rope_theta (parsed-rope-ignored)" in output
    assert "transformers 5.24.0 keeps what the file says" in output
    assert "tried: written as /rope_theta the same value is taken" in output


def test_code_that_the_file_names_is_never_run(capsys: Capture, tmp_path: Path) -> None:
    """auto_map is named among what was not looked at."""
    case = "code in auto_map"
    subject = laid_out(tmp_path, case)
    (subject / "configuration_evil.py").write_text("open('/tmp/ran', 'w')")
    _, document = run(capsys, subject, *pythons(tmp_path, case, NEW))
    reasons = {entry["check"]: entry["reason"] for entry in document["not_looked"]}
    assert reasons["code of the checkpoint"] == (
        "auto_map names AutoConfig: configuration_evil.EvilConfig; it is never run here"
    )


def test_secrets_are_not_shown(capsys: Capture, tmp_path: Path) -> None:
    """A credential in a config leaves neither as text nor as JSON."""
    shutil.copyfile(CLEAN, tmp_path / "config.json")
    config = json.loads(CLEAN.read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "hf_token": "hf_verysecret"}) + "\n")
    for options in ([], ["--json"]):
        main(["views", str(tmp_path), "--intent", str(CLEAN), *options])
        assert "verysecret" not in capsys.readouterr().out
