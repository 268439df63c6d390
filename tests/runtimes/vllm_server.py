"""A vLLM 0.32.0 server on loopback, on the CPU, with our extension in its workers."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import pytest

from draftproof.runtimes.worker_extension import VLLM_CLASS, extension_directory
from environments import vllm_python

__all__ = ["PATIENCE", "Serving", "environment", "vllm_server"]

PATIENCE = 1800.0
"""Seconds a start may take: under a minute on an idle machine, many on a busy one; only a hang is caught."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that answers."""

    url: str
    pid: int


def environment(*path: Path) -> dict[str, str]:
    """What a vLLM here needs: one thread, no network, the extension and ``path`` to import from."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (extension_directory("vllm"), *path))),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # two workers on one NUMA node are refused otherwise
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_SERVER_DEV_MODE": "1",
    }


@contextmanager
def vllm_server(
    target: Path | str,
    speculative: Mapping[str, object],
    log: Path,
    *options: str,
    path: tuple[Path, ...] = (),
) -> Iterator[Serving]:
    """The server while it runs; ``options`` are added to its command line."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [str(vllm_python()), "-m", "vllm.entrypoints.openai.api_server", "--model", str(target)]
    argv += ["--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--max-num-seqs", "2"]
    argv += ["--speculative-config", json.dumps(speculative), "--worker-extension-cls", VLLM_CLASS, *options]
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv, stdout=out, stderr=out, env=environment(*path), start_new_session=True
        )
        try:
            _wait(f"http://127.0.0.1:{port}/health", process, log)
            yield Serving(f"http://127.0.0.1:{port}", process.pid)
        finally:
            os.killpg(process.pid, 15)
            process.wait(120)


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Until the server answers; its log where it ends or takes too long."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - loopback
                return
        except (URLError, TimeoutError, ConnectionError):
            time.sleep(0.5)
    pytest.fail(log.read_text(errors="replace")[-4000:])
