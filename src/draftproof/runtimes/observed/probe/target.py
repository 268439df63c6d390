"""The target alone, looked at first: what it writes, and what probabilities it gives to known texts.

Drafts are verified, so every text is the target's own; and a prompt's log-probabilities come from a prefill,
in which no drafter takes part. A target served wrongly looks like a drafter fault from everywhere else.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from draftproof.config.raw import JsonValue
from draftproof.errors import CouldNotLook
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.place import at_file
from draftproof.runtimes.observed.json_fields import json_of, number_of
from draftproof.runtimes.observed.probe.client import Client
from draftproof.runtimes.observed.stream import Answer

__all__ = ["SCHEMA", "Scored", "compare", "looped", "read_reference", "reference_text", "repeats", "score"]

SCHEMA = "draftproof.logprobs/1"

FEWEST_CHARACTERS = 48
"""Shorter answers repeat themselves for good reasons."""

LOOPED_SHARE = 0.5
"""So much of an answer, at its end, must be one unit over and over, three times at least."""

SAME_MEAN, OTHER_MEAN = 0.1, 0.5
"""Nats per token: bfloat16 against float32 differs by 0.03 on average, another model by more than 1."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One text with the target's log-probability of each of its tokens after the first, which has none."""

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


def looped(text: str) -> float:
    """The share of a text, at its end, that is one unit at least three times over; 0.0 where there is none.

    The borders of the reversed text give the shortest period of each of its beginnings in one pass.
    """
    mirrored = text[::-1]
    border = [0] * len(mirrored)
    longest = 0
    for i in range(1, len(mirrored)):
        k = border[i - 1]
        while k and mirrored[i] != mirrored[k]:
            k = border[k - 1]
        border[i] = k + (mirrored[i] == mirrored[k])
        period = i + 1 - border[i]
        if i + 1 >= 3 * period:
            longest = i + 1
    return longest / len(text) if text else 0.0


def repeats(where: str, answers: Sequence[Answer]) -> list[Finding]:
    """Whether most of what the target wrote ends in a loop."""
    texts = [answer.thought + answer.text for answer in answers]
    long = [text for text in texts if len(text) >= FEWEST_CHARACTERS]
    shares = [looped(text) for text in long]
    bad = [share for share in shares if share >= LOOPED_SHARE]
    if not bad or 2 * len(bad) < len(long):
        return []
    return [
        found(
            "target-repeats",
            "answers",
            expected="texts that go on",
            found=f"{len(bad)} of {len(long)} answers end in a loop, {max(bad):.0%} of the worst",
            at=at_file(where),
        )
    ]


def score(client: Client, texts: Sequence[str], engine: str | None) -> list[Scored]:
    """The served target's log-probabilities of the texts.

    Raises:
        CouldNotLook: this server does not give them.
    """
    ask = _score_sglang if engine == "SGLang" else _score_vllm
    return [ask(client, text) for text in texts]


def _score_vllm(client: Client, text: str) -> Scored:
    body: dict[str, JsonValue] = {
        "model": client.model,
        "prompt": text,
        "max_tokens": 1,
        "temperature": 0,
        "prompt_logprobs": 0,
        "add_special_tokens": False,
    }
    said = client.post("/v1/completions", body)
    choices = said.get("choices") if isinstance(said, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    entries = choice.get("prompt_logprobs") if isinstance(choice, dict) else None
    if not isinstance(entries, list) or not entries or not isinstance(choice, dict):
        raise _unscored(client, "no prompt_logprobs")
    ids: list[int] = []
    logprobs: list[float] = []
    where = f"{client.address.shown}/v1/completions"
    for entry in entries[1:]:
        # No alternatives were asked for: the first of an entry is the prompt's own token.
        if not isinstance(entry, dict) or not entry:
            raise _unscored(client, "an entry of prompt_logprobs without a token")
        token, value = next(iter(entry.items()))
        if not token.isdecimal() or not isinstance(value, dict):
            raise _unscored(client, f"a token {token!r}")
        ids.append(int(token))
        logprobs.append(number_of(value, "logprob", where))
    return Scored(text, tuple(ids), tuple(logprobs))


def _score_sglang(client: Client, text: str) -> Scored:
    body: dict[str, JsonValue] = {
        "text": text,
        "sampling_params": {"max_new_tokens": 1, "temperature": 0},
        "return_logprob": True,
        "logprob_start_len": 0,
    }
    said = client.post("/generate", body)
    meta = said.get("meta_info") if isinstance(said, dict) else None
    entries = meta.get("input_token_logprobs") if isinstance(meta, dict) else None
    if not isinstance(entries, list) or not entries:
        raise _unscored(client, "no input_token_logprobs")
    ids: list[int] = []
    logprobs: list[float] = []
    for entry in entries[1:]:
        if not isinstance(entry, list) or len(entry) < 2 or not isinstance(entry[1], int):  # noqa: PLR2004
            raise _unscored(client, "an entry of input_token_logprobs that is no pair")
        value = entry[0]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise _unscored(client, f"a log-probability {value!r}")
        ids.append(entry[1])
        logprobs.append(float(value))
    return Scored(text, tuple(ids), tuple(logprobs))


def compare(where: str, served: Sequence[Scored], reference: Sequence[Scored]) -> list[Finding]:
    """Whether the served target gives the reference's probabilities, token for token.

    Raises:
        CouldNotLook: the reference is of other texts.
    """
    if [one.text for one in served] != [one.text for one in reference]:
        raise _other_texts(where)
    for one, other in zip(served, reference, strict=True):
        if one.token_ids != other.token_ids:
            return [_differs(where, "the same tokens", f"other tokens for {one.text[:40]!r}", Severity.ERROR)]
    gaps = [
        abs(a - b)
        for one, other in zip(served, reference, strict=True)
        for a, b in zip(one.logprobs, other.logprobs, strict=True)
    ]
    mean, worst = math.fsum(gaps) / len(gaps), max(gaps)
    if mean <= SAME_MEAN:
        return []
    severity = Severity.ERROR if mean > OTHER_MEAN else Severity.NOTE
    told = f"{mean:.3f} on average, {worst:.3f} at worst, over {len(gaps)} tokens"
    return [_differs(where, f"log-probabilities within {SAME_MEAN} on average", told, severity)]


def _differs(where: str, expected: str, told: str, severity: Severity) -> Finding:
    return found(
        "target-differs",
        "log-probabilities",
        expected=expected,
        found=told,
        at=at_file(where),
        severity=severity,
    )


def reference_text(scored: Sequence[Scored]) -> str:
    """The texts and their log-probabilities as a file to compare later servers with."""
    texts = [
        {"text": one.text, "token_ids": list(one.token_ids), "logprobs": list(one.logprobs)} for one in scored
    ]
    return json.dumps({"schema": SCHEMA, "texts": texts}, indent=1) + "\n"


def read_reference(text: str, where: str) -> list[Scored]:
    """A file that ``reference_text`` wrote.

    Raises:
        CouldNotLook: it is none.
    """
    said = json_of(text, where)
    if not isinstance(said, dict) or said.get("schema") != SCHEMA or not isinstance(said.get("texts"), list):
        raise _no_reference(where, f"schema {said.get('schema') if isinstance(said, dict) else None}")
    texts = said["texts"]
    return [
        _scored(entry, f"{where}#/texts/{i}")
        for i, entry in enumerate(texts if isinstance(texts, list) else [])
    ]


def _scored(entry: JsonValue, where: str) -> Scored:
    said: Mapping[str, JsonValue] = entry if isinstance(entry, dict) else {}
    text, ids, logprobs = (said.get(key) for key in ("text", "token_ids", "logprobs"))
    if not isinstance(text, str) or not isinstance(ids, list) or not isinstance(logprobs, list):
        raise _no_reference(where, "an entry without text, token_ids and logprobs")
    numbers = [
        x for x in logprobs if isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
    ]
    tokens = [x for x in ids if isinstance(x, int) and not isinstance(x, bool)]
    if not numbers or len(numbers) != len(logprobs) or len(tokens) != len(ids) or len(tokens) != len(numbers):
        raise _no_reference(where, "lists that are not numbers, one for each token")
    return Scored(text, tuple(tokens), tuple(float(x) for x in numbers))


def _no_reference(where: str, told: str) -> CouldNotLook:
    return CouldNotLook(
        "--reference",
        expected=f"a file of schema {SCHEMA}, or a target's directory",
        found=told,
        where=where,
        means="the served target was compared with nothing",
        next_step="write one with draftproof probe URL --write-reference FILE, from a server that you trust",
    )


def _other_texts(where: str) -> CouldNotLook:
    return CouldNotLook(
        "--reference",
        expected="the texts that this version asks for",
        found="other texts",
        where=where,
        means="the served target was compared with nothing",
        next_step="write the reference anew with this version",
    )


def _unscored(client: Client, told: str) -> CouldNotLook:
    return CouldNotLook(
        "log-probabilities",
        expected="one for each token of a prompt",
        found=told,
        where=client.address.shown,
        means="the served target was not compared with the reference",
        next_step="vLLM and SGLang give them; others are not asked yet",
    )
