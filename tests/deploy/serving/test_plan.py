"""deploy.serving.plan: every key is known, of its kind, and not said twice; each fault has its pointer."""

from pathlib import Path

import pytest

from draftproof.deploy.fleet.plan import PlanRefused, parse_plan
from draftproof.deploy.serving.plan import parse_serve_plan, read_serve_plan
from draftproof.errors import CouldNotLook

HERE = Path("/plans/plan.toml")
GOOD = '[serve]\nmethod = "dflash"\ntarget = "/m/t"\ndrafter = "/m/d"\n'


def test_a_plan_has_values_with_reasons_and_places() -> None:
    """What is written points to its key; what is not has a default that says why."""
    plan = parse_serve_plan(GOOD + "tensor_parallel = 2\n", HERE)
    assert plan.number("tensor_parallel") == 2
    assert plan.said["tensor_parallel"].source == "/plans/plan.toml#/serve/tensor_parallel"
    assert plan.said["host"].value == "127.0.0.1"
    assert plan.said["host"].source == "draftproof"
    assert "reach" in plan.said["host"].reason
    assert "block_size" not in plan.said


@pytest.mark.parametrize(
    ("text", "pointer", "words"),
    [
        (GOOD + "blok_size = 16\n", "#/serve/blok_size", "perhaps block_size"),
        (GOOD + '"a/b" = 1\n', "#/serve/a~1b", "no key"),
        (GOOD + "tensor_parallel = 0\n", "#/serve/tensor_parallel", "whole number"),
        (GOOD + "tensor_parallel = true\n", "#/serve/tensor_parallel", "whole number"),
        (GOOD + 'tensor_parallel = "2"\n', "#/serve/tensor_parallel", "whole number"),
        (GOOD + 'dtype = "bf16"\n', "#/serve/dtype", "bfloat16"),
        (GOOD + 'served_name = "--evil"\n', "#/serve/served_name", "begin with -"),
        (GOOD + 'served_name = "a\\nb"\n', "#/serve/served_name", "one line"),
        (GOOD + 'served_name = "a\\u202eb"\n', "#/serve/served_name", "one line"),
        (GOOD + "block_size = 16\nnum_draft_tokens = 16\n", "#/serve/block_size", "15 drafted"),
        (GOOD + "nodes = 2\n", "#/serve/leader", "missing"),
        (GOOD + '[serve.env]\nHF_TOKEN = "x"\n', "#/serve/env/HF_TOKEN", "credential"),
        (GOOD + "[serve.env]\nA = 1\n", "#/serve/env/A", "string"),
        (GOOD + '[serve.env]\n"A B" = "1"\n', "#/serve/env/A B", "variable"),
        (GOOD + "[serve.extra.vlm]\n", "#/serve/extra/vlm", "no engine"),
        (GOOD + '[serve.extra.vllm]\n"--eager" = true\n', "#/serve/extra/vllm/--eager", "dashes"),
        (GOOD + "[serve.extra.vllm]\nwhen = 2026-01-01\n", "#/serve/extra/vllm/when", "no text"),
        (GOOD + "[serve.extra.vllm]\nx = inf\n", "#/serve/extra/vllm/x", "no text"),
        (GOOD + '[serve.extra.vllm]\napi-key = "k"\n', "#/serve/extra/vllm/api-key", "credential"),
        (GOOD + "env = 3\n", "#/serve/env", "table"),
        ('[serve]\nmethod = "dflash"\ntarget = "t"\n', "#/serve/drafter", "needs one"),
        ('[serve]\nmethod = "mtp"\ntarget = "t"\ndrafter = "d"\n', "#/serve/drafter", "no drafter"),
        ('[serve]\ntarget = "t"\n', "#/serve/method", "missing"),
        ('[serve]\nmethod = "magic"\ntarget = "t"\n', "#/serve/method", "one of"),
        ('level = "L3"\n', "#/serve", "no [serve]"),
        (GOOD + "[other]\n", "#/other", "no key of a plan"),
    ],
)
def test_a_faulty_key_is_refused_with_its_pointer(text: str, pointer: str, words: str) -> None:
    """Nothing is skipped, coerced or guessed."""
    with pytest.raises(PlanRefused) as told:
        parse_serve_plan(text, HERE)
    fault = next(part for part in told.value.found.split("; ") if part.startswith(f"{pointer}:"))
    assert words in fault or words in told.value.found


def test_all_faults_are_told_at_once() -> None:
    """A plan is mended in one go."""
    with pytest.raises(PlanRefused) as told:
        parse_serve_plan(GOOD + "a = 1\nb = 2\nnodes = -1\n", HERE)
    assert told.value.found.count("#/serve/") == 3


def test_files_may_stand_beside_it() -> None:
    """One file says what lies where and what is started; both readers take it whole."""
    text = GOOD + '[[files]]\nsource = "c.json"\npath = "/m/d/config.json"\n'
    plan = parse_serve_plan(text, HERE)
    assert plan.files is not None
    assert plan.files == parse_plan(text, HERE)
    assert [file.place.path for file in plan.files.files] == ["/m/d/config.json"]
    with pytest.raises(PlanRefused, match="nowhere"):
        parse_serve_plan(text + "nowhere = 1\n", HERE)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """No file, no text, or far too much of it."""
    with pytest.raises(CouldNotLook):
        read_serve_plan(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(CouldNotLook):
        read_serve_plan(tmp_path / "bytes.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(CouldNotLook, match="more than"):
        read_serve_plan(tmp_path / "large.toml")
