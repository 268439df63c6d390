"""check and diff of host:/path over a real sshd: the same findings as here, strict keys, gaps by name."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpoint.build import tensors_of, write_shard
from draftproof.cli.main import main
from loopback import Sshd

pytestmark = [pytest.mark.ssh, pytest.mark.root]
CONFIGS = Path(__file__).resolve().parents[2] / "configs"
CLEAN = CONFIGS / "zlab-qwen3.6-27b-dflash.json"
STALE = CONFIGS / "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json"
TARGET = CONFIGS / "qwen3.6-27b-target.json"
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(sshd: Sshd, capsys: pytest.CaptureFixture[str]) -> Run:
    """A call with --json through the test's client configuration: exit status and object."""

    def call(*argv: object) -> tuple[int, dict[str, Any]]:
        code = main([*map(str, argv), "--ssh-config", str(sshd.config), "--json"])
        output = capsys.readouterr()
        document: dict[str, Any] = json.loads(output.out)
        return code, document

    return call


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    """A stale drafter with a tokenizer beside it, in a directory whose name a shell would mangle."""
    directory = tmp_path / "a $HOME 'dir'"
    directory.mkdir()
    shutil.copyfile(STALE, directory / "config.json")
    vocabulary = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "added_tokens": []}
    (directory / "tokenizer.json").write_text(json.dumps(vocabulary))
    return directory


def told(document: dict[str, Any]) -> set[tuple[str, str | None, int | None]]:
    """What a report says, wherever the file is."""
    return {(f["id"], f["pointer"], f["line"]) for f in document["findings"]}


@pytest.mark.parametrize("name", ["loop", "noisy", "bare"])
def test_the_same_findings_as_here(name: str, run: Run, drafter: Path) -> None:
    """Config and tokenizer read there, with a Python there or without: told exactly as here."""
    options = ("--intent", CLEAN, "--target", TARGET)
    code, there = run("check", f"{name}:{drafter}", *options)
    assert (code, told(there)) == (1, told(run("check", drafter, *options)[1]))
    drift = [f for f in there["findings"] if f["id"] == "intent-drift"]
    assert {f["where"] for f in drift} == {
        f"{name}:{drafter}/config.json#{f['pointer']} line {f['line']}" for f in drift
    }
    assert there["facts"]["drafter"] is not None


def test_what_is_not_fetched_is_named(run: Run, drafter: Path) -> None:
    """Weights, hub records and code stay on the machine: each of their checks says so."""
    document = run("check", f"loop:{drafter}")[1]
    far = f"loop:{drafter}: of another machine's files only config, tokenizer and the headers of weights"
    far += " are read"
    checks = {entry["check"] for entry in document["not_looked"] if entry["reason"] == far}
    assert "code, templates and pickles" in checks
    (files,) = [e for e in document["not_looked"] if e["check"] == "weight files"]
    assert files["reason"] == f"no *.safetensors file in loop:{drafter}"


def test_the_headers_of_weights_are_read_there(run: Run, drafter: Path) -> None:
    """A shard cut short, foreign names: told as here; what needs the values says that it could not look."""
    write_shard(drafter / "model.safetensors", tensors_of({"fc.weight": (8, 16), "strange": (4, 4)}))
    with (drafter / "model.safetensors").open("r+b") as stream:
        stream.truncate(200)
    there, here = run("check", f"loop:{drafter}")[1], run("check", drafter)[1]
    wanted = {"shard-truncated", *(f["id"] for f in here["findings"] if f["layer"] == "BYTES")}
    found = {f["id"]: f["where"] for f in there["findings"]}
    assert wanted - found.keys() <= {"tensor-zeros"}
    assert found["shard-truncated"] == f"loop:{drafter}/model.safetensors"
    assert any("headers of weights are read" in entry["reason"] for entry in there["not_looked"])


def test_a_tokenizer_there(run: Run, drafter: Path) -> None:
    """``--tokenizer host:/dir`` is read as a directory here would be; none there is said."""
    shutil.copyfile(CLEAN, drafter / "config.json")
    (drafter / "sub").mkdir()
    for folder, is_there in ((drafter, True), (drafter / "sub", False)):
        there = run("check", CLEAN, "--tokenizer", f"loop:{folder}")[1]
        here = run("check", CLEAN, "--tokenizer", folder)[1]
        assert told(there) == told(here)
        lacks = [e for e in there["not_looked"] if e["check"] == "tokenizer named by --tokenizer"]
        assert (lacks == []) == is_there


def test_a_file_and_its_directory_and_all_sides_there(run: Run, drafter: Path, tmp_path: Path) -> None:
    """The config itself may be named, and intent and target may be on the machine too."""
    shutil.copyfile(CLEAN, tmp_path / "intent.json")
    shutil.copyfile(TARGET, tmp_path / "target.json")
    options = ("--intent", f"loop:{tmp_path}/intent.json", "--target", f"loop:{tmp_path}/target.json")
    code, document = run("check", f"loop:{drafter}/config.json", *options)
    assert (code, sum(f["id"] == "intent-drift" for f in document["findings"])) == (1, 5)


def test_a_damaged_file_there_is_named_as_here(run: Run, drafter: Path) -> None:
    """The bytes are judged here: a cut file is json-truncated at its place."""
    (drafter / "config.json").write_bytes(STALE.read_bytes()[:700])
    code, document = run("check", f"loop:{drafter}")
    assert (code, told(document)) == (1, told(run("check", drafter)[1]))
    assert document["findings"][0]["where"].startswith(f"loop:{drafter}/config.json#")


@pytest.mark.parametrize(
    ("name", "reason"), [("stranger", "host-key-unknown"), ("changed", "host-key-changed"), ("shut", "login")]
)
def test_a_machine_that_is_not_reached_is_exit_three(
    name: str, reason: str, run: Run, drafter: Path, tmp_path: Path
) -> None:
    """An unknown key, another key, no login: the reason is the error's id, and nothing is called fine."""
    shutil.copyfile(CLEAN, drafter / "config.json")
    assert run("expect", CLEAN, f"loop:{drafter}/config.json", "--ledger", tmp_path / "ledger")[0] == 0
    code, document = run("check", f"{name}:{drafter}", "--pid", 1)
    assert (code, document["findings"]) == (3, [])
    assert reason in document["error"]["id"]
    assert run("diff", CLEAN, f"{name}:{drafter}")[0] == 3


def test_a_process_there(run: Run, drafter: Path) -> None:
    """A process of the machine is asked there; by the shell, where there is no Python to ask it with."""
    shutil.copyfile(CLEAN, drafter / "config.json")
    time.sleep(0.1)
    with subprocess.Popen(["sleep", "60"]) as process:
        time.sleep(0.1)
        assert run("check", f"loop:{drafter}", "--pid", process.pid)[0] == 0
        shutil.copyfile(STALE, drafter / "config.json")
        answers = {host: run("check", f"{host}:{drafter}", "--pid", process.pid) for host in ("loop", "bare")}
        process.kill()
    for host, (code, document) in answers.items():
        told = [(f["id"], f["where"]) for f in document["findings"] if f["id"].startswith("consumer")]
        assert (code, told) == (1, [("consumer-older-than-file", f"{host}:{drafter}/config.json")])


def test_what_is_missing_there_is_exit_three(run: Run, tmp_path: Path) -> None:
    """No directory, and a directory without a config."""
    for path in (tmp_path / "none", tmp_path):
        code, document = run("check", f"loop:{path}")
        assert (code, document["error"]["found"]) == (3, "No such file or directory")


def test_the_ledger_knows_the_machine(run: Run, drafter: Path, tmp_path: Path) -> None:
    """Announced for host:/path and not written: the cause is told, for the directory and for the file."""
    ledger = ("--ledger", tmp_path / "ledger")
    run("expect", CLEAN, f"loop:{drafter}/config.json", *ledger)
    for subject in (f"loop:{drafter}", f"loop:{drafter}/config.json"):
        code, document = run("check", subject, *ledger)
        (finding,) = [f for f in document["findings"] if "cause" in f]
        assert (code, finding["cause"]) == (1, "never_took_effect")
        assert finding["where"] == f"loop:{drafter}/config.json"
    shutil.copyfile(CLEAN, drafter / "config.json")
    assert run("check", f"loop:{drafter}", *ledger)[0] == 0
    shutil.copyfile(STALE, drafter / "config.json")
    document = run("check", f"loop:{drafter}", *ledger)[1]
    assert [f["cause"] for f in document["findings"] if "cause" in f] == ["reverted"]


def test_diff_of_two_machines(run: Run, drafter: Path) -> None:
    """Either side, or both, may be there; the origin is shown as it was named."""
    here = run("diff", CLEAN, drafter)[1]["differences"]
    for a, b in ((CLEAN, f"loop:{drafter}"), (f"loop:{CLEAN}", f"loop:{drafter}/config.json")):
        code, document = run("diff", a, b)
        assert (code, document["differences"]) == (1, here)
        assert document["b"]["path"] == f"loop:{drafter}/config.json"
