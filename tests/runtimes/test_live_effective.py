"""Real engines: what a file says, what the engine's code resolves, what its worker holds, and who differs.

vLLM 0.32.0 runs here on the CPU; 0.20.1's configuration code runs, its kernels do not load; of SGLang 0.5.23
the functions that resolve a DFlash drafter run, its workers need an accelerator.
"""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from draftproof.findings.finding import Severity
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.engine_views import Column, table
from draftproof.runtimes.interpreter import Answer
from draftproof.runtimes.judge_effective import judge_effective
from draftproof.runtimes.record import parse_records
from draftproof.runtimes.resolve import meant_of
from draftproof.runtimes.semantics import complete
from environments import vllm_python
from runtimes.effective_cases import (
    ENGINES,
    RECORDED,
    TRANSCRIPTS,
    WANTED,
    laid_out,
    pair_of,
    python_of,
    request_of,
)
from runtimes.started import held, layers_of, start_all
from runtimes.vllm_server import PATIENCE, vllm_server

pytestmark = pytest.mark.live

WEIGHTS = {"draft_load_config": {"load_format": "auto"}}
STARTED = ("full", "sliding", "unsorted", "out-of-range", "eagle3", "draft-model")


@cache
def folder() -> Path:
    """Where the checkpoints lie: one place, so that recordings can be compared."""
    return Path("/tmp/draftproof-effective")  # noqa: S108 - as in the recordings


@cache
def asked(engine: str) -> dict[str, Any]:
    """The engine's answer about all its cases, asked now."""
    program, cases = ENGINES[engine]
    pairs = [request_of(engine, pair_of(folder(), case)) for case in cases]
    answer = EnginePython(str(python_of(engine))).ask(program, {"pairs": pairs}, timeout_seconds=PATIENCE)
    assert isinstance(answer, Answer), answer
    return answer.body


@cache
def workers() -> dict[str, dict[str, Any]]:
    """Every engine of STARTED, and n-gram, started in one process."""
    requests = [started_as(case) for case in STARTED]
    lookup = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2}
    target = str(folder() / "target")
    return start_all([*requests, {"name": "ngram", "target": target, "speculative": lookup}])


def started_as(case: str) -> dict[str, object]:
    """The start of one case; drafters without weights are started with the target's way of making them up."""
    pair = pair_of(folder(), case)
    asks = request_of("vllm", pair)
    speculative = {
        "method": asks["method"],
        "model": pair.drafter_path,
        "num_speculative_tokens": asks["num_draft_tokens"],
        **(WEIGHTS if asks["method"] == "dflash" else {}),
    }
    return {"name": case, "target": pair.target_path, "speculative": speculative}


@pytest.mark.parametrize("engine", RECORDED)
def test_the_recordings_are_still_what_the_engines_say(engine: str) -> None:
    """What the other tests judge is what these engines answer today."""
    told = json.loads((TRANSCRIPTS / f"effective-{engine}.json").read_text(encoding="utf-8"))
    now = asked(engine)
    for case, then, here in zip(ENGINES[engine][1], told["records"], now["records"], strict=True):
        for part in ("facts", "layers", "refusal", "tensors"):
            assert here[part] == then[part], (case, part)


@pytest.mark.parametrize(("engine", "case"), WANTED)
def test_each_fault_is_named_before_a_start(engine: str, case: str) -> None:
    """What the engine resolves now, held against the file: exactly these findings above a note."""
    subject, target = laid_out(folder(), case)
    pair = pair_of(folder(), case)
    answer = asked(engine)
    index = ENGINES[engine][1].index(case)
    told = parse_records({**answer, "records": [answer["records"][index]]}, stage="preflight")
    assert isinstance(told, list)
    effective = complete(
        told[0].effective,
        pair.drafter,
        tensors=told[0].tensors,
        num_draft_tokens=pair.draft_tokens,
        missing=told[0].missing,
    )
    meant = meant_of(subject, target)
    assert meant is not None
    found = judge_effective(effective, meant)
    loud = {one.id for one in found if one.severity is not Severity.NOTE}
    assert loud == WANTED[engine, case], found


def columns(case: str) -> list[Column]:
    """File, parsed, preflight, worker and counters of one case."""
    pair = pair_of(folder(), case)
    engine = asked("vllm-0.32.0")
    index = ENGINES["vllm-0.32.0"][1].index(case)
    resolved = parse_records({**engine, "records": [engine["records"][index]]}, stage="preflight")
    assert isinstance(resolved, list)
    return layers_of(pair.drafter, resolved[0], workers()[case])


@pytest.mark.parametrize("case", ["full", "sliding", "eagle3", "draft-model"])
def test_file_parsed_preflight_worker_and_counters_agree(case: str) -> None:
    """A healthy drafter is one and the same thing at every layer; what decides is known at all of them."""
    rows = {row.name: row for row in table(columns(case))}
    wrong = {name: row.first_wrong for name, row in rows.items() if row.first_wrong is not None}
    # The EAGLE-3 drafter starts without weights: vLLM then lends it the target's head, and that is told.
    assert wrong == ({"shared_head": 3} if case == "eagle3" else {})
    decisive = ["layers/0/window", "layers/0/causal"]
    decisive += ["aux_layers"] if case != "draft-model" else []
    decisive += ["mask_id", "fc_features", "shared_head"] if case in ("full", "sliding") else []
    for name in decisive:
        known = [cell is not None and cell.is_known for cell in rows[name].cells]
        assert known[0], name
        assert known[-2], name
    assert all(cell is not None and cell.is_known for cell in rows["k"].cells[-3:])


def test_unsorted_taps_are_sorted_by_the_engine_alone() -> None:
    """The log would show the order asked for; the worker holds another."""
    rows = {row.name: row for row in table(columns("unsorted"))}
    row = rows["aux_layers"]
    assert [cell.value if cell else None for cell in row.cells] == [
        [6, 4, 2],
        [6, 4, 2],
        [2, 4, 6],
        [2, 4, 6],
        None,
    ]
    assert row.first_wrong == 2


def test_a_tap_out_of_range_breaks_at_the_first_draft() -> None:
    """It starts, every record looks well; the first request raises, as the preflight foresaw."""
    started = workers()["out-of-range"]
    assert "expects 192 concatenated" in started["first_draft"], "three taps of 64, and two were caught"
    assert workers()["full"]["first_draft"] is None


@pytest.mark.parametrize(
    ("case", "drafter"), [("draft-model", "DraftModelProposer"), ("ngram", "NgramProposer")]
)
def test_methods_without_a_config_of_their_own(case: str, drafter: str) -> None:
    """The worker tells who drafts, and nothing that it does not have."""
    facts = workers()[case]["records"][0]["records"][0]["facts"]
    assert facts["drafter_cls"]["value"] == drafter
    assert "mask_id" not in facts
    assert "aux_layers" not in facts


def test_two_ranks_hold_the_same() -> None:
    """Tensor parallel 2: two workers answer, and no fact of one differs from the other's."""
    split = {"tensor_parallel_size": 2, "distributed_executor_backend": "mp"}
    told = start_all([{**started_as("full"), "more": split}])["full"]
    first, second = (one.effective for one in held(told))
    assert (first.rank, second.rank) == (0, 1)
    values = [{name: fact.value for name, fact in one.flat.items()} for one in (first, second)]
    assert values[0] == values[1]
    assert values[0]["aux_layers"] == [2, 4, 6]
    assert told["first_draft"] is None


def views(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of ``draftproof views``."""
    code = main(["views", *argv, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def test_over_http(capsys: pytest.CaptureFixture[str]) -> None:
    """One server: all layers agree; then the file changes under it, and the worker is not as resolved."""
    drafter, target = laid_out(folder(), "sliding")
    speculative = {"method": "dflash", "model": drafter.given, "num_speculative_tokens": 7, **WEIGHTS}
    options = ["--load-format", "dummy", "--dtype", "float32", "--skip-tokenizer-init"]
    options += ["--max-model-len", "256"]
    with vllm_server(target.given, speculative, folder() / "server.log", *options) as serving:
        argv = [drafter.given, "--target", target.given, "--engine", "vllm", "--python", str(vllm_python())]
        argv += ["--url", serving.url, "--pid", str(serving.pid), "--timeout", str(PATIENCE)]
        code, document = views(capsys, *argv)
        engine = document["engine"]
        layers = [column["layer"] for column in engine["columns"]]
        assert layers[:4] == ["BYTES", "PARSED", "EFFECTIVE", "EFFECTIVE"]
        assert [row for row in engine["quantities"] if row["first_wrong"]] == []
        assert engine["running"]["ranks"][0]["drafter_cls"]["value"] == "DFlashProposer"
        assert "--speculative-config" in engine["running"]["outside"]["argv"]["value"]
        assert code == 0, document["findings"]
        config = drafter.config_path.read_text(encoding="utf-8")
        drafter.config_path.write_text(config.replace('"mask_token_id": 3', '"mask_token_id": 5'))
        try:
            code, document = views(capsys, *argv)
        finally:
            drafter.config_path.write_text(config, encoding="utf-8")
        found = {one["id"]: (one["expected"], one["found"]) for one in document["findings"]}
        assert found["effective-not-as-resolved"] == (5, 3)
        assert code == 1


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
