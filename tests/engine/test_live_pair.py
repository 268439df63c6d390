"""The pair that ships, served by vLLM 0.32.0 on the CPU and decoded by our engine: same text, same tau.

Weights and configs are read where they lie: nothing here knows their numbers. vLLM's CPU build has the V1
runner alone, which refuses a drafter that mixes sliding and full layers. Such a drafter is served, and
decoded here, with every layer sliding: the same weights under another config, the same on both sides.
"""

import json
import math
import shutil
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from draftproof.config.dialects.attention import SLIDING
from draftproof.engine.bench.prompts import encoded, shipped_prompts
from draftproof.engine.bench.shipped import shipped_pair
from draftproof.engine.engine import Engine
from draftproof.engine.text.stopping import Stopping
from draftproof.findings.evidence import read_model
from draftproof.runtimes.observed.reading import read
from draftproof.speculation.acceptance import Acceptance
from draftproof.speculation.stats import Step, Summary, summary
from environments import vllm_python
from runtimes.vllm_server import PATIENCE, Serving, vllm_server

pytestmark = [pytest.mark.engine, pytest.mark.live, pytest.mark.slow]

NUM_PROMPTS, NUM_TOKENS = 8, 96


@dataclass(frozen=True, slots=True)
class Pair:
    """The dense target with its DFlash drafter, as shipped and as served."""

    target: Path
    shipped: Path
    drafter: Path
    num_draft_tokens: int

    @property
    def is_mixed(self) -> bool:
        """Whether the shipped drafter has layers of both kinds."""
        return self.drafter != self.shipped


@dataclass(frozen=True, slots=True)
class Run:
    """Every prompt on both sides, and how the drafts went."""

    theirs: list[list[int]]
    ours: list[list[int]]
    counted: Acceptance
    steps: Summary


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The shipped pair; a mixed drafter also as one that this vLLM takes."""
    target, drafters = shipped_pair("dense")
    (shipped,) = [one for one in drafters if one.name == "dense-dflash"]
    drafter = read_model(str(shipped)).drafter
    assert drafter is not None
    count = drafter.num_draft_tokens.value
    assert count is not None
    if len({layer.kind.value for layer in drafter.layers}) == 1:
        return Pair(target, shipped, shipped, count)
    folder = tmp_path_factory.mktemp("served")
    config = json.loads((shipped / "config.json").read_text("utf-8"))
    config["layer_types"] = [SLIDING] * len(drafter.layers)
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    shutil.copy(shipped / "model.safetensors", folder)
    return Pair(target, shipped, folder, count)


@pytest.fixture(scope="module")
def server(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One server for every test here."""
    speculative = {
        "method": "dflash",
        "model": str(pair.drafter),
        "num_speculative_tokens": pair.num_draft_tokens,
    }
    log = tmp_path_factory.mktemp("log") / "vllm"
    options = ["--served-model-name", "dense", "--dtype", "float32", "--max-model-len", "1024"]
    with vllm_server(pair.target, speculative, log, *options, "--no-enable-prefix-caching") as found:
        yield found


def answered(server: Serving, prompt: list[int]) -> list[int]:
    """The greedy tokens of one request."""
    body = {
        "model": "dense",
        "prompt": prompt,
        "max_tokens": NUM_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }
    head = {"Content-Type": "application/json"}
    url, data = f"{server.url}/v1/completions", json.dumps(body).encode()
    request = urllib.request.Request(url, data, head)  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310 - loopback
        said: dict[str, Any] = json.load(response)
    return list(said["choices"][0]["token_ids"])


def until(steps: tuple[Step, ...], num_tokens: int) -> list[Step]:
    """The steps that it takes to so many tokens, the last one whole, as vLLM counts it."""
    taken, emitted = [], 0
    for step in steps:
        if emitted >= num_tokens:
            break
        taken.append(step)
        emitted += step.num_emitted
    return taken


@pytest.fixture(scope="module")
def run(pair: Pair, server: Serving) -> Run:
    """The same prompts on both sides; vLLM drafts from the token on that its prefill gives, so do we here."""
    engine = Engine.load(
        pair.target, pair.drafter, method="dflash", num_draft_tokens=pair.num_draft_tokens, dtype="float32"
    )
    prompts = [encoded(prompt, engine.text) for prompt in shipped_prompts("procedural", NUM_PROMPTS)]
    theirs = [answered(server, prompt) for prompt in prompts]
    counted = read(server.url).acceptance
    assert counted is not None
    beyond = Stopping(NUM_TOKENS + pair.num_draft_tokens, ignore_eos=True)
    ours, steps = [], []
    for prompt, (first, *_) in zip(prompts, theirs, strict=True):
        whole = engine.generate([*prompt, first], stopping=beyond)
        ours.append([first, *whole.token_ids][:NUM_TOKENS])
        steps.append(until(whole.steps, NUM_TOKENS - 1))
    return Run(theirs, ours, counted, summary(steps))


def test_the_same_greedy_text(pair: Pair, run: Run) -> None:
    """Token by token what vLLM answers, what our engine drafts and keeps, and what the target says alone."""
    assert run.ours == run.theirs
    assert len({tuple(tokens) for tokens in run.theirs}) == NUM_PROMPTS
    plain = Engine.load(pair.target, dtype="float32")
    prompt = encoded(shipped_prompts("procedural", 1)[0], plain.text)
    alone = plain.generate(prompt, stopping=Stopping(NUM_TOKENS, ignore_eos=True))
    assert list(alone.token_ids) == run.theirs[0]


def test_the_same_tau(run: Run) -> None:
    """The counters of vLLM within 3 % of our steps, and far from what untrained drafts would give."""
    assert run.counted.tau.value == pytest.approx(run.steps.tau, rel=0.03)
    assert run.counted.rate.value == pytest.approx(run.steps.rate, rel=0.06)
    assert run.steps.tau > 1.5


def test_every_position_within_its_interval(pair: Pair, run: Run) -> None:
    """Each share of vLLM's lies in the 99.9 % interval around ours, one step more or less beside it.

    Both sides draft for the same text, so the two differ by single steps; were they independent, all
    positions together would fail by chance in less than 2 % of runs, and seeds do not change.
    """
    shares = run.counted.per_position.value
    assert shares is not None
    assert len(shares) == len(run.steps.per_position) == pair.num_draft_tokens
    for theirs, here in zip(shares, run.steps.per_position, strict=True):
        half = 3.29 * math.sqrt(here * (1 - here) / run.steps.num_steps)
        assert abs(theirs - here) <= half + 1 / run.steps.num_steps


def test_all_layers_agree(pair: Pair, server: Serving, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Intent, bytes, parsed, before a start, in the worker, counted: one and the same drafter."""
    assert run.counted.num_draft_tokens.value == pair.num_draft_tokens
    capsys.readouterr()
    argv = ["views", str(pair.drafter), "--intent", str(pair.drafter / "config.json"), "--engine", "vllm"]
    argv += ["--target", str(pair.target), "--python", str(vllm_python()), "--url", server.url]
    code = main([*argv, "--pid", str(server.pid), "--timeout", str(PATIENCE), "--json"])
    document = json.loads(capsys.readouterr().out)
    engine = document["engine"]
    layers = [column["layer"] for column in engine["columns"]]
    assert layers == ["INTENT", "BYTES", "PARSED", "EFFECTIVE", "EFFECTIVE", "OBSERVED"]
    assert [row for row in engine["quantities"] if row["first_wrong"]] == []
    known = {row["name"]: row["cells"] for row in engine["quantities"]}
    for name in ("aux_layers", "mask_id", "layers/0/window", "layers/0/causal"):
        assert all(cell["how"] not in ("unknown", "raised") for cell in known[name][:-1]), name
    assert code == 0, document["findings"]


def test_the_shipped_drafter_is_refused_before_any_start(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it mixes sliding and full layers: by vLLM's own words, asked without a weight or a start."""
    capsys.readouterr()
    argv = ["preflight", str(pair.shipped), "--target", str(pair.target), "--engine", "vllm"]
    code = main([*argv, "--python", str(vllm_python()), "--timeout", str(PATIENCE), "--json"])
    document = json.loads(capsys.readouterr().out)
    refused = [one["found"] for one in document["findings"] if one["id"] == "effective-refused"]
    assert any("mixed sliding/full" in words for words in refused) == pair.is_mixed, document["findings"]
    assert code == (1 if pair.is_mixed else 0)
