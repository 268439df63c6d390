"""A stand-in for an engine: speaks its HTTP, holds the drafter that a file of faults makes of its arguments.

Run as ``PYTHON standin.py FAULTS.json -- ENGINE_ARGUMENTS``; nothing of the product is imported. Faults:
``ids``, ``k``, ``windows``, ``status`` (of the first request), ``no_drafts``, ``dies``, ``hangs``, ``deaf``
(TERM is ignored), ``daemon`` (a child in a session of its own that ignores TERM).
"""

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

CHILD = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"


def option(argv: list[str], name: str) -> str:
    """The element after a flag."""
    return argv[len(argv) - 1 - argv[::-1].index(name) + 1]


def told(value: Any) -> dict[str, Any]:
    """One fact of a worker's record."""
    return {"value": value, "source": "stand-in"}


def record(argv: list[str], faults: dict[str, Any]) -> dict[str, Any]:
    """What the worker holds: the file's drafter, but for the faults."""
    spec = json.loads(option(argv, "--speculative-config"))
    config = json.loads(Path(spec["model"], "config.json").read_text("utf-8"))
    inner = config["dflash_config"]
    ids = faults.get("ids", inner["target_layer_ids"])
    windows = faults.get("windows", [None] * config["num_hidden_layers"])
    facts = {
        "method": told(spec["method"]),
        "k": told(faults.get("k", spec["num_speculative_tokens"])),
        "mask_id": told(inner["mask_token_id"]),
        "aux_layers": told([tap + 1 for tap in ids]),
    }
    layers = [{"window": told(window), "causal": told(window is not None)} for window in windows]
    return {
        "engine": {"name": "vllm", "version": "0.32.0", "path": "/stand-in"},
        "records": [
            {
                "rank": 0,
                "facts": facts,
                "layers": layers,
                "config": None,
                "refusal": None,
                "tensors": None,
            }
        ],
    }


class Engine(BaseHTTPRequestHandler):
    """The few pages that are asked for."""

    argv: list[str]
    faults: dict[str, Any]
    asked = 0

    def do_GET(self) -> None:
        """Health, models, counters."""
        model = option(self.argv, "--model")
        pages = {
            "/health": "{}",
            "/version": '{"version": "0.32.0"}',
            "/v1/models": json.dumps({"data": [{"id": model}]}),
            "/metrics": self.metrics(model),
        }
        path = self.path.partition("?")[0]
        self.answer(200 if path in pages else 404, pages.get(path, "{}"))

    def do_POST(self) -> None:
        """One completion, or the worker's record in development mode only."""
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/collective_rpc":
            is_open = os.environ.get("VLLM_SERVER_DEV_MODE") == "1" and "--worker-extension-cls" in self.argv
            body = json.dumps({"results": [record(self.argv, self.faults)]})
            self.answer(200 if is_open else 404, body if is_open else "{}")
            return
        type(self).asked += 1
        status = self.faults.get("status", 200)
        answer = {"usage": {"completion_tokens": 48}, "system_fingerprint": "vllm-0.32.0-abc"}
        self.answer(status, json.dumps(answer if status == 200 else {"error": "first draft"}))

    def metrics(self, model: str) -> str:
        """VLLM's counters: a fresh server has them at 0."""
        drafts = 0 if self.faults.get("no_drafts") else 10 * self.asked
        labels = f'engine="0",model_name="{model}"'
        k = json.loads(option(self.argv, "--speculative-config"))["num_speculative_tokens"]
        rows = [
            f"vllm:spec_decode_num_drafts_total{{{labels}}} {drafts}.0",
            f"vllm:spec_decode_num_draft_tokens_total{{{labels}}} {drafts * k}.0",
            f"vllm:spec_decode_num_accepted_tokens_total{{{labels}}} {2 * drafts}.0",
        ]
        name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
        for position in range(k):
            share = drafts if position < 2 else 0
            rows.append(f'{name}{{{labels},position="{position}"}} {share}.0')
        return "\n".join(rows) + "\n"

    def answer(self, status: int, body: str) -> None:
        """One answer."""
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Serve until ended."""
    faults, argv = json.loads(Path(sys.argv[1]).read_text("utf-8")), sys.argv[3:]
    sys.stderr.write("engine starting\n")
    if faults.get("dies"):
        sys.stderr.write("ValueError: fc expects 5 taps\x1b[31m\n")
        sys.exit(7)
    if faults.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if faults.get("daemon"):
        subprocess.Popen([sys.executable, "-c", CHILD], start_new_session=True)
    if faults.get("hangs"):
        time.sleep(600)
    Engine.argv, Engine.faults = argv, faults
    address = (option(argv, "--host"), int(option(argv, "--port")))
    HTTPServer(address, Engine).serve_forever()


if __name__ == "__main__":
    main()
