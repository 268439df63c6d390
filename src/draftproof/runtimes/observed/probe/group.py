"""Group: prompts of one kind asked one after the other, with a look at the counters before and after."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from draftproof.errors import CouldNotLook
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding
from draftproof.findings.place import at_file
from draftproof.runtimes.observed import vllm
from draftproof.runtimes.observed.pages import Page, acceptances, added, scrape
from draftproof.runtimes.observed.pooling import by_steps
from draftproof.runtimes.observed.probe.client import Client
from draftproof.runtimes.observed.stream import Answer, of_chunks
from draftproof.speculation.acceptance import Acceptance, Window
from draftproof.speculation.stats import Step

__all__ = ["Group", "Measured", "look", "measure"]

_SETTLE_S = 2.0
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Group:
    """What the prompts have in common."""

    length: str
    """``short`` or ``long``."""

    cache: str
    """``cold`` or ``warm``."""

    thinking: bool | None = None
    """None: left to the template."""

    @property
    def name(self) -> str:
        """In words."""
        mode = "" if self.thinking is None else f", thinking {'on' if self.thinking else 'off'}"
        return f"{self.length}, {self.cache}{mode}"


@dataclass(frozen=True, slots=True)
class Measured:
    """A group, asked."""

    group: Group
    answers: tuple[Answer, ...]
    acceptances: tuple[Acceptance, ...]
    """The most trustworthy first: the requests' own metrics, then counters, then chunks."""

    steps: tuple[tuple[Step, ...], ...]
    """The steps of each request, where the server lists them."""

    findings: tuple[Finding, ...]
    cached_tokens: int | None
    """Prompt tokens that were found in the cache; None where the server does not tell it."""

    @property
    def acceptance(self) -> Acceptance | None:
        """The record to go by."""
        return self.acceptances[0] if self.acceptances else None

    @property
    def num_tokens(self) -> int | None:
        """Tokens of all answers."""
        counts = [answer.num_tokens for answer in self.answers]
        return sum(count for count in counts if count is not None) if None not in counts else None

    @property
    def num_prompt_tokens(self) -> int | None:
        """Tokens of all prompts."""
        counts = [answer.num_prompt_tokens for answer in self.answers]
        return sum(count for count in counts if count is not None) if None not in counts else None

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens after the first by the time they took, pooled; by usage, never by chunks."""
        spans = [(a.num_tokens, a.last_s - a.first_s) for a in self.answers if a.first_s and a.last_s]
        tokens = sum(count - 1 for count, _ in spans if count)
        seconds = sum(span for _, span in spans)
        return tokens / seconds if tokens > 0 and seconds > 0 else None

    def as_dict(self) -> dict[str, object]:
        """The group for ``--json``."""
        return {
            "group": self.group.name,
            "requests": len(self.answers),
            "prompt_tokens": self.num_prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "tokens": self.num_tokens,
            "chunks": sum(answer.num_chunks for answer in self.answers),
            "tokens_per_second": self.tokens_per_second,
            "acceptances": [record.as_dict() for record in self.acceptances],
        }


def look(client: Client) -> Page | CouldNotLook:
    """The server's counters now, or why there are none."""
    try:
        return scrape(client.address, timeout_seconds=client.timeout_seconds)
    except CouldNotLook as error:
        return error


def measure(client: Client, group: Group, prompts: Sequence[str], salts: Sequence[str]) -> Measured:
    """Ask every prompt once.

    Raises:
        CouldNotLook: one of the requests got no answer.
    """
    before = look(client)
    answers = tuple(
        client.ask(prompt, salt=salt, thinking=group.thinking)
        for prompt, salt in zip(prompts, salts, strict=True)
    )
    where = f"{client.address.shown} ({group.name})"
    records = _own(where, answers)
    findings: list[Finding] = []
    hits: int | None = None
    if isinstance(before, Page):
        after = _settled(client, before, sum(answer.num_tokens or 0 for answer in answers))
        if isinstance(after, Page):
            difference, findings = added(after, before)
            findings += _foreign(where, difference, answers)
            totals = [r for r in acceptances(difference) if r.estimator.window is Window.BETWEEN_SCRAPES]
            is_idle = difference.traffic.generated == 0
            records += [] if is_idle else totals
            hits = difference.traffic.cache_hit
    records += _chunked(where, answers)
    steps = tuple(
        tuple(vllm.steps_of(answer.speculation, where))
        for answer in answers
        if answer.speculation is not None
    )
    return Measured(group, answers, tuple(records), steps, tuple(findings), _cached(answers, hits))


def _own(where: str, answers: Sequence[Answer]) -> list[Acceptance]:
    """The requests' own metrics pooled: nobody else's tokens can be in them."""
    told = [answer.speculation for answer in answers if answer.speculation is not None]
    if not told or len(told) < len(answers):
        return []
    pooled = by_steps(where, [vllm.of_request(where, said) for said in told], Window.OWN_STEPS)
    return [pooled] if pooled else []


def _settled(client: Client, before: Page, num_tokens: int) -> Page | CouldNotLook:
    """The counters once they hold what was just answered: an engine may count a moment later."""
    deadline = time.monotonic() + _SETTLE_S
    while True:
        after = look(client)
        if not isinstance(after, Page) or time.monotonic() > deadline:
            return after
        generated = after.traffic.minus(before.traffic).generated
        if generated is None or generated >= num_tokens:
            return after
        time.sleep(_PAUSE_S)


def _foreign(where: str, difference: Page, answers: Sequence[Answer]) -> list[Finding]:
    """Whether more was served than was asked here."""
    traffic = difference.traffic
    counts = [answer.num_tokens for answer in answers]
    own = sum(count for count in counts if count is not None)
    told = []
    if traffic.generated is not None and None not in counts and traffic.generated > own:
        told.append(f"{traffic.generated} tokens instead of {own}")
    if traffic.requests is not None and traffic.requests > len(answers):
        told.append(f"{traffic.requests} requests instead of {len(answers)}")
    if traffic.running:
        told.append(f"{traffic.running} requests still running")
    if not told:
        return []
    return [
        found(
            "observed-foreign-traffic",
            "counters",
            expected="the requests of this probe alone",
            found=", ".join(told),
            at=at_file(where),
        )
    ]


def _chunked(where: str, answers: Sequence[Answer]) -> list[Acceptance]:
    record = of_chunks(where, answers)
    return [record] if record else []


def _cached(answers: Sequence[Answer], hits: int | None) -> int | None:
    """By the answers' usage where it tells it, else by the counters."""
    told = [answer.num_cached_tokens for answer in answers]
    return sum(count for count in told if count is not None) if told and None not in told else hits
