"""cli.generate: what is printed is what was generated, and every bad call has its exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from draftproof.cli.main import main

needs_torch = pytest.mark.engine


@pytest.fixture(scope="session")
def tiny_dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny dense checkpoint with a byte-level tokenizer and a chat template."""
    pytest.importorskip("torch", reason="the engine extra is not installed")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415 - the extra may be missing

    from draftproof.engine.proof.tiny import write_tiny_target  # noqa: PLC0415 - the same

    folder = tmp_path_factory.mktemp("cli") / "dense"
    write_tiny_target(folder, "dense")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())[:127]
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"chat_template": "{{ messages[0].content }}<|end|>", "eos_token": "<|end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and standard output of one command."""
    code = main(["generate", *arguments])
    return code, capsys.readouterr().out


@needs_torch
def test_json_has_the_fields_promised(tiny_dense: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids in, ids out: no text without a tokenizer, no acceptance without a draft."""
    code, out = call(
        capsys,
        "--target",
        str(tiny_dense),
        "--prompt-ids",
        "1,2,3",
        "--max-new-tokens",
        "9",
        "--ignore-eos",
        "--json",
    )
    document = json.loads(out)
    assert code == 0
    assert list(document) == ["schema", "token_ids", "text", "finish", "acceptance", "verify", "seconds"]
    assert document["schema"] == "draftproof.generation/1"
    assert len(document["token_ids"]) == 9
    assert document["text"] is None
    assert document["acceptance"] is None
    assert document["finish"] == "length"
    assert set(document["seconds"]) == {"prefill", "decode"}


@needs_torch
def test_drafted_ids_are_the_plain_ones_and_tau_is_ids_over_steps(
    tiny_dense: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """n-gram drafting changes the steps and not the ids."""
    shared = (
        "--target",
        str(tiny_dense),
        "--prompt-ids",
        "1,2,3,1,2",
        "--dtype",
        "float64",
        "--ignore-eos",
        "--json",
    )
    plain = json.loads(call(capsys, *shared)[1])
    drafted = json.loads(call(capsys, *shared, "--method", "ngram")[1])
    assert drafted["token_ids"] == plain["token_ids"]
    found = drafted["acceptance"]
    assert set(found) == {"tau", "rate", "per_position", "steps"}
    assert found["tau"] == len(drafted["token_ids"]) / found["steps"]


@needs_torch
def test_the_config_ends_a_text_unless_told_not_to(
    tiny_dense: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The target's eos_token_id is the last token; --ignore-eos goes past it."""
    shared = ("--target", str(tiny_dense), "--prompt-ids", "9,8", "--json", "--max-new-tokens", "30")
    free = json.loads(call(capsys, *shared, "--ignore-eos")[1])["token_ids"]
    for file in tiny_dense.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tiny_dense / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"eos_token_id": [free[7], 1]}))
    stopped = json.loads(call(capsys, "--target", str(tmp_path), *shared[2:])[1])
    cut = min(free.index(token) for token in (free[7], 1) if token in free)
    assert stopped["token_ids"] == free[: cut + 1]
    assert stopped["finish"] == "stop"


@needs_torch
def test_generation_config_is_used_only_when_asked(
    tiny_dense: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sampling temperature in the file changes nothing by itself."""
    for file in tiny_dense.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "generation_config.json").write_text('{"do_sample": true, "temperature": 3.0, "top_k": 50}\n')
    shared = ("--prompt-ids", "9,8", "--json", "--ignore-eos", "--max-new-tokens", "30")
    plain = json.loads(call(capsys, "--target", str(tiny_dense), *shared)[1])["token_ids"]
    beside = json.loads(call(capsys, "--target", str(tmp_path), *shared)[1])["token_ids"]
    asked = json.loads(call(capsys, "--target", str(tmp_path), *shared, "--generation-config")[1])[
        "token_ids"
    ]
    greedy = ("--generation-config", "--temperature", "0")
    over = json.loads(call(capsys, "--target", str(tmp_path), *shared, *greedy)[1])["token_ids"]
    assert plain == beside == over
    assert asked != plain


@needs_torch
def test_text_streams_and_a_closing_line_follows(
    tiny_dense: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As text, the words come first and tokens, tau and speed in the last line; JSON has the same words."""
    shared = ("--target", str(tiny_dense), "--prompt", "Hi", "--max-new-tokens", "20", "--ignore-eos")
    code, out = call(capsys, *shared)
    assert code == 0
    closing = out.splitlines()[-1]
    assert closing.startswith("20 tokens, tau 1.00, ")
    assert "tokens/s" in closing
    document = json.loads(call(capsys, *shared, "--json")[1])
    assert isinstance(document["text"], str)


@needs_torch
def test_chat_goes_through_the_template(tiny_dense: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The user's message in the template's frame gives another text than the message alone."""
    shared = ("--target", str(tiny_dense), "--prompt", "Hi", "--json", "--ignore-eos")
    plain, chat = (json.loads(call(capsys, *shared, *more)[1])["token_ids"] for more in ((), ("--chat",)))
    assert plain != chat


@needs_torch
def test_a_stop_string_is_cut_from_the_text(tiny_dense: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text ends before the stop string; the ids go on to the token that completed it."""
    shared = (
        "--target",
        str(tiny_dense),
        "--prompt",
        "Hi",
        "--json",
        "--ignore-eos",
        "--max-new-tokens",
        "40",
    )
    whole = json.loads(call(capsys, *shared)[1])
    stop = whole["text"][5:7]
    cut = json.loads(call(capsys, *shared, "--stop", stop)[1])
    assert cut["text"] == whole["text"][: whole["text"].index(stop)]
    assert cut["token_ids"] == whole["token_ids"][: len(cut["token_ids"])]
    assert cut["finish"] == "stop"


@needs_torch
def test_trace_ends_with_the_document(
    tiny_dense: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The steps of the trace emit exactly the ids of the generation, which is its last line."""
    trace = tmp_path / "t.jsonl"
    shared = ("--target", str(tiny_dense), "--prompt-ids", "1,2,1,2", "--method", "ngram", "--json")
    document = json.loads(call(capsys, *shared, "--trace", str(trace))[1])
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["head", *["step"] * document["acceptance"]["steps"], "end"]
    assert [token for line in lines[1:-1] for token in line["emitted"]] == document["token_ids"]
    assert {k: v for k, v in lines[-1].items() if k != "kind"} == document


BAD_CALLS = [
    (2, ["--prompt-ids", "1", "--prompt", "a"]),
    (2, []),
    (2, ["--prompt-ids", "1,x"]),
    (2, ["--prompt-ids", "1", "--chat"]),
    (2, ["--prompt-ids", "1", "--method", "magic"]),
    (2, ["--prompt-ids", "1", "--max-new-tokens", "0"]),
    (2, ["--prompt-ids", "1", "--temperature", "-1"]),
    (2, ["--prompt-ids", "1", "--temperature", "nan"]),
    (2, ["--prompt-ids", "1", "--top-p", "0"]),
    (2, ["--prompt-ids", "1", "--bias", "3"]),
    (2, ["--prompt-ids", "1", "--seed", str(2**64)]),
    (2, ["--prompt-ids", "1", "--dtype", "int4"]),
    (2, ["--prompt-ids", "1", "--device", "cuda:99"]),
    (2, ["--prompt-ids", "1", "--stop", "a"]),
    (1, ["--prompt-ids", "1,500"]),
    (1, ["--prompt-ids", "-1"]),
    (1, ["--prompt-ids", "1", "--bias", "500=1"]),
    (1, ["--prompt-ids", ",".join(["1"] * 2000)]),
    (3, ["--prompt-ids", "1", "--trace", "/nonexistent/t.jsonl"]),
    (3, ["--prompt-ids", "1", "--generation-config"]),
]


@needs_torch
@pytest.mark.parametrize(("expected", "arguments"), BAD_CALLS)
def test_bad_calls_have_their_exit_code(
    expected: int, arguments: list[str], tiny_dense: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage is 2, refused input 1, what cannot be looked at 3; the one JSON object says why."""
    code, out = call(capsys, "--target", str(tiny_dense), *arguments, "--json")
    document = json.loads(out)
    assert code == expected
    assert document["schema"] == "draftproof.error/1"
    assert document["error"]["exit"] == expected


@needs_torch
def test_a_target_that_is_not_there_cannot_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    """No directory is exit 3."""
    assert call(capsys, "--target", "/nonexistent", "--prompt-ids", "1", "--json")[0] == 3


@pytest.mark.parametrize("verb", [["generate", "--target", "x", "--prompt-ids", "1"], ["selftest"]])
def test_without_the_engine_extra_the_error_names_it(verb: list[str]) -> None:
    """Where torch is missing, exit 3 and the command that installs it; no traceback."""
    hide = (
        "import sys; sys.modules['torch'] = None\n"
        "from draftproof.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", hide, *verb, "--json"], capture_output=True, text=True, check=False
    )
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 3
    assert "torch" in error["found"]
    assert error["next"] == "pip install 'draftproof[engine]'"
    assert done.stderr == ""


def test_the_help_needs_no_torch() -> None:
    """Loading the command line imports neither torch nor tokenizers."""
    program = (
        "import sys, draftproof.cli.main\n"
        "print([name for name in ('torch', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
