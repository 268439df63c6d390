"""Probe: everything asked of one server, in one order, and the report of it.

The target first, then short prompts on a cold cache, long ones on a cold and a warm one, thinking on and off.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from draftproof.errors import CouldNotLook
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.runtimes.observed.pages import Page
from draftproof.runtimes.observed.probe.client import Client
from draftproof.runtimes.observed.probe.group import Group, Measured, look, measure
from draftproof.runtimes.observed.probe.prompts import Prompts, load_prompts
from draftproof.runtimes.observed.probe.target import Scored, compare, repeats, score
from draftproof.runtimes.observed.probe.verdict import differences, of_group

__all__ = ["Probe", "probe"]

LONG_TOKENS = 3000
"""Beyond the window of 2048 that published drafters have."""

_SPARE_TOKENS = 64
_FEWEST_LONG = 2
"""A long prompt is so many times a short one, or there is no point in it."""

SHORT, LONG, WARM = Group("short", "cold"), Group("long", "cold"), Group("long", "warm")
ON, OFF = Group("short", "cold", thinking=True), Group("short", "cold", thinking=False)


@dataclass(frozen=True, slots=True)
class Probe:
    """What ``draftproof probe`` says."""

    server: str
    model: str
    engine: str | None
    prompts: str
    """The digest of what was asked."""

    groups: tuple[Measured, ...]
    scored: tuple[Scored, ...]
    """The target's log-probabilities of the reference texts, where they were asked for."""

    findings: tuple[Finding, ...]
    not_looked: tuple[NotLooked, ...]

    @property
    def exit_code(self) -> int:
        """1 where anything but notes was found; else 3 where something required was not looked at; else 0."""
        if any(finding.severity is not Severity.NOTE for finding in self.findings):
            return 1
        return 3 if any(entry.is_required for entry in self.not_looked) else 0

    @property
    def verdict(self) -> str:
        """In one sentence."""
        first = self.groups[0].acceptance if self.groups else None
        tau = first.tau.value if first is not None else None
        length = f"tau {tau:.2f} on short prompts" if tau is not None else "no acceptance could be read"
        grave = list(dict.fromkeys(f.id for f in self.findings if f.severity is not Severity.NOTE))
        return f"{length}; {', '.join(grave) or 'no fault found'}"

    def as_dict(self) -> dict[str, object]:
        """The one object of ``--json``."""
        return {
            "schema": "draftproof.probe/1",
            "server": self.server,
            "model": self.model,
            "engine": self.engine,
            "prompts": self.prompts,
            "verdict": self.verdict,
            "groups": [measured.as_dict() for measured in self.groups],
            "findings": [finding.as_dict() for finding in self.findings],
            "not_looked": [entry.as_dict() for entry in self.not_looked],
        }


def probe(
    client: Client, *, num_prompts: int, reference: Sequence[Scored] | None, with_scores: bool = False
) -> Probe:
    """Ask everything.

    Args:
        client: the model of a server.
        num_prompts: of each group.
        reference: log-probabilities that the target should give, or None.
        with_scores: ask for log-probabilities even without a reference.

    Raises:
        CouldNotLook: the first prompts got no answer.
    """
    prompts, where = load_prompts(), f"{client.address.shown} model {client.model}"
    page = look(client)
    engine = page.engine if isinstance(page, Page) else None
    missing: list[NotLooked] = []
    if isinstance(page, CouldNotLook):
        missing.append(NotLooked("counters", f"{page.subject}: {page.found}", is_required=True))
    elif engine is None:
        missing.append(
            NotLooked("counters", f"{page.where} has no metric of vLLM or SGLang", is_required=True)
        )
    short = measure(client, SHORT, prompts.short[:num_prompts], _salts(num_prompts))
    findings = repeats(where, short.answers)
    scored = _scores(client, prompts, engine, missing) if reference or with_scores else []
    if reference and scored:
        try:
            findings += compare(where, scored, reference)
        except CouldNotLook as error:
            missing.append(NotLooked("target against reference", error.found, is_required=True))
    elif reference is None and not with_scores:
        missing.append(NotLooked("target against reference", "no --reference was given"))
    groups = [short, *_long(client, prompts, short, num_prompts, missing)]
    groups += _thinking(client, prompts, num_prompts, missing)
    for measured in groups:
        findings += of_group(measured, f"{where} ({measured.group.name})")
    findings += differences(groups, where)
    missing += _unread(groups)
    return Probe(
        client.address.shown,
        client.model,
        engine,
        prompts.digest,
        tuple(groups),
        tuple(scored),
        _once(findings),
        tuple(missing),
    )


def _scores(client: Client, prompts: Prompts, engine: str | None, missing: list[NotLooked]) -> list[Scored]:
    try:
        return score(client, prompts.reference, engine)
    except CouldNotLook as error:
        reason = f"{error.subject}: {error.found}"
        missing.append(NotLooked("target against reference", reason, is_required=True))
        return []


def _long(
    client: Client, prompts: Prompts, short: Measured, num_prompts: int, missing: list[NotLooked]
) -> list[Measured]:
    """Long prompts twice under one salt: the second time they can come from the cache."""
    tokens = short.num_prompt_tokens
    if not tokens:
        missing.append(NotLooked("long prompts", "the server does not tell the tokens of a prompt (usage)"))
        return []
    characters = sum(len(prompt) for prompt in prompts.short[:num_prompts])
    room = LONG_TOKENS
    if client.max_length is not None:
        room = min(room, client.max_length - client.num_tokens - _SPARE_TOKENS)
    if room < _FEWEST_LONG * tokens / num_prompts:
        missing.append(NotLooked("long prompts", f"the server takes {client.max_length} tokens at most"))
        return []
    # The short prompts' share of template tokens makes this a low guess of characters a token: safe.
    texts = [prompts.long(i, int(room * characters / tokens)) for i in range(num_prompts)]
    salts, measured = _salts(num_prompts), []
    try:
        measured = [measure(client, group, texts, salts) for group in (LONG, WARM)]
    except CouldNotLook as error:
        missing.append(NotLooked("long prompts", f"{error.subject}: {error.found}", is_required=True))
        return []
    cold, warm = measured
    if not warm.cached_tokens:
        reason = "the server does not tell what came from its cache"
        if warm.cached_tokens == 0:
            reason = "nothing came from the cache the second time: caching is off, or refused"
        missing.append(NotLooked("warm cache", reason))
        return [cold]
    return [cold, warm]


def _thinking(client: Client, prompts: Prompts, num_prompts: int, missing: list[NotLooked]) -> list[Measured]:
    """Thinking on and off; a template that does not know the word renders both alike."""
    if not client.is_chat:
        missing.append(NotLooked("thinking", "the model has no chat template that the server uses"))
        return []
    try:
        one = [
            client.ask(prompts.short[0], salt=_salts(1)[0], thinking=mode).num_prompt_tokens
            for mode in (True, False)
        ]
        if one[0] == one[1]:
            missing.append(
                NotLooked("thinking", "the chat template renders the same with thinking on and off")
            )
            return []
        return [
            measure(client, group, prompts.short[:num_prompts], _salts(num_prompts)) for group in (ON, OFF)
        ]
    except CouldNotLook as error:
        missing.append(NotLooked("thinking", f"{error.subject}: {error.found}", is_required=True))
        return []


def _salts(count: int) -> list[str]:
    """Strings that no earlier request had: what they go with is in nobody's cache."""
    return [secrets.token_hex(16) for _ in range(count)]


def _unread(groups: Sequence[Measured]) -> list[NotLooked]:
    """Groups without any figure of acceptance but chunks."""
    return [
        NotLooked("acceptance", f"{measured.group.name}: the server counted no drafts of these requests")
        for measured in groups
        if all(record.estimator.source == "stream chunks" for record in measured.acceptances)
    ]


def _once(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """One finding for each id and subject: groups repeat each other."""
    told: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        told.setdefault((finding.id, finding.subject), finding)
    return tuple(told.values())
