"""The ledger asked about files: is each what was meant to be there, and if not, how did that come about.

A place of the ledger and a path on the command line are the same file where their directories are, whatever
links, relative names or slashes either was spelt with.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from draftproof.config.raw import JsonValue
from draftproof.deploy.diagnosis.diagnose import Cause, Diagnosis, diagnose, diagnose_digest
from draftproof.deploy.ledger.history import History, Intent, all_intents, history_among
from draftproof.deploy.ledger.ledger import Ledger, LedgerUnusable
from draftproof.deploy.place import Place
from draftproof.deploy.sight import Sight, sight_of
from draftproof.errors import DraftproofError
from draftproof.findings.catalogue import found as finding_of
from draftproof.findings.check import Report
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.place import at_file
from draftproof.names import Layer

__all__ = ["consult", "consult_below", "consulted", "consulted_on_host", "judge", "with_answers"]

_CHECK = "what the ledger says was meant to be here"
_SEVERITY = dict.fromkeys(Cause, Severity.ERROR) | {
    Cause.NEWLINES_OR_BOM: Severity.WARNING,
    Cause.REFORMATTED: Severity.NOTE,
}
Look = Callable[[str], Sight]
Answer = Finding | NotLooked


def consult(path: Path, ledger: Ledger) -> Finding | None:
    """The finding for a file on this machine that is not what was last meant for it.

    None where the ledger knows nothing about the place, or the file is as meant; that it is so is recorded
    the first time it is seen.

    Raises:
        CouldNotLook: the ledger or the file cannot be read.
        LedgerDamaged: the ledger does not fit together.
    """
    intents = all_intents(ledger.read())
    for shown, places in _at(path, intents).items():
        return judge(history_among(intents, places, shown=Place("", shown)), sight_of(shown), ledger)
    return None


def consult_below(directory: Path, ledger: Ledger) -> tuple[Finding, ...]:
    """The findings for every file below ``directory`` that the ledger knows. Raises as consult."""
    intents = all_intents(ledger.read())
    found = [
        judge(history_among(intents, places, shown=Place("", shown)), sight_of(shown), ledger)
        for shown, places in _below(directory, intents).items()
    ]
    return tuple(finding for finding in found if finding is not None)


def consulted(report: Report, subject: Path, ledger: Ledger, *, is_ledger_named: bool) -> Report:
    """A check's report with what the ledger knows about the file, or directory, that was checked.

    A ledger that cannot be used is told under ``not_looked``; one that an option named is required there. A
    ledger that knows nothing about the subject adds nothing.
    """
    try:
        intents = _intents(ledger, is_required=is_ledger_named)
        is_path = "\0" not in str(subject)  # told by the check itself
        files = (_at(subject, intents) or _below(subject, intents)) if is_path else {}
    except DraftproofError as error:
        return with_answers(report, [_lack(error, _CHECK, is_required=is_ledger_named)])
    return with_answers(report, _answers("", files, intents, ledger, sight_of, is_required=is_ledger_named))


def consulted_on_host(
    report: Report, subject: Place, ledger: Ledger, look: Look, *, is_ledger_named: bool
) -> Report:
    """As consulted, for a subject on another machine; ``look`` reads one path there."""
    try:
        intents = _intents(ledger, is_required=is_ledger_named)
    except DraftproofError as error:
        return with_answers(report, [_lack(error, _CHECK, is_required=is_ledger_named)])
    root = subject.path.rstrip("/")
    files = {
        place.path: {place}
        for place in _places(intents)
        if place.host == subject.host and (place.path == root or place.path.startswith(f"{root}/"))
    }
    return with_answers(
        report, _answers(subject.host, files, intents, ledger, look, is_required=is_ledger_named)
    )


def judge(history: History, sight: Sight, ledger: Ledger) -> Finding | None:
    """The finding for what was seen at the place of ``history``; a first sight of what was meant is recorded.

    Raises:
        CouldNotLook: the intended content, or the ledger, cannot be read or written.
    """
    latest = history.latest
    if latest is None:
        return None
    diagnosis = _diagnosis(latest, history, sight, ledger)
    if diagnosis is not None:
        return _finding(history.place, latest, sight, diagnosis, ledger)
    if not latest.is_seen:
        seen: dict[str, JsonValue] = {
            "host": latest.place.host,
            "path": latest.place.path,
            "of": latest.seq,
            "sha256": latest.sha256,
        }
        ledger.append("seen", seen)
    return None


def _diagnosis(latest: Intent, history: History, sight: Sight, ledger: Ledger) -> Diagnosis | None:
    if sight.digest == latest.sha256:
        return None
    if sight.is_whole:
        return diagnose(ledger.objects.fetch(latest.sha256), sight.data, history)
    unknown = Diagnosis(Cause.UNKNOWN, sight.why_not_whole)
    return (sight.digest and diagnose_digest(sight.digest, history)) or unknown


def _finding(place: Place, latest: Intent, sight: Sight, diagnosis: Diagnosis, ledger: Ledger) -> Finding:
    length = len(ledger.objects.fetch(latest.sha256))
    finding = finding_of(
        "file-not-as-written",
        place.path.rpartition("/")[2],
        expected=f"sha256 {latest.sha256}, {length} bytes",
        found=sight.told,
        at=at_file(str(place)),
        severity=_SEVERITY[diagnosis.cause],
    )
    # How it came about is said first: it is what nobody else can tell.
    return replace(finding, cause=diagnosis.cause.value, means=f"{diagnosis.detail}; {finding.means}")


def _answers(
    host: str,
    files: Mapping[str, set[Place]],
    intents: list[Intent],
    ledger: Ledger,
    look: Look,
    *,
    is_required: bool,
) -> list[Answer]:
    """One answer for each file that is wrong or could not be looked at; no file hides another's."""
    answers: list[Answer] = []
    for shown, places in files.items():
        history = history_among(intents, places, shown=Place(host, shown))
        try:
            finding = judge(history, look(shown), ledger)
        except DraftproofError as error:
            answers.append(_lack(error, f"{_CHECK}: {history.place}", is_required=is_required))
        else:
            answers += [finding] if finding is not None else []
    return answers


def _intents(ledger: Ledger, *, is_required: bool) -> list[Intent]:
    if is_required and not ledger.directory.exists():
        raise LedgerUnusable(
            str(ledger.directory),
            expected="a ledger",
            found="No such file or directory",
            where=str(ledger.directory),
            means="what was meant to be here is not known",
            next_step="name the directory that draftproof expect or write was given",
        )
    return all_intents(ledger.read())


def _lack(error: DraftproofError, check: str, *, is_required: bool) -> NotLooked:
    found = f"{error.id}: {error.subject}: expected {error.expected}, found {error.found}"
    return NotLooked(check, found, is_required=is_required)


def with_answers(report: Report, answers: list[Answer]) -> Report:
    """The report with further answers, each finding before the others of its layer."""
    findings = [answer for answer in answers if isinstance(answer, Finding)]
    lacks = [answer for answer in answers if isinstance(answer, NotLooked)]
    layers = list(Layer)
    merged = sorted((*findings, *report.findings), key=lambda each: layers.index(each.layer))
    return replace(report, findings=tuple(merged), not_looked=(*report.not_looked, *lacks))


def _places(intents: list[Intent]) -> list[Place]:
    return list(dict.fromkeys(intent.place for intent in intents if not intent.is_refused))


def _at(path: Path, intents: list[Intent]) -> dict[str, set[Place]]:
    """The path -> the places of the ledger that are this very file; empty where there are none."""
    places = [place for place in _places(intents) if not place.host]
    here = _settled(str(path))
    same = {place for place in places if _settled(place.path) == here}
    if not same and os.path.isfile(path):  # noqa: PTH113 - False, and no error, where one may not look
        # Another name of it: a link, of which the ledger knows either end.
        same = {place for place in places if os.path.realpath(place.path) == os.path.realpath(path)}
    return {str(path): same} if same else {}


def _below(directory: Path, intents: list[Intent]) -> dict[str, set[Place]]:
    """Path below ``directory`` as it was spelt -> the places of the ledger that are this file."""
    root = os.path.realpath(directory).rstrip("/")
    files: dict[str, set[Place]] = {}
    for place in _places(intents):
        settled = "" if place.host else _settled(place.path)
        if settled.startswith(f"{root}/"):
            files.setdefault(str(directory / settled[len(root) + 1 :]), set()).add(place)
    return files


def _settled(path: str) -> str:
    """A path with every link of its directory followed, and its own name kept."""
    folder, _, name = path.rstrip("/").rpartition("/")
    above = folder or ("/" if path.startswith("/") else os.curdir)
    return f"{os.path.realpath(above).rstrip('/')}/{name}"
