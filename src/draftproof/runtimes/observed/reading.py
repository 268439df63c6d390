"""Reading: all that one page, log or answer says of acceptance, and what it does not say.

``read`` takes an address or a file; what is in it is told by its own form, never by its name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from draftproof.errors import CouldNotLook
from draftproof.findings.finding import Finding, NotLooked
from draftproof.runtimes.observed.answers import read_answers
from draftproof.runtimes.observed.http import address_of
from draftproof.runtimes.observed.judge import identities, judge
from draftproof.runtimes.observed.logs import from_line
from draftproof.runtimes.observed.pages import Page, acceptances, added, page_of, scrape, why_nothing
from draftproof.runtimes.observed.pooling import by_steps
from draftproof.runtimes.observed.prometheus import is_metrics
from draftproof.speculation.acceptance import Acceptance, Window

__all__ = ["Reading", "read", "read_page", "read_text"]

MOST_FILE_BYTES = 256 * 2**20
_MOST_INTERVALS = 10_000
_DIFFUSION = "DiffusionDecoding metrics: "


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, the most comprehensive record first."""

    where: str
    engine: str | None
    """``vLLM``, ``SGLang``, ``llama.cpp``; None where nothing tells it."""

    acceptances: tuple[Acceptance, ...]
    findings: tuple[Finding, ...]
    not_looked: tuple[NotLooked, ...]

    @property
    def acceptance(self) -> Acceptance | None:
        """The record to show where there is room for one."""
        return self.acceptances[0] if self.acceptances else None

    def as_dict(self) -> dict[str, object]:
        """The reading for ``--json``."""
        return {
            "where": self.where,
            "engine": self.engine,
            "acceptances": [record.as_dict() for record in self.acceptances],
            "findings": [finding.as_dict() for finding in self.findings],
            "not_looked": [entry.as_dict() for entry in self.not_looked],
        }


def read(source: str, *, timeout_seconds: float = 10.0, credential: str | None = None) -> Reading:
    """What a server (``http://...``) or a file (metrics, log, answers, stream) says of acceptance.

    Raises:
        CouldNotLook: it cannot be reached or read, or is none of these.
        UsageError: the address is none.
    """
    if re.match(r"https?://", source):
        return read_page(scrape(address_of(source, credential), timeout_seconds=timeout_seconds))
    return read_text(text_of(source), source)


def text_of(path: str) -> str:
    """The text of a recorded file. Raises CouldNotLook where it cannot be read or is too large."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unread(path, str(error)) from error
    if len(data) > MOST_FILE_BYTES:
        raise _unread(path, f"more than {MOST_FILE_BYTES} bytes")
    return data.decode("utf-8", "replace")


def read_text(text: str, where: str) -> Reading:
    """What a text says, by its form.

    Raises:
        CouldNotLook: it has one of the forms and breaks its rules, or is of no form that is known.
    """
    begin = text.lstrip()
    if begin.startswith(("{", "[", "data:")) and not re.match(
        r"\[\d{4}-", begin
    ):  # SGLang's log has [2026-...
        engine, records, findings, missing = read_answers(text, where)
        return _judged(where, engine, records, findings, missing)
    if is_metrics(begin):
        return read_page(page_of(text, where))
    return _of_log(text, where)


def read_page(page: Page, before: Page | None = None) -> Reading:
    """A look by itself, or with an earlier one: then what was added in between."""
    findings: list[Finding] = []
    if before is not None:
        page, findings = added(page, before)
    records = acceptances(page)
    missing = [] if records or findings else [NotLooked("acceptance", why_nothing(page))]
    return _judged(page.where, page.engine, records, findings, missing)


def _of_log(text: str, where: str) -> Reading:
    records: list[Acceptance] = []
    missing: list[NotLooked] = []
    num_idle = 0
    for number, line in enumerate(text.splitlines(), 1):
        record = from_line(line, f"{where} line {number}")
        if record is not None:
            num_idle += record.num_drafted.value == 0
            records += [record] if record.num_drafted.value != 0 else []
        elif _DIFFUSION in line and not missing:
            missing.append(
                NotLooked("acceptance", f"{where} line {number}: a diffusion model drafts nothing")
            )
    records = records[-_MOST_INTERVALS:]
    if not records:
        reason = f"{where}: no line tells acceptance (vLLM, SGLang and llama.cpp lines are known)"
        if num_idle:
            reason = f"{where}: nothing was drafted in any of its {num_idle} intervals"
        return _judged(where, None, [], [], missing or [NotLooked("acceptance", reason)])
    own = [record for record in records if record.estimator.source == records[-1].estimator.source]
    window = own[-1].estimator.window
    pooled = by_steps(where, own, window) if len(own) > 1 and window is not Window.SINCE_START else None
    engine = own[-1].estimator.source.partition(" ")[0]
    latest_first = own[::-1]
    return _judged(where, engine, [pooled, *latest_first] if pooled else latest_first, [], missing)


def _judged(
    where: str,
    engine: str | None,
    records: Sequence[Acceptance],
    findings: Sequence[Finding],
    missing: Sequence[NotLooked],
) -> Reading:
    """The reading with what its first record says and what contradicts itself in others, each once."""
    told: dict[tuple[str, str], Finding] = {}
    first = judge(records[0]) if records else ()
    rest = (finding for record in records[1:] for finding in identities(record))
    for finding in (*findings, *first, *rest):
        told.setdefault((finding.id, finding.subject), finding)
    return Reading(where, engine, tuple(records), tuple(told.values()), tuple(missing))


def _unread(source: str, why: str) -> CouldNotLook:
    return CouldNotLook(
        source,
        expected="a file of metrics, log lines or answers",
        found=why,
        where=source,
        means="nothing was read, so nothing is known about it",
        next_step="name a file that exists, or the server's address (http://HOST:PORT)",
    )
