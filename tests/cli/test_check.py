"""``draftproof check`` as a user calls it: its JSON contract, its exit codes, its text."""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from draftproof.config.diff import diff

CONFIGS = Path(__file__).parents[1] / "configs"
CLEAN = CONFIGS / "zlab-qwen3.6-27b-dflash.json"
STALE = CONFIGS / "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json"
TARGET = CONFIGS / "qwen3.6-27b-target.json"
FIVE = {
    "/layer_types": 29,
    "/sliding_window": 45,
    "/dflash_config/mask_token_id": 13,
    "/dflash_config/target_layer_ids": 14,
    "/bos_token_id": 11,
}
Capture = pytest.CaptureFixture[str]


def run(capsys: Capture, *argv: str | Path) -> tuple[int, dict[str, Any]]:
    """The exit status and the one JSON object of standard output."""
    code = main(["check", *map(str, argv), "--json"])
    output = capsys.readouterr()
    assert output.err == ""
    document: dict[str, Any] = json.loads(output.out)
    return code, document


def test_the_keys_are_the_contract(capsys: Capture) -> None:
    """The contract's five keys, then verdict, counts, exit and engine; each finding has its nine parts."""
    code, document = run(capsys, STALE, "--intent", CLEAN, "--target", TARGET)
    assert code == 1
    keys = ["schema", "subject", "findings", "not_looked", "facts", "verdict", "counts", "exit", "engine"]
    assert list(document) == keys
    assert (document["verdict"], document["exit"], document["engine"]) == ("faults found", 1, None)
    told = [finding["severity"] for finding in document["findings"]]
    assert document["counts"] == {name: told.count(name) for name in ("error", "warning", "note")}
    assert document["schema"] == "draftproof.check/1"
    assert document["subject"] == str(STALE)
    parts = {"id", "severity", "layer", "subject", "expected", "found", "where", "means", "next"}
    for finding in document["findings"]:
        assert parts <= finding.keys()
        assert finding["severity"] in {"error", "warning", "note"}
    for entry in document["not_looked"]:
        assert entry.keys() == {"check", "reason"}
    assert document["facts"].keys() == {"drafter", "target"}
    assert document["facts"]["drafter"]["schema"] == "draftproof.facts/1"
    assert document["facts"]["target"]["role"] == "target"


def test_the_case_study_names_the_five_fields(capsys: Capture) -> None:
    """The stale file against its intent: exactly five fields, with pointer and line, at the bytes."""
    code, document = run(capsys, STALE, "--intent", CLEAN)
    drifted = {f["pointer"]: f["line"] for f in document["findings"] if f["id"] == "intent-drift"}
    assert (code, drifted) == (1, FIVE)
    assert {f["pointer"] for f in document["findings"]} == FIVE.keys()
    assert {f["layer"] for f in document["findings"]} == {"BYTES"}
    severities = {f["pointer"]: f["severity"] for f in document["findings"] if f["id"] == "intent-drift"}
    assert severities.pop("/bos_token_id") == "warning"
    assert severities["/sliding_window"] == "error"


def test_a_clean_pair_exits_0(capsys: Capture) -> None:
    """The published drafter beside its target holds."""
    code, document = run(capsys, CLEAN, "--target", TARGET, "--intent", CLEAN)
    assert (code, document["findings"]) == (0, [])


def test_a_missing_subject_is_3_and_one_object(capsys: Capture, tmp_path: Path) -> None:
    """A path that is not there could not be looked at: nothing found, the reason told, exit 3."""
    code, document = run(capsys, tmp_path / "nothing")
    assert code == 3
    assert document["findings"] == []
    assert document["error"]["id"] == "could-not-look"
    assert any("No such file" in entry["reason"] for entry in document["not_looked"])


def test_a_directory_without_a_config_is_3(capsys: Capture, tmp_path: Path) -> None:
    """A directory that holds no config.json is not "fine"."""
    code, document = run(capsys, tmp_path)
    assert (code, document["findings"]) == (3, [])


@pytest.mark.parametrize("option", ["--target", "--intent", "--tokenizer"])
def test_a_missing_input_named_by_an_option_is_3(capsys: Capture, tmp_path: Path, option: str) -> None:
    """What an option names must be readable; what is merely absent changes nothing."""
    code, document = run(capsys, CLEAN, option, tmp_path / "nothing")
    assert (code, document["findings"]) == (3, [])


def test_findings_beat_could_not_look(capsys: Capture, tmp_path: Path) -> None:
    """1 beats 3."""
    code, _ = run(capsys, STALE, "--target", tmp_path / "nothing")
    assert code == 1


def test_refused_json_is_an_error_at_the_bytes(capsys: Capture, tmp_path: Path) -> None:
    """A file that we refuse is a BYTES error with exit 1; the rules that could not run say so."""
    (tmp_path / "config.json").write_text(CLEAN.read_text("utf-8") + "EOF\n", "utf-8")
    code, document = run(capsys, tmp_path)
    assert code == 1
    assert {(f["severity"], f["layer"]) for f in document["findings"]} == {("error", "BYTES")}
    assert any("not one strict JSON object" in entry["reason"] for entry in document["not_looked"])


def test_a_refused_intent_is_1_and_a_refused_target_too(capsys: Capture, tmp_path: Path) -> None:
    """JSON that we refuse is a finding wherever it stands; a note about it would be silence."""
    bad = tmp_path / "bad.json"
    bad.write_text('{"a": 1,}', "utf-8")
    code, document = run(capsys, CLEAN, "--intent", bad)
    assert (code, [f["id"] for f in document["findings"]]) == (1, ["intent-refused"])
    code, document = run(capsys, CLEAN, "--target", bad)
    assert (code, [f["id"] for f in document["findings"]]) == (1, ["json-trailing-comma"])


def test_a_byte_order_mark_is_named_with_and_without_intent(capsys: Capture, tmp_path: Path) -> None:
    """A BOM refuses the file, and against the intended file it is what differs."""
    (tmp_path / "config.json").write_bytes(b"\xef\xbb\xbf" + CLEAN.read_bytes())
    _, alone = run(capsys, tmp_path)
    _, beside = run(capsys, tmp_path, "--intent", CLEAN)
    assert [f["id"] for f in alone["findings"]] == ["json-utf8-bom"]
    assert {f["id"] for f in beside["findings"]} == {"json-utf8-bom", "intent-line-endings"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"sliding_window": 2048,', '"sliding_window": "2048",', "another JSON type"),
        ('"sliding_window": 2048,', '"sliding_window": 2048.0,', "another JSON type"),
        ('"sliding_window": 2048,', '"sliding_window": null,', "a written null is a value"),
        ('  "sliding_window": 2048,\n', "", "absent on disk"),
        ('"sliding_window": 2048,', '"sliding_window": 1024,', "another value"),
    ],
)
def test_drift_tells_null_absent_and_type_apart(
    capsys: Capture, tmp_path: Path, old: str, new: str, words: str
) -> None:
    """Absent, null and another type are three different things, and said so."""
    (tmp_path / "config.json").write_text(CLEAN.read_text("utf-8").replace(old, new), "utf-8")
    code, document = run(capsys, tmp_path, "--intent", CLEAN)
    drift = [f for f in document["findings"] if f["id"] == "intent-drift"]
    assert code == 1
    assert [f["pointer"] for f in drift] == ["/sliding_window"]
    assert words in drift[0]["means"]


def test_an_ordinary_model_beside_a_target_is_a_draft_model(capsys: Capture, tmp_path: Path) -> None:
    """A subject that is a causal language model is held against the target's vocabulary."""
    shutil.copy(CONFIGS / "qwen3.5-0.8b-target.json", tmp_path / "config.json")
    code, document = run(capsys, tmp_path, "--target", TARGET)
    assert code == 0
    text = (
        (tmp_path / "config.json").read_text("utf-8").replace('"vocab_size": 248320', '"vocab_size": 32000')
    )
    (tmp_path / "config.json").write_text(text, "utf-8")
    code, document = run(capsys, tmp_path, "--target", TARGET)
    assert (code, [f["id"] for f in document["findings"]]) == (1, ["vocabulary-mismatch"])
    assert document["facts"]["drafter"] is not None

    assert document["facts"]["drafter"]["method"] == "draft_model"
    assert document["facts"]["drafter"]["role"] == "drafter"
    assert "derived" in document["facts"]["drafter"]["sources"]["method"]


def test_a_credential_that_drifts_is_told_and_not_shown(capsys: Capture, tmp_path: Path) -> None:
    """That a secret differs is a finding; the secret itself is in no output."""
    value = json.loads(CLEAN.read_text("utf-8")) | {"hf_token": "hf_abcdef", "cloud": {"api_key": "k3y"}}
    (tmp_path / "config.json").write_text(json.dumps(value), "utf-8")
    main(["check", str(tmp_path), "--intent", str(CLEAN), "--json"])
    output = capsys.readouterr().out
    assert "/hf_token" in output
    assert "hf_abcdef" not in output
    assert "k3y" not in output


def test_a_file_beside_a_tokenizer_is_not_taken_for_it(capsys: Capture, tmp_path: Path) -> None:
    """A path that is not there is missing, whatever stands beside it."""
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {}}}', "utf-8")
    code, _ = run(capsys, CLEAN, "--tokenizer", tmp_path / "nothing.json")
    assert code == 3


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b"])
def test_a_path_that_no_file_system_takes_is_3(capsys: Capture, name: str) -> None:
    """A name too long, or with a NUL inside, could not be looked at; it is no fault of ours."""
    code, document = run(capsys, name)
    assert (code, document["findings"]) == (3, [])


def test_digests_are_of_every_weight_file(capsys: Capture, tmp_path: Path) -> None:
    """--digests adds sha256 of each shard, and is silent where there is none."""
    shutil.copy(CLEAN, tmp_path / "config.json")
    header = b'{"fc.weight":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}   '
    data = len(header).to_bytes(8, "little") + header + b"\1\2\3\4"
    (tmp_path / "model.safetensors").write_bytes(data)
    _, document = run(capsys, tmp_path, "--digests")
    (digest,) = document["digests"]
    assert digest["sha256"] == hashlib.sha256(data).hexdigest()
    assert digest["stable"] is True
    _, document = run(capsys, CLEAN, "--digests")
    assert document["digests"] == []


def test_impossible_numbers_end_in_seconds(capsys: Capture, tmp_path: Path) -> None:
    """A depth of 2**70 is a fault of the file: told, and no table of that length is built."""
    text = CLEAN.read_text("utf-8").replace('"num_hidden_layers": 5', f'"num_hidden_layers": {2**70}')
    (tmp_path / "config.json").write_text(text, "utf-8")
    header = b'{"fc.weight":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}   '
    data = len(header).to_bytes(8, "little") + header + b"\1\2\3\4"
    (tmp_path / "model.safetensors").write_bytes(data)
    code, document = run(capsys, tmp_path)
    assert code == 1
    assert "field-invalid" in {f["id"] for f in document["findings"]}
    assert any("more than any model has" in entry["reason"] for entry in document["not_looked"])


def test_a_wrong_engine_is_usage(capsys: Capture) -> None:
    """An engine that cannot be understood is a wrong call, and with --json still one object."""
    code = main(["check", str(CLEAN), "--engine", "vllm", "--json"])
    assert code == 2
    assert json.loads(capsys.readouterr().out)["error"]["id"] == "usage"


def test_a_named_engine_may_answer_at_effective(capsys: Capture) -> None:
    """Only with an engine named does a finding stand above the bytes."""
    _, named = run(capsys, CLEAN, "--engine", "vllm@0.20.1")
    _, silent = run(capsys, CLEAN)
    assert {f["layer"] for f in named["findings"]} == {"EFFECTIVE"}
    assert silent["findings"] == []


def test_the_text_says_the_same(capsys: Capture) -> None:
    """Text names every finding with its five lines, and ends with the verdict."""
    code = main(["check", str(STALE), "--intent", str(CLEAN)])
    output = capsys.readouterr().out
    assert code == 1
    assert output.startswith("BYTES\n")
    assert output.count("error intent-drift") == 4
    assert "  where  " in output
    assert "not looked at: " in output
    assert output.rstrip().splitlines()[-1].startswith(f"{STALE.name}: faults found: 4 errors, ")
    assert f"  next   draftproof write {CLEAN} {STALE}\n" in output


def test_foreign_text_cannot_drive_the_terminal(capsys: Capture, tmp_path: Path) -> None:
    """An escape sequence inside a config is shown as its escape."""
    value = json.loads(CLEAN.read_text("utf-8"))
    value["architectures"] = ["DFlash\x1b[2JDraftModel"]
    assert diff(value, json.loads(CLEAN.read_text("utf-8")))
    (tmp_path / "config.json").write_text(json.dumps(value), "utf-8")
    main(["check", str(tmp_path), "--intent", str(CLEAN)])
    assert "\x1b" not in capsys.readouterr().out


def test_prose_is_wrapped_and_paths_are_not(tmp_path: Path, capsys: Capture) -> None:
    """Lines of prose end at 100 columns; the line that says where is whole, for eyes and for grep."""
    home = tmp_path / ("a" * 120)
    home.mkdir()
    document = json.loads((CONFIGS / "zlab-qwen3.6-27b-dflash.json").read_text("utf-8"))
    document["dflash_config"]["mask_token_id"] = 248064
    (home / "config.json").write_text(json.dumps(document) + "\n", "utf-8")
    assert main(["check", str(home)]) == 1
    lines = capsys.readouterr().out.splitlines()
    where = [line for line in lines if line.startswith("  where  ")]
    assert where == [f"  where  {home}/config.json#/dflash_config/mask_token_id line 1"]
    assert all(len(line) <= 100 or home.name in line for line in lines)


def test_equal_neighbours_of_a_list_are_counted(tmp_path: Path, capsys: Capture) -> None:
    """Layer types are short to read, and their number is kept."""
    document = json.loads((CONFIGS / "zlab-qwen3.6-27b-dflash.json").read_text("utf-8"))
    intent = tmp_path / "intent.json"
    intent.write_text(json.dumps(document), "utf-8")
    document["layer_types"] = ["full_attention"] * 5
    (tmp_path / "config.json").write_text(json.dumps(document), "utf-8")
    assert main(["check", str(tmp_path), "--intent", str(intent)]) == 1
    told = " ".join(capsys.readouterr().out.split())  # lines are wrapped where they get long
    assert '4 x "sliding_attention", "full_attention"], found [5 x "full_attention"]' in told


def test_a_clean_file_is_not_said_to_be_more_than_looked_at(capsys: Capture) -> None:
    """The last line says in how many checks no fault was found, and how many could not look."""
    assert main(["check", str(CLEAN)]) == 0
    output = capsys.readouterr().out
    _, document = run(capsys, CLEAN)
    lacking = len(document["not_looked"])
    last = output.rstrip().splitlines()[-1]
    assert document["verdict"] == "no fault found"
    assert last.startswith(f"{CLEAN.name}: no fault found in ")
    assert last.endswith(f"; {lacking} not looked at")
    looked, total = map(int, last.split(" in ")[1].split(" checks")[0].split(" of "))
    assert looked + lacking == total


def test_a_subject_that_is_not_there_is_four_lines(capsys: Capture, tmp_path: Path) -> None:
    """No check is listed where all of them lack the same thing; what to do next is said."""
    assert main(["check", str(tmp_path / "nothing")]) == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 4
    assert "  next   " in output.err


@pytest.mark.parametrize("option", ["--target", "--intent", "--tokenizer"])
def test_an_empty_option_is_not_an_absent_one(capsys: Capture, option: str) -> None:
    """A shell's unset variable names nothing that can be read: 3, never "no fault found"."""
    code, document = run(capsys, CLEAN, option, "")
    assert (code, document["findings"], document["verdict"]) == (3, [], "could not look")
    assert any("an empty path" in entry["reason"] for entry in document["not_looked"])


def test_an_empty_subject_and_an_empty_engine(capsys: Capture) -> None:
    """An empty subject is not the current directory; an empty engine is a wrong call."""
    assert run(capsys, "")[0] == 3
    assert main(["check", str(CLEAN), "--engine", "", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["id"] == "usage"


@pytest.mark.parametrize(("subject", "said"), [(TARGET, "look swapped"), (CLEAN, "")])
def test_a_drafter_is_no_target(capsys: Capture, subject: Path, said: str) -> None:
    """--target that names a drafter is an error; with a language model before it, the two look swapped."""
    code, document = run(capsys, subject, "--target", CLEAN)
    (finding,) = [f for f in document["findings"] if f["severity"] == "error"]
    assert (code, finding["id"], finding["layer"]) == (1, "target-is-a-drafter", "BYTES")
    assert said in finding["means"]
    assert not said or finding["next"] == f"draftproof check {CLEAN} --target {TARGET}"


def test_a_target_that_is_nothing_is_an_error(capsys: Capture, tmp_path: Path) -> None:
    """What --target names is held to the same as the subject: unrecognised is 1."""
    (tmp_path / "config.json").write_text('{"a": 1}\n', "utf-8")
    code, document = run(capsys, CLEAN, "--target", tmp_path)
    assert (code, [f["id"] for f in document["findings"]]) == (1, ["target-unrecognised"])


def test_secrets_at_any_depth_are_not_shown(capsys: Capture, tmp_path: Path) -> None:
    """An object or a list below a secret key is masked whole, in JSON and in text."""
    value = json.loads(CLEAN.read_text("utf-8"))
    value |= {"password": {"a": "hf_inner"}, "hf_token": ["hf_listed", {"b": "hf_deep"}]}
    (tmp_path / "config.json").write_text(json.dumps(value), "utf-8")
    for argv in (["--json"], []):
        assert main(["check", str(tmp_path), "--intent", str(CLEAN), *argv]) == 1
        output = capsys.readouterr().out
        assert "password" in output
        assert not any(secret in output for secret in ("hf_inner", "hf_listed", "hf_deep"))


def test_a_repository_folder_is_the_snapshot_that_main_names(capsys: Capture, tmp_path: Path) -> None:
    """models--org--name stands for the snapshot of refs/main, as every loader takes it."""
    repo = tmp_path / "models--org--name"
    (repo / "refs").mkdir(parents=True)
    (repo / "snapshots" / "abc").mkdir(parents=True)
    (repo / "refs" / "main").write_text("abc", "utf-8")
    shutil.copy(CLEAN, repo / "snapshots" / "abc" / "config.json")
    code, document = run(capsys, repo)
    assert code in (0, 1)
    assert document["facts"]["drafter"]["method"] == "dflash"
    (repo / "refs" / "main").write_text("def", "utf-8")
    assert run(capsys, repo)[0] == 3


_AS_NOBODY = """
import os, sys
from draftproof.cli.main import main
clean, *argv = sys.argv[1:]
sys.stdout = open(os.devnull, "w")
main(["check", clean, "--json"])  # everything is imported before the user changes
sys.stdout = sys.__stdout__
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(main(["check", *argv, "--json"]))
"""


@pytest.mark.parametrize("mode", [0o644, 0o311])
def test_a_directory_that_may_not_be_entered_or_listed(mode: int) -> None:
    """One object of check, findings kept, whichever half of the permission is missing; root steps down."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        home.chmod(0o755)
        closed = home / "closed"
        closed.mkdir()
        for path in (closed / "config.json", home / "stale.json"):
            shutil.copy(STALE, path)
        closed.chmod(mode)
        stale = home / "stale.json"
        for argv in ([closed], [stale, "--target", closed], [stale, "--tokenizer", closed]):
            command = [sys.executable, "-c", _AS_NOBODY, str(CLEAN), *map(str, argv)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            document = json.loads(done.stdout)
            assert document["schema"] == "draftproof.check/1", document
            assert (done.returncode == 1) == any(f["severity"] != "note" for f in document["findings"])
            assert done.returncode in (1, 3), document
            assert any("ermission" in entry["reason"] for entry in document["not_looked"])
        closed.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "is_outside"),
    [("0.20.1", False), ("0.33.0", False), ("0.19.0", True), ("0.33.1", True), ("0.34", True), ("1.0", True)],
)
def test_an_engine_is_said_to_be_held_against(capsys: Capture, version: str, *, is_outside: bool) -> None:
    """The engine stands in the output; a version whose source was not read is outside, and never fine."""
    code, document = run(capsys, CLEAN, "--engine", f"vllm@{version}")
    assert (code in (1, 3)) if is_outside else (code in (0, 1))
    assert document["engine"] == f"vllm {version}"
    assert any("was read in source" in e["reason"] for e in document["not_looked"]) == is_outside
    assert not any("--engine" in f["next"] for f in document["findings"])
    main(["check", str(CLEAN), "--engine", f"vllm@{version}"])
    assert f"held against vllm {version}" in capsys.readouterr().out


def test_a_missing_last_newline_is_told_where_it_was_meant(capsys: Capture, tmp_path: Path) -> None:
    """Every json.dump leaves it out: a note only beside an intended file that has it."""
    (tmp_path / "config.json").write_text(CLEAN.read_text("utf-8").rstrip("\n"), "utf-8")
    intent = tmp_path / "intent.json"
    intent.write_text(CLEAN.read_text("utf-8").rstrip("\n") + "\n", "utf-8")
    assert run(capsys, tmp_path)[1]["findings"] == []
    told = {f["id"] for f in run(capsys, tmp_path, "--intent", intent)[1]["findings"]}
    assert "json-no-final-newline" in told


def test_a_key_of_megabytes_is_told_by_its_beginning(capsys: Capture, tmp_path: Path) -> None:
    """Unknown keys are cut and counted: the answer stays small."""
    value = json.loads(CLEAN.read_text("utf-8")) | {f"zz{i}": i for i in range(1000)} | {"y" * 10**6: 1}
    (tmp_path / "config.json").write_text(json.dumps(value), "utf-8")
    _, document = run(capsys, tmp_path)
    (unknown,) = [f for f in document["findings"] if f["id"] == "field-unknown"]
    assert "more" in unknown["found"][-1]
    assert len(json.dumps(unknown)) < 20_000


@pytest.mark.parametrize("argv", [["--json"], []])
def test_a_config_that_links_out_is_named_and_not_quoted(
    capsys: Capture, tmp_path: Path, argv: list[str]
) -> None:
    """A link to somebody's key file must not bring its words into a log; a link to a config is followed."""
    (tmp_path / "secret.txt").write_text("{" + chr(34) + "k: s3cr3t w0rds\n", "utf-8")
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").symlink_to(tmp_path / "secret.txt")
    assert main(["check", str(model), *argv]) == 1
    output = capsys.readouterr().out
    assert "config-link-outside" in output
    assert "s3cr3t" not in output
    (model / "config.json").unlink()
    (model / "config.json").symlink_to(CLEAN)
    assert main(["check", str(model), *argv]) == 0
    assert "config-link-outside" not in capsys.readouterr().out
