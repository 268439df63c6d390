"""Real engines: what a file says, what the engine's code resolves, what its worker holds, and who differs.

vLLM 0.32.0 runs here on the CPU; 0.20.1's configuration code runs, its kernels do not load; of SGLang 0.5.23
the functions that resolve a DFlash drafter run, its workers need an accelerator.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from draftproof.findings.finding import Severity
from draftproof.names import Layer
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.engine_views import Column, table
from draftproof.runtimes.interpreter import Answer
from draftproof.runtimes.judge_effective import judge_effective
from draftproof.runtimes.quantities import of_drafter, of_parsed
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
from runtimes.tiny_checkpoints import DRAFT, write

pytestmark = pytest.mark.live

HERE = Path(__file__).parent
EXTENSION = HERE.parents[1] / "src" / "draftproof" / "runtimes" / "vllm" / "extension"
PATIENCE = 1800.0
"""Seconds a start may take here: a machine of two cores may be busy with ten other things."""

WEIGHTS = {"draft_load_config": {"load_format": "auto"}}
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(EXTENSION),
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
STARTED = ("full", "sliding", "unsorted", "out-of-range", "eagle3")


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
    """Every engine of STARTED and two without a config of their own, started in one process."""
    requests: list[dict[str, object]] = []
    for case in STARTED:
        pair = pair_of(folder(), case)
        asks = request_of("vllm", pair)
        speculative = {
            "method": asks["method"],
            "model": pair.drafter_path,
            "num_speculative_tokens": asks["num_draft_tokens"],
            **(WEIGHTS if case != "eagle3" else {}),
        }
        requests.append({"name": case, "target": pair.target_path, "speculative": speculative})
    target, draft = str(folder() / "target"), str(write(folder() / "draft", DRAFT))
    model = {"method": "draft_model", "model": draft, "num_speculative_tokens": 3}
    lookup = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2}
    requests += [{"name": one["method"], "target": target, "speculative": one} for one in (model, lookup)]
    ran = subprocess.run(
        [vllm_python(), HERE / "serve_tiny.py"],
        input=json.dumps([{**one, "dtype": "float32"} for one in requests]),
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    told = {one["name"]: one for one in map(json.loads, ran.stdout.splitlines())}
    assert len(told) == len(requests), ran.stderr[-4000:]
    return told


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
    """File, parsed, preflight and worker of one case."""
    pair = pair_of(folder(), case)
    engine = asked("vllm-0.32.0")
    index = ENGINES["vllm-0.32.0"][1].index(case)
    resolved = parse_records({**engine, "records": [engine["records"][index]]}, stage="preflight")
    held = parse_records(workers()[case]["records"][0], stage="running")
    assert isinstance(resolved, list)
    assert isinstance(held, list)
    before, now = resolved[0].effective, held[0].effective
    assert before.config is not None
    parsed = of_parsed(before.config, "vllm")
    assert parsed is not None
    return [
        Column(Layer.BYTES, "file", of_drafter(pair.drafter)),
        Column(Layer.PARSED, "parsed", parsed),
        Column(Layer.EFFECTIVE, "preflight", before.flat),
        Column(Layer.EFFECTIVE, "worker", now.flat),
    ]


@pytest.mark.parametrize("case", ["full", "sliding", "eagle3"])
def test_file_parsed_preflight_and_worker_agree(case: str) -> None:
    """A healthy drafter is one and the same thing at four layers; what decides is known at all four."""
    rows = {row.name: row for row in table(columns(case))}
    wrong = {name: row.first_wrong for name, row in rows.items() if row.first_wrong is not None}
    # The EAGLE-3 drafter starts without weights: vLLM then lends it the target's head, and that is told.
    assert wrong == ({"shared_head": 3} if case == "eagle3" else {})
    decisive = ["aux_layers", "layers/0/window", "layers/0/causal"]
    decisive += ["mask_id", "fc_features", "shared_head"] if case != "eagle3" else []
    for name in decisive:
        known = [cell is not None and cell.is_known for cell in rows[name].cells]
        assert known[0], name
        assert known[-1], name


def test_unsorted_taps_are_sorted_by_the_engine_alone() -> None:
    """The log would show the order asked for; the worker holds another."""
    rows = {row.name: row for row in table(columns("unsorted"))}
    row = rows["aux_layers"]
    assert [cell.value if cell else None for cell in row.cells] == [
        [6, 4, 2],
        [6, 4, 2],
        [2, 4, 6],
        [2, 4, 6],
    ]
    assert row.first_wrong == 2


def test_a_tap_out_of_range_breaks_at_the_first_draft() -> None:
    """It starts, every record looks well; the first request raises, as the preflight foresaw."""
    started = workers()["out-of-range"]
    assert "expects 192 concatenated" in started["first_draft"], "three taps of 64, and two were caught"
    assert workers()["full"]["first_draft"] is None


@pytest.mark.parametrize(
    ("method", "drafter"), [("draft_model", "DraftModelProposer"), ("ngram", "NgramProposer")]
)
def test_methods_without_a_config_of_their_own(method: str, drafter: str) -> None:
    """The worker tells who drafts, and nothing that it does not have."""
    facts = workers()[method]["records"][0]["records"][0]["facts"]
    assert facts["drafter_cls"]["value"] == drafter
    assert "mask_id" not in facts
    assert "aux_layers" not in facts


@contextmanager
def server(case: str) -> Iterator[tuple[str, int]]:
    """A vLLM server on loopback with the extension, and its process."""
    pair = pair_of(folder(), case)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    speculative = {"method": "dflash", "model": pair.drafter_path, "num_speculative_tokens": 7, **WEIGHTS}
    argv = [str(vllm_python()), "-m", "vllm.entrypoints.openai.api_server", "--model", pair.target_path]
    argv += ["--host", "127.0.0.1", "--port", str(port), "--load-format", "dummy", "--dtype", "float32"]
    argv += ["--skip-tokenizer-init", "--enforce-eager", "--max-model-len", "256", "--max-num-seqs", "2"]
    argv += ["--speculative-config", json.dumps(speculative)]
    argv += ["--worker-extension-cls", "draftproof_vllm.DraftproofExtension"]
    log = folder() / "server.log"
    with log.open("wb") as out:
        environment = {**ENVIRONMENT, "VLLM_SERVER_DEV_MODE": "1"}
        process = subprocess.Popen(argv, stdout=out, stderr=out, env=environment, start_new_session=True)
        try:
            wait(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            os.killpg(process.pid, 15)
            process.wait(120)


def wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Until the server answers; its log where it ends or takes too long."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5)  # noqa: S310 - loopback
        except (OSError, urllib.error.URLError):
            time.sleep(1)
        else:
            return
    pytest.fail(log.read_text(errors="replace")[-4000:])


def views(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of ``draftproof views``."""
    code = main(["views", *argv, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def test_over_http(capsys: pytest.CaptureFixture[str]) -> None:
    """One server: all layers agree; then the file changes under it, and the worker is not as resolved."""
    drafter, target = laid_out(folder(), "sliding")
    with server("sliding") as (url, pid):
        argv = [drafter.given, "--target", target.given, "--engine", "vllm", "--python", str(vllm_python())]
        argv += ["--url", url, "--pid", str(pid), "--timeout", str(PATIENCE)]
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
