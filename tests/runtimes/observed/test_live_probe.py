"""The probe against a real vLLM 0.32.0 on the CPU, with an untrained DFlash drafter."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from draftproof.cli.main import main
from environments import vllm_python
from runtimes.observed.tiny_served import write_dflash, write_target

pytestmark = [pytest.mark.live, pytest.mark.slow]

START_S = 1800
"""A start takes under a minute on an idle machine and many on a busy one; only a hang is to be caught."""


@contextmanager
def vllm(target: Path, speculative: dict[str, Any], log: Path) -> Iterator[str]:
    """A server's address while it runs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [str(vllm_python()), "-m", "vllm.entrypoints.openai.api_server", "--model", str(target)]
    argv += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"]
    argv += ["--enforce-eager", "--max-num-seqs", "2", "--max-model-len", "2048"]
    argv += ["--speculative-config", json.dumps(speculative), "--enable-prompt-tokens-details"]
    argv += ["--per-request-spec-decode-metrics", "detailed"]
    environment = {
        **os.environ,
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    with log.open("w") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, env=environment, start_new_session=True)
        try:
            _wait(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, 15)
            process.wait(120)


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - loopback
                return
        except (URLError, TimeoutError, ConnectionError):
            time.sleep(0.5)
    raise AssertionError(log.read_text()[-3000:])


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
    with vllm(target, speculative, tmp_path / "log") as url:
        _, document = probed(url, capsys, "--write-reference", reference)
        _, again = probed(url, capsys, "--reference", reference)
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
