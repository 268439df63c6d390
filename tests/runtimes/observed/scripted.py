"""A server on loopback that answers as vLLM does and counts as it does, with faults that can be switched on.

It stands for servers that are not at hand: what it sends was seen on a real one (see the live tests).
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Script", "serving"]

WIDTH = 4
STORY = "".join(f"Line {i} of a text that goes on. " for i in range(400))

_PATTERNS = {0: (0, 0, 0, 0), 1: (4, 0, 0, 0), 2: (4, 2, 2, 0), 3: (4, 2, 4, 2)}
"""Mean -> tokens kept at four steps in a row; the last position is reached, so that there is no cliff."""


@dataclass
class Script:
    """How the server behaves."""

    kept: int = 3
    """Drafted tokens kept at a step of a short, cold prompt, on average."""

    kept_long: int = 3
    kept_warm: int = 3
    kept_thinking: int = 3
    knows_thinking: bool = True
    has_template: bool = True
    counts: bool = True
    drafts: bool = True
    tells_requests: bool = False
    foreign_tokens: int = 0
    """Tokens that somebody else is served during every request."""

    restarts: bool = False
    """With the first request; give it ``totals`` of an earlier life."""

    loops: bool = False
    shift: float = 0.0
    """Added to every log-probability."""

    caches: bool = True
    raw: dict[str, bytes] = field(default_factory=dict)
    """Path -> the whole answer, as bytes on the wire; takes the place of everything else."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    seen: set[tuple[str, str]] = field(default_factory=set)
    totals: dict[str, int] = field(default_factory=dict)

    def metrics(self) -> str:
        """The page as it stands."""
        names = ("generation_tokens", "prefix_cache_hits")
        lines = [f'vllm:{name}_total{{engine="0"}} {self.totals.get(name, 0)}' for name in names]
        lines.append(f'vllm:request_success_total{{engine="0"}} {self.totals.get("requests", 0)}')
        if self.counts:
            spec = 'vllm:spec_decode_num_{0}_total{{engine="0"{1}}} {2}'
            lines += [
                spec.format(n, "", self.totals.get(n, 0))
                for n in ("drafts", "draft_tokens", "accepted_tokens")
            ]
            lines += [
                spec.format("accepted_tokens_per_pos", f',position="{i}"', self.totals.get(f"pos{i}", 0))
                for i in range(WIDTH)
            ]
        return "\n".join(lines) + "\n"

    def answer(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of one answer, its tokens counted."""
        self.requests.append(body)
        messages = body.get("messages")
        prompt = messages[0]["content"] if messages else body["prompt"]
        thinking = body.get("chat_template_kwargs", {}).get("enable_thinking")
        is_warm = self.caches and (prompt, body.get("cache_salt", "")) in self.seen
        self.seen.add((prompt, body.get("cache_salt", "")))
        is_long = len(prompt) > 1000
        kept = self.kept_warm if is_warm and is_long else self.kept_long if is_long else self.kept
        kept = self.kept_thinking if thinking else kept
        tokens, steps = 1, list[int]()
        text = "again and " if self.loops else STORY
        yield {"choices": [{"delta": {"role": "assistant", "content": ""}} if messages else {"text": ""}]}
        yield self._event(messages, (text * 9)[:5])
        while tokens < body["max_tokens"]:
            steps.append(_PATTERNS[kept][len(steps) % 4] if self.drafts else 0)
            got = min(steps[-1] + 1, body["max_tokens"] - tokens)
            yield self._event(messages, (text * 90)[5 * tokens : 5 * (tokens + got)])
            tokens += got
        self._count(tokens, steps, len(prompt) // 4 if is_warm else 0)
        usage = {"prompt_tokens": len(prompt) // 4 + 4 * (thinking is False and self.knows_thinking)}
        last: dict[str, Any] = {"choices": [], "usage": usage | {"completion_tokens": tokens}}
        if self.tells_requests:
            last["metrics"] = {"speculative_decoding": _request_metrics(steps)}
        yield last

    def _event(self, messages: object, text: str) -> dict[str, Any]:
        return {"choices": [{"delta": {"content": text}} if messages else {"text": text}]}

    def _count(self, tokens: int, steps: list[int], hits: int) -> None:
        added = {
            "generation_tokens": tokens + self.foreign_tokens,
            "requests": 1 + (self.foreign_tokens > 0),
            "prefix_cache_hits": hits,
        }
        if self.drafts:
            added |= {"drafts": len(steps), "draft_tokens": WIDTH * len(steps), "accepted_tokens": sum(steps)}
            added |= {f"pos{i}": sum(kept > i for kept in steps) for i in range(WIDTH)}
        if self.restarts and len(self.requests) == 1:
            self.totals.clear()
        for name, number in added.items():
            self.totals[name] = self.totals.get(name, 0) + number

    def scored(self, text: str) -> dict[str, Any]:
        """Log-probabilities of a prompt, one byte a token."""
        entries = [
            {str(byte): {"logprob": -(byte % 7) / 2 + self.shift, "rank": 1}} for byte in text.encode()
        ]
        return {"choices": [{"text": "x", "prompt_logprobs": [None, *entries[1:]]}]}


def _request_metrics(steps: list[int]) -> dict[str, Any]:
    """What vLLM adds to an answer."""
    return {
        "mean_acceptance_length": 1 + sum(steps) / len(steps),
        "draft_acceptance_rate": sum(steps) / (WIDTH * len(steps)),
        "acceptance_histogram": [steps.count(kept) for kept in range(WIDTH + 1)],
        "num_spec_steps": len(steps),
        "num_accepted_draft_tokens": sum(steps),
        "num_draft_tokens": WIDTH * len(steps),
        "num_spec_tokens": WIDTH,
        "per_step_accepted": steps,
        "per_step_drafted": [WIDTH] * len(steps),
    }


class Handler(BaseHTTPRequestHandler):
    """One request to the server's script."""

    server: "ScriptedServer"

    def do_GET(self) -> None:
        """Models and metrics."""
        if self._raw():
            return
        if self.path == "/v1/models":
            self._send(json.dumps({"data": [{"id": "m", "max_model_len": 8192}]}))
        elif self.path == "/metrics":
            self._send(self.server.script.metrics())
        else:
            self._send("", 404)

    def do_POST(self) -> None:
        """Answers, streamed or whole."""
        script = self.server.script
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._raw():
            return
        if "prompt_logprobs" in body:
            self._send(json.dumps(script.scored(body["prompt"])))
        elif "messages" in body and not script.has_template:
            self._send('{"error": {"message": "no chat template"}}', 400)
        elif not body.get("stream"):
            self._send('{"choices": [{"message": {"content": "x"}}]}')
        else:
            events = [f"data: {json.dumps(event)}\n\n" for event in script.answer(body)]
            self._send("".join(events) + "data: [DONE]\n\n")

    def _raw(self) -> bool:
        data = self.server.script.raw.get(self.path)
        if data is not None:
            self.wfile.write(data)
            self.close_connection = True
        return data is not None

    def _send(self, text: str, status: int = 200) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Requests are not news."""


class ScriptedServer(ThreadingHTTPServer):
    """A server with its script."""

    def __init__(self, script: Script) -> None:
        """Listen on a free port of loopback."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """The server's address while it runs."""
    server = ScriptedServer(script)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
