"""The probe against a real vLLM 0.32.0 on the CPU, with an untrained DFlash drafter."""

import json
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from runtimes.observed.tiny_served import write_dflash, write_target
from runtimes.vllm_server import vllm_server

pytestmark = [pytest.mark.live, pytest.mark.slow]

OPTIONS = ("--served-model-name", "tiny", "--dtype", "float32", "--max-model-len", "2048")
METRICS = ("--enable-prompt-tokens-details", "--per-request-spec-decode-metrics", "detailed")


def probed(url: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any]]:
    """Exit status and document of a small probe."""
    capsys.readouterr()
    code = main(["probe", url, "--n", "2", "--tokens", "48", "--timeout", "600", "--json", *options])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def figures(group: dict[str, Any], source: str) -> list[float]:
    """What one source says of a group: counts, tau, then the share of each position."""
    (record,) = [r for r in group["acceptances"] if r["estimator"]["source"] == source]
    names = ("num_drafts", "num_drafted", "num_accepted", "tau")
    return [*(record[name]["value"] for name in names), *record["per_position"]["value"]]


def test_a_real_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Requests' own metrics and differenced counters agree exactly, the cache is seen, the target is itself.

    Drafts of weights that nobody trained are noise: of 250 and more none or next to none is kept, and that is
    what the probe must say of them.
    """
    target = write_target(tmp_path / "target")
    drafter = str(write_dflash(tmp_path / "drafter"))
    speculative = {"method": "dflash", "model": drafter, "num_speculative_tokens": 5}
    reference = str(tmp_path / "reference.json")
    with vllm_server(target, speculative, tmp_path / "log", *OPTIONS, *METRICS) as serving:
        _, document = probed(serving.url, capsys, "--write-reference", reference)
        _, again = probed(serving.url, capsys, "--reference", reference)
    assert document["engine"] == "vLLM"
    groups = {group["group"]: group for group in document["groups"]}
    assert {"short, cold", "long, cold", "long, warm", "short, cold, thinking off"} <= groups.keys()
    for group in groups.values():
        assert figures(group, "vLLM request metrics") == pytest.approx(figures(group, "vLLM counters"))
    assert groups["short, cold"]["cached_tokens"] == groups["long, cold"]["cached_tokens"] == 0
    assert groups["long, warm"]["cached_tokens"] > 0
    told = {finding["id"] for finding in document["findings"]}
    assert not told & {"observed-identity-broken", "observed-foreign-traffic", "observed-restarted"}
    assert "target-differs" not in {finding["id"] for finding in again["findings"]}
    assert told & {"observed-nothing-accepted", "observed-acceptance-collapsed"}
