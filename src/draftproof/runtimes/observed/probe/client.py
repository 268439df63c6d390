"""Client: one model of one server, asked one request at a time, greedily and streaming."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from draftproof.config.raw import JsonValue
from draftproof.errors import CouldNotLook
from draftproof.runtimes.observed.http import Address, exchange, lines_of
from draftproof.runtimes.observed.json_fields import json_of
from draftproof.runtimes.observed.stream import Answer, read_stream

__all__ = ["Client", "connect"]


@dataclass(frozen=True, slots=True)
class Client:
    """Who is asked, and how."""

    address: Address
    model: str
    max_length: int | None
    """Longest prompt and answer together, where the server tells it."""

    is_chat: bool
    """False: the model has no chat template, prompts go in as they are."""

    num_tokens: int
    timeout_seconds: float

    def ask(self, prompt: str, *, salt: str, thinking: bool | None = None) -> Answer:
        """One answer. ``salt`` keeps its prefix apart in the cache; ``thinking`` is left open where None.

        Raises:
            CouldNotLook: no answer in time, or none of the API.
        """
        body: dict[str, JsonValue] = {
            "model": self.model,
            "max_tokens": self.num_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "cache_salt": salt,
        }
        if self.is_chat:
            body["messages"] = [{"role": "user", "content": prompt}]
            path = "/v1/chat/completions"
            if thinking is not None:
                body["chat_template_kwargs"] = {"enable_thinking": thinking}
        else:
            body["prompt"] = prompt
            path = "/v1/completions"
        lines = lines_of(self.address, path, body, timeout_seconds=self.timeout_seconds)
        return read_stream(lines, f"{self.address.shown}{path}")

    def post(self, path: str, body: Mapping[str, JsonValue]) -> JsonValue:
        """One answer that is not streamed. Raises CouldNotLook as ``ask``."""
        _, text = exchange(self.address, path, body=body, timeout_seconds=self.timeout_seconds)
        return json_of(text, f"{self.address.shown}{path}")


def connect(address: Address, model: str | None, *, num_tokens: int, timeout_seconds: float) -> Client:
    """The client for a model that the server has; the only one where none is named.

    Raises:
        CouldNotLook: there is no such server or model, or there are several and none is named.
    """
    _, text = exchange(address, "/v1/models", timeout_seconds=timeout_seconds)
    where = f"{address.shown}/v1/models"
    said = json_of(text, where)
    entries = said.get("data") if isinstance(said, dict) else None
    models: dict[str, int | None] = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            length = entry.get("max_model_len")
            models[str(entry["id"])] = length if isinstance(length, int) and length > 0 else None
    named = model if model is not None else next(iter(models)) if len(models) == 1 else None
    if named not in models:
        raise CouldNotLook(
            "model",
            expected="the one model of the server" if model is None else model,
            found=", ".join(models)[:300] or "no model",
            where=where,
            means="nothing was asked",
            next_step="name one of them with --model",
        )
    assert named is not None  # noqa: S101 - it is a key of the table
    client = Client(address, named, models[named], True, num_tokens, timeout_seconds)
    return client if _has_template(client) else replace(client, is_chat=False)


def _has_template(client: Client) -> bool:
    """Whether the model can be chatted with: asked for one token, since no endpoint tells it."""
    body: dict[str, JsonValue] = {
        "model": client.model,
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 1,
    }
    status, text = exchange(
        client.address,
        "/v1/chat/completions",
        body=body,
        timeout_seconds=client.timeout_seconds,
        other=(400, 404, 422),
    )
    return status == 200 and isinstance(json_of(text, client.address.shown), dict)  # noqa: PLR2004 - HTTP
