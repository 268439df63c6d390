"""A streamed answer (server-sent events): its text, its tokens, its chunks and what the engine adds.

A chunk is what one step sent, one token or several: chunks are counted as steps and never as tokens.
Source: OpenAI chat and completion streams as vLLM and SGLang send them.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from draftproof.config.raw import JsonValue
from draftproof.errors import CouldNotLook
from draftproof.runtimes.observed.json_fields import json_of
from draftproof.speculation.acceptance import Acceptance, Estimator, Figure, Weighting, Window, absent

__all__ = ["Answer", "of_chunks", "read_stream"]

_DATA = "data:"
_END = "[DONE]"
_SHOWN = 300


@dataclass(slots=True)
class Answer:
    """What one request brought."""

    text: str = ""
    thought: str = ""
    """What the server set apart as reasoning."""

    num_chunks: int = 0
    """Events of steps, the prefill's among them."""

    usage: Mapping[str, JsonValue] = field(default_factory=dict)
    speculation: Mapping[str, JsonValue] | None = None
    """vLLM's ``metrics.speculative_decoding``."""

    first_s: float | None = None
    last_s: float | None = None
    """Clock readings of the first and last chunk."""

    @property
    def num_tokens(self) -> int | None:
        """Tokens made, as the server counts them; never the chunks."""
        return self._usage("completion_tokens")

    @property
    def num_prompt_tokens(self) -> int | None:
        """Tokens of the prompt as rendered."""
        return self._usage("prompt_tokens")

    @property
    def num_cached_tokens(self) -> int | None:
        """Prompt tokens found in the cache, where the server was told to say so."""
        details = self.usage.get("prompt_tokens_details")
        value = details.get("cached_tokens") if isinstance(details, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _usage(self, key: str) -> int | None:
        value = self.usage.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def read_stream(lines: Iterable[str], where: str) -> Answer:
    """The whole of a stream.

    Raises:
        CouldNotLook: an event is no JSON object, or carries an error.
    """
    answer = Answer()
    for line in lines:
        if not line.startswith(_DATA):
            continue
        data = line[len(_DATA) :].strip()
        if data == _END:
            break
        event = json_of(data, where)
        if not isinstance(event, dict) or "error" in event:
            raise CouldNotLook(
                "stream",
                expected="events of an answer",
                found=data[:_SHOWN],
                where=where,
                means="the server broke the answer off; nothing of it is used",
                next_step="see the server's log",
            )
        _take(answer, event)
    return answer


def of_chunks(where: str, answers: Sequence[Answer]) -> Acceptance | None:
    """The length that streams give when every step sends one chunk; None where usage or steps are not told.

    The first chunk of each is its prefill's one token and no step.
    """
    tokens, steps = 0, 0
    for answer in answers:
        if answer.num_tokens is None or answer.num_chunks > answer.num_tokens:
            return None
        if answer.num_chunks > 1:
            tokens += answer.num_tokens - 1
            steps += answer.num_chunks - 1
    if not steps:
        return None
    uncounted = "a stream shows steps and tokens, no drafts"
    window = Window.ONE_REQUEST if len(answers) == 1 else Window.OWN_STEPS
    return Acceptance(
        where,
        Estimator("stream chunks", Weighting.STEPS, window, caution="if every step sends one chunk"),
        *(absent(uncounted), absent(uncounted), absent(uncounted)),
        absent(uncounted),
        Figure(tokens / steps, "tokens after the first / chunks after the first"),
        absent(uncounted),
        absent(uncounted),
    )


def _take(answer: Answer, event: Mapping[str, JsonValue]) -> None:
    usage, metrics, choices = event.get("usage"), event.get("metrics"), event.get("choices")
    if isinstance(usage, dict):
        answer.usage = usage
    said = metrics.get("speculative_decoding") if isinstance(metrics, dict) else None
    if isinstance(said, dict):
        answer.speculation = said
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict) and _add(answer, choice):
            now = time.perf_counter()
            answer.num_chunks += 1
            answer.first_s = now if answer.first_s is None else answer.first_s
            answer.last_s = now


def _add(answer: Answer, choice: Mapping[str, JsonValue]) -> bool:
    """Whether the choice is one of a step: its text may be empty, where a token ends inside a character."""
    delta = choice.get("delta")
    said = delta if isinstance(delta, dict) else choice
    content = said.get("content") if said is delta else said.get("text")
    thought = said.get("reasoning_content") or said.get("reasoning")
    answer.text += content if isinstance(content, str) else ""
    answer.thought += thought if isinstance(thought, str) else ""
    announces = bool(said.get("role")) and not content and not thought
    return not announces and (isinstance(content, str) or isinstance(thought, str))
