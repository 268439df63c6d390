"""Watcher: looks at a directory and at a server again and again, and keeps what it saw."""

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from draftproof.config.raw import RawConfig
from draftproof.errors import CouldNotLook, UsageError
from draftproof.findings.evidence import Evidence, read_model
from draftproof.findings.finding import NotLooked
from draftproof.names import Sha256
from draftproof.runtimes.engine_views import Asked, EngineViews, ask_before, engine_views
from draftproof.runtimes.hf.reading import read_with
from draftproof.runtimes.observed.http import Address
from draftproof.runtimes.observed.pages import Page, scrape
from draftproof.runtimes.observed.reading import Reading, read_page
from draftproof.runtimes.resolve import Preflight
from draftproof.runtimes.views import Interpreter, Views, interpret, views_of

__all__ = ["Subject", "Watcher"]

MOST_INTERVALS = 720
"""An hour at five seconds each."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is watched; at least one of directory and address."""

    directory: str | None
    intent: str | None
    target: str | None
    pythons: tuple[str, ...]
    address: Address | None
    interval_seconds: float
    timeout_seconds: float
    engine: Asked | None = None
    """The engine that is asked too, and where; its server is the one at ``address``."""

    engine_seconds: float = 180.0
    """How long its code may take to resolve the drafter: it is imported for that."""


@dataclass(slots=True)
class _Seen:
    """What is known now; replaced and appended to under the lock only."""

    views: dict[str, object] | None = None
    since_start: dict[str, object] | None = None
    intervals: deque[dict[str, object]] = field(default_factory=lambda: deque(maxlen=MOST_INTERVALS))
    trouble: dict[str, object] | None = None
    rounds: int = 0


class Watcher:
    """Looks every interval in a thread of its own; what it saw is asked for at any time."""

    def __init__(self, subject: Subject) -> None:
        """Nothing is looked at before ``start``."""
        self.subject = subject
        self._seen = _Seen()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._before: Page | None = None
        self._asked_about: tuple[Sha256, int | None] | None = None
        self._answers: tuple[Interpreter, ...] = ()
        self._resolved_for: tuple[Sha256, ...] = ()
        self._resolved: Preflight | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Look no more; a look under way is waited for no longer than its time limit."""
        self._stop.set()
        self._thread.join(self.subject.timeout_seconds + 1)

    def views(self) -> dict[str, object]:
        """The object of ``draftproof views --json``, or why there is none."""
        with self._lock:
            known = self._seen.views
        why = "no directory is watched" if self.subject.directory is None else "not looked at yet"
        return known or {
            "schema": "draftproof.views/1",
            "subject": self.subject.directory,
            "not_looked": [{"check": "views", "reason": why}],
        }

    def acceptance(self) -> dict[str, object]:
        """What the server counts: since its start, and in every interval watched."""
        with self._lock:
            seen = self._seen
            return {
                "schema": "draftproof.ui/1",
                "server": self.subject.address.shown if self.subject.address else None,
                "interval_seconds": self.subject.interval_seconds,
                "rounds": seen.rounds,
                "since_start": seen.since_start,
                "intervals": list(seen.intervals),
                "trouble": seen.trouble,
            }

    def look(self) -> None:
        """One round."""
        models = self._models()
        views = self._look_at_files(models) if models else None
        if views is not None and self._seen.views is None:
            with self._lock:  # an engine that is asked for the first time may take minutes
                self._seen.views = views.as_dict()
        if models and views is not None and self.subject.engine is not None:
            views = views.with_engine(self._look_at_engine(self.subject.engine, models))
        page, trouble = self._look_at_server()
        with self._lock:
            self._seen.rounds += 1
            self._seen.views = views.as_dict() if views else None
            self._seen.trouble = trouble
            if page is not None:
                self._seen.since_start = read_page(page).as_dict()
                if self._before is not None:
                    self._seen.intervals.append(_interval(read_page(page, self._before)))
        if page is not None:
            self._before = page

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(self.subject.interval_seconds)

    def _models(self) -> Evidence | None:
        """Subject, target and intent as their files stand now."""
        directory, target, intent = (
            read_model(given, config_only=True) if given else None
            for given in (self.subject.directory, self.subject.target, self.subject.intent)
        )
        return Evidence(directory, target, intent, None, None) if directory else None

    def _look_at_files(self, models: Evidence) -> Views:
        """The views anew; a library is asked again only when the file changed, since it takes seconds."""
        raw, target, seconds = models.subject.raw, models.target_model, self.subject.timeout_seconds
        size = target.target.vocab_size.value if target and target.target else None
        if isinstance(raw, RawConfig) and (raw.sha256, size) != self._asked_about:
            self._asked_about = (raw.sha256, size)
            self._answers = tuple(
                interpret(python, raw, read_with(python, raw, timeout_seconds=seconds), size)
                for python in self.subject.pythons
            )
        return views_of(models, self._answers if isinstance(raw, RawConfig) else ())

    def _look_at_engine(self, asked: Asked, models: Evidence) -> EngineViews:
        """The engine's layers anew; its configuration code is asked again only when a file changed."""
        subject, target, patience = models.subject, models.target_model, self.subject.engine_seconds
        digests = tuple(one.raw.sha256 for one in (subject, target) if one and isinstance(one.raw, RawConfig))
        try:
            if digests != self._resolved_for:
                self._resolved = ask_before(asked, subject, target, timeout_seconds=patience)
                self._resolved_for = digests
        except UsageError as error:
            lack = NotLooked(asked.engine, f"{error.subject}: expected {error.expected}", is_required=True)
            return EngineViews(asked, (), (), None, None, None, not_looked=(lack,))
        seconds = self.subject.timeout_seconds
        return engine_views(
            asked, subject, target, models.intent, timeout_seconds=seconds, resolved=self._resolved
        )

    def _look_at_server(self) -> tuple[Page | None, dict[str, object] | None]:
        address = self.subject.address
        if address is None:
            return None, None
        try:
            return scrape(address, timeout_seconds=self.subject.timeout_seconds), None
        except CouldNotLook as error:
            return None, error.as_dict()


def _interval(reading: Reading) -> dict[str, object]:
    """One point of the curves; None where nothing was drafted."""
    record = reading.acceptance
    shares = record.per_position.value if record else None
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "estimator": record.estimator.name if record else None,
        "drafts": record.num_drafts.value if record else None,
        "tau": record.tau.value if record else None,
        "rate": record.rate.value if record else None,
        "per_position": list(shares) if shares is not None else None,
        "findings": [finding.as_dict() for finding in reading.findings],
    }
