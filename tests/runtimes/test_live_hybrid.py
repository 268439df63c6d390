"""A hybrid target in real vLLM 0.32.0 on the CPU: MTP, EAGLE-3, DFlash and n-gram, every layer held together.

Weights are made up (the recurrent layers want bfloat16 and heads of 128), prefix caching is off: with it and
speculation vLLM's CPU build calls a kernel that needs Triton.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from draftproof.findings.evidence import Model, read_model
from draftproof.findings.finding import Severity
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.engine_views import table
from draftproof.runtimes.interpreter import Answer
from draftproof.runtimes.judge_effective import judge_effective
from draftproof.runtimes.pair import Pair
from draftproof.runtimes.record import Told, parse_records
from draftproof.runtimes.resolve import drafter_of, meant_of
from environments import vision_without_kernels, vllm_python
from runtimes.effective_cases import request_of
from runtimes.started import held, layers_of, start_all
from runtimes.tiny_checkpoints import DFLASH, EAGLE3, HYBRID, dflash_tensors, write
from runtimes.vllm_server import PATIENCE

pytestmark = [pytest.mark.live, pytest.mark.slow]

NUM_DRAFT_TOKENS = {"mtp": 2, "eagle3": 3, "dflash": 7}
DECISIVE: Mapping[str, tuple[str, ...]] = {
    "mtp": ("layers/0/window", "layers/0/causal", "shared_embed", "shared_head"),
    "eagle3": ("layers/0/window", "layers/0/causal", "aux_layers"),
    "dflash": ("layers/0/window", "layers/0/causal", "aux_layers", "mask_id", "fc_features", "shared_head"),
}
"""Method -> what both the file and the worker must tell of it."""

KNOWN = {"eagle3": {"shared_head"}}
"""The EAGLE-3 drafter starts without weights: vLLM then lends it the target's head, and that is told."""


@cache
def folder() -> Path:
    """Where the checkpoints lie."""
    return Path("/tmp/draftproof-hybrid")  # noqa: S108 - made anew by every run


@cache
def target() -> Model:
    """Six recurrent and two attention layers, and one MTP layer."""
    return read_model(str(write(folder() / "target", HYBRID)))


@cache
def pair(method: str) -> tuple[Model, Pair]:
    """The drafter of a method beside the target; the MTP head is the target's own."""
    subject = target()
    if method == "eagle3":
        subject = read_model(str(write(folder() / method, EAGLE3)))
    if method == "dflash":
        subject = read_model(str(write(folder() / method, DFLASH, dflash_tensors(DFLASH))))
    drafter = drafter_of(subject, target())
    assert drafter is not None
    return subject, Pair(subject.given, target().given, drafter, NUM_DRAFT_TOKENS[method])


@cache
def resolved() -> dict[str, Told]:
    """What vLLM's own code resolves of each, before any start."""
    path = f"PYTHONPATH={vision_without_kernels()}"
    there = EnginePython(str(vllm_python()), None, ("env", path))
    requests = [request_of("vllm", pair(method)[1]) for method in NUM_DRAFT_TOKENS]
    answer = there.ask("vllm.preflight", {"pairs": requests}, timeout_seconds=PATIENCE)
    assert isinstance(answer, Answer), answer
    told = parse_records(answer.body, stage="preflight")
    assert isinstance(told, list), told
    return dict(zip(NUM_DRAFT_TOKENS, told, strict=True))


@cache
def workers() -> dict[str, dict[str, Any]]:
    """Every method started, one after the other in one process; n-gram last."""
    requests: list[dict[str, object]] = []
    for method, count in NUM_DRAFT_TOKENS.items():
        speculative: dict[str, object] = {"method": method, "num_speculative_tokens": count}
        if method != "mtp":
            speculative["model"] = pair(method)[1].drafter_path
        if method == "dflash":
            speculative["draft_load_config"] = {"load_format": "auto"}
        requests.append({"name": method, "speculative": speculative})
    lookup = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2}
    requests.append({"name": "ngram", "speculative": lookup})
    common = {"target": target().given, "dtype": "bfloat16"}
    return start_all([{**common, **one} for one in requests], vision_without_kernels())


@pytest.mark.parametrize("method", NUM_DRAFT_TOKENS)
def test_every_layer_agrees(method: str) -> None:
    """File, before a start, worker and counters say the same, and so does what is found."""
    subject, asked = pair(method)
    told = workers()[method]
    assert told["first_draft"] is None
    rows = {row.name: row for row in table(layers_of(asked.drafter, resolved()[method], told))}
    wrong = {name for name, row in rows.items() if row.first_wrong is not None}
    assert wrong == KNOWN.get(method, set())
    for name in DECISIVE[method]:
        cells = [cell for cell in rows[name].cells if cell is not None]
        assert cells[0].is_known, name
        assert any(cell.is_known for cell in cells[1:]), name
    assert all(cell is not None and cell.is_known for cell in rows["k"].cells[-3:])
    meant = meant_of(subject, target())
    assert meant is not None
    found = judge_effective(held(told)[0].effective, meant)
    errors = {one.id for one in found if one.severity is Severity.ERROR}
    assert errors == ({"effective-sharing"} if method in KNOWN else set())


def test_the_block_drop_is_a_warning_on_a_hybrid() -> None:
    """One block can be the whole prefix there; vLLM 0.32.0 drops it for DFlash, too."""
    subject, _ = pair("dflash")
    meant = meant_of(subject, target())
    assert meant is not None
    found = judge_effective(held(workers()["dflash"])[0].effective, meant)
    assert [(one.id, one.severity) for one in found] == [("effective-block-drop", Severity.WARNING)]


def test_n_gram() -> None:
    """It has no file: the worker tells who drafts and how much."""
    told = workers()["ngram"]
    facts = held(told)[0].effective.facts
    assert (facts["drafter_cls"].value, facts["k"].value) == ("NgramProposer", 4)
    assert told["first_draft"] is None
