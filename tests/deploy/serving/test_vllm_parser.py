"""Command lines and config files as rendered, put to the real parsers of two vLLM versions."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from deploy.serving.conftest import Planned
from deploy.serving.test_render import EAGLE, FULL, MIXED, made
from draftproof.deploy.serving.emit import texts
from draftproof.deploy.serving.rendering import Rendering
from environments import vllm_old_python, vllm_python

pytestmark = pytest.mark.live
PARSER = Path(__file__).with_name("vllm_parser.py")


def parsed(python: Path, lines: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """What vLLM's own parser makes of each."""
    ran = subprocess.run(
        [str(python), "-W", "ignore", str(PARSER)],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    told: list[dict[str, Any]] = json.loads(ran.stdout.splitlines()[-1])
    return told


def renderings(planned: Planned, version: str) -> list[Rendering]:
    """One of each method, and one with all that can be said."""
    extra = 'extra.vllm = { "enforce-eager" = true, "enable-prefix-caching" = false, "max-num-seqs" = 8 }'
    wide = [
        "tensor_parallel = 2",
        "data_parallel = 2",
        "max_model_len = 4096",
        'served_name = "a \\"b\\" $c"',
    ]
    plans = [
        planned(config=FULL),
        planned(*wide, 'dtype = "bfloat16"', extra, config=MIXED),
        planned("num_draft_tokens = 3", config=EAGLE, method="eagle3"),
        planned("num_draft_tokens = 2", method="mtp"),
        planned("num_draft_tokens = 4", method="draft"),
        planned("num_draft_tokens = 4", method="ngram"),
        planned(method="ar"),
    ]
    return [made(plan, "vllm", version) for plan in plans]


@pytest.mark.parametrize("version", ["0.32.0", "0.20.1"])
def test_the_real_parser_takes_every_command_line(planned: Planned, version: str, tmp_path: Path) -> None:
    """Each value arrives as it was meant, from flags and from the config file alike; a slip is refused."""
    python = vllm_python() if version == "0.32.0" else vllm_old_python()
    told = renderings(planned, version)
    flags = [["--model", *one.argv()[2:]] for one in told]
    files = []
    for number, one in enumerate(told):
        path = tmp_path / f"{number}.yaml"
        path.write_text(texts(one, "yaml")[0].content, "utf-8")
        files.append(["--config", str(path)])
    nodes = planned("nodes = 2", 'leader = "10.0.0.1"', config=FULL)
    ranks = [["--model", *command.argv[2:]] for command in made(nodes, "vllm", version).commands()]
    slip = ["--model", "/m", "--speculative-confg", "{}", "--tensor-parallel-sizes", "2"]
    answers = parsed(python, [*flags, *files, *ranks, slip])
    assert "refused" in answers.pop()
    assert not [answer for answer in answers if "refused" in answer]
    for one, by_flags, by_file in zip(told, answers, answers[len(told) :], strict=False):
        assert by_file == by_flags | {"config": by_file["config"]}
        assert by_flags["model"] == "/m/target"
        wanted = next(
            (option.said.value for option in one.options if option.flag == "--speculative-config"), None
        )
        assert by_flags["speculative_config"] == wanted
        assert by_flags["tensor_parallel_size"] == one.plan.number("tensor_parallel")
    wide = answers[1]
    assert wide["served_model_name"] in ('a "b" $c', ['a "b" $c'])
    assert (wide["enforce_eager"], wide["enable_prefix_caching"], wide["max_num_seqs"]) == (True, False, 8)
    leader, worker = answers[2 * len(told) :]
    assert [(rank["nnodes"], rank["node_rank"], rank["headless"]) for rank in (leader, worker)] == [
        (2, 0, False),
        (2, 1, True),
    ]
    assert worker["master_addr"] == "10.0.0.1"
