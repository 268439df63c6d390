"""Smoke: one greedy request by token ids, since some faults fire at the first draft only."""

from dataclasses import dataclass

from draftproof.config.raw import JsonValue
from draftproof.errors import CouldNotLook
from draftproof.runtimes.observed.http import Address, exchange
from draftproof.runtimes.observed.json_fields import json_of

__all__ = ["Smoke", "smoke"]

_PROMPT = (5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
"""Any ids that every vocabulary has."""

_NUM_TOKENS = 48


@dataclass(frozen=True, slots=True)
class Smoke:
    """One request and what it was answered."""

    num_tokens: int
    error: str
    """Empty where an answer came."""

    fingerprint: str
    """The engine's own digest of its configuration, where it gives one."""

    def as_dict(self) -> dict[str, JsonValue]:
        """For ``--json``."""
        return {"num_tokens": self.num_tokens, "error": self.error, "fingerprint": self.fingerprint}


def smoke(address: Address, model: str, *, timeout_seconds: float) -> Smoke:
    """Ask for a few tokens. An error of the server is the answer, not an exception."""
    body: dict[str, JsonValue] = {
        "model": model,
        "prompt": [*_PROMPT],
        "max_tokens": _NUM_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
    }
    try:
        _, text = exchange(address, "/v1/completions", body=body, timeout_seconds=timeout_seconds)
        said = json_of(text, f"{address.shown}/v1/completions")
    except CouldNotLook as error:
        return Smoke(0, error.found, "")
    usage = said.get("usage") if isinstance(said, dict) else None
    number = usage.get("completion_tokens") if isinstance(usage, dict) else None
    mark = said.get("system_fingerprint") if isinstance(said, dict) else None
    count = number if isinstance(number, int) else 0
    return Smoke(count, "" if count else "an answer without tokens", mark if isinstance(mark, str) else "")
