"""draftproof render: the form alone on standard output, reasons and losses beside it, nothing overwritten."""

import json
from pathlib import Path

import pytest

from draftproof.cli.main import main

CONFIGS = Path(__file__).parents[1] / "configs"


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan for a drafter with windows."""
    path = tmp_path / "plan.toml"
    config = CONFIGS / "zlab-qwen3.6-27b-dflash.json"
    path.write_text(
        f'[serve]\nmethod = "dflash"\ntarget = "/m/t"\ndrafter = "/m/d"\ndrafter_config = "{config}"\n'
    )
    return path


def test_the_form_is_all_of_standard_output(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets JSON; every value's reason goes to people."""
    assert main(["render", "vllm", str(plan), "--engine-version", "0.33.0"]) == 0
    output = capsys.readouterr()
    (command,) = json.loads(output.out)
    assert command["argv"][:2] == ["vllm", "serve"]
    assert "num_speculative_tokens = 15" in output.err
    assert "lost" not in output.err


def test_losses_are_told_and_exit_1(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The case study's version: windows are lost, taps are mended by a file beside."""
    assert main(["render", "vllm", str(plan), "--engine-version", "0.20.1", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert {loss["about"] for loss in document["losses"]} >= {"layer_types", "sliding_window"}
    assert document["drafter_config"] == {"name": "drafter/config.json", "replaces": "/m/d/config.json"}
    (written,) = [file for file in document["files"] if file["name"] == "drafter/config.json"]
    assert json.loads(written["content"])["eagle_aux_hidden_state_layer_ids"] == [2, 17, 32, 47, 62]


def test_files_are_written_new_or_not_at_all(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second time nothing is replaced, and that is an error."""
    out = tmp_path / "out"
    argv = ["render", "vllm", str(plan), "--engine-version", "0.20.1", "--format", "shell", "--out", str(out)]
    assert main(argv) == 1
    assert (out / "serve.sh").stat().st_mode & 0o111
    assert json.loads((out / "drafter/config.json").read_text())["block_size"] == 16
    (out / "serve.sh").write_text("mine")
    assert main(argv) == 1
    assert "File exists" in capsys.readouterr().err
    assert (out / "serve.sh").read_text() == "mine"


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["vllm", "PLAN"], 2, "none named"),
        (["vllm", "PLAN", "--engine-version", "new"], 2, "'new'"),
        (["vllm", "PLAN", "--engine-version", "0.33.0", "--format", "lws"], 2, "several nodes"),
        (["sglang", "PLAN", "--engine-version", "0.5.10"], 1, "0.5.11"),
        (["vllm", "PLAN", "--engine-version", "0.50.0"], 3, "not looked at"),
        (["vllm", "nowhere.toml", "--engine-version", "0.33.0"], 3, "No such file"),
        (["magic", "PLAN"], 2, "magic"),
    ],
)
def test_each_end_has_its_exit(
    plan: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, words: str
) -> None:
    """Usage, refusal, and what could not be looked at are three things."""
    assert main(["render", *(str(plan) if part == "PLAN" else part for part in argv)]) == code
    assert words in capsys.readouterr().err
