"""The ledger asked about a file: is it what was meant to be there, and if not, how did that come about."""

from dataclasses import replace
from pathlib import Path

from draftproof.config.raw import JsonValue
from draftproof.deploy.diagnose import Cause, Diagnosis, diagnose
from draftproof.deploy.history import History, all_intents, history_of
from draftproof.deploy.ledger import Ledger, LedgerText
from draftproof.deploy.objects import sha256_hex
from draftproof.deploy.place import Place
from draftproof.deploy.receipt import ABSENT
from draftproof.errors import CouldNotLook, DraftproofError
from draftproof.findings.catalogue import found as finding_of
from draftproof.findings.check import Report
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.place import at_file
from draftproof.names import Layer

__all__ = ["consult", "consult_below", "consulted", "judge"]

_SEVERITY = dict.fromkeys(Cause, Severity.ERROR) | {
    Cause.NEWLINES_OR_BOM: Severity.WARNING,
    Cause.REFORMATTED: Severity.NOTE,
}


def consult(path: Path, ledger: Ledger) -> Finding | None:
    """The finding for a file on this machine that is not what was last meant for it.

    None where the ledger knows nothing about the place, or the file is as meant; that it is so is recorded
    the first time it is seen.

    Raises:
        CouldNotLook: the ledger or the file cannot be read.
        LedgerDamaged: the ledger does not fit together.
    """
    text = ledger.read()
    for place in dict.fromkeys((Place("", str(path.absolute())), Place("", str(path.resolve())))):
        history = history_of(text, place)
        if history.latest is not None:
            return judge(history, _read(path), ledger)
    return None


def consult_below(directory: Path, ledger: Ledger) -> tuple[Finding, ...]:
    """The findings for every file below ``directory`` that the ledger knows. Raises as consult."""
    roots = {str(directory.absolute()), str(directory.resolve())}
    paths = [place.path for place in _places(ledger.read()) if not place.host]
    inside = [path for path in paths if path.startswith(tuple(f"{root}/" for root in roots))]
    found = (consult(Path(path), ledger) for path in inside)
    return tuple(finding for finding in found if finding is not None)


def consulted(report: Report, subject: Path, ledger: Ledger, *, is_ledger_named: bool) -> Report:
    """A check's report with what the ledger knows about the file, or directory, that was checked.

    A ledger that cannot be used is told under ``not_looked``; one that an option named is required there.
    """
    try:
        below = consult_below(subject, ledger) if subject.is_dir() else ()
        own = None if subject.is_dir() else consult(subject, ledger)
    except DraftproofError as error:
        reason = f"{error.id}: expected {error.expected}, found {error.found}"
        lack = NotLooked("what the ledger says was meant to be here", reason, is_required=is_ledger_named)
        return Report(report.findings, (*report.not_looked, lack))
    findings = (*below, *((own,) if own else ()), *report.findings)
    # The report's order is kept; a finding of the ledger goes before the others of its layer.
    layers = list(Layer)
    return Report(tuple(sorted(findings, key=lambda each: layers.index(each.layer))), report.not_looked)


def judge(history: History, data: bytes | None, ledger: Ledger) -> Finding | None:
    """The finding for ``data`` (None: no file) at the place of ``history``; a first sight is recorded.

    Raises:
        CouldNotLook: the intended content, or the ledger, cannot be read or written.
    """
    latest = history.latest
    if latest is None:
        return None
    intended = ledger.objects.fetch(latest.sha256)
    diagnosis = diagnose(intended, data, history)
    if diagnosis is not None:
        return _finding(history.place, intended, data, diagnosis)
    if not latest.is_seen:
        seen: dict[str, JsonValue] = {
            "host": history.place.host,
            "path": history.place.path,
            "of": latest.seq,
            "sha256": latest.sha256,
        }
        ledger.append("seen", seen)
    return None


def _finding(place: Place, intended: bytes, data: bytes | None, diagnosis: Diagnosis) -> Finding:
    finding = finding_of(
        "file-not-as-written",
        place.path.rpartition("/")[2],
        expected=f"sha256 {sha256_hex(intended)}, {len(intended)} bytes",
        found=ABSENT if data is None else f"sha256 {sha256_hex(data)}, {len(data)} bytes",
        at=at_file(str(place)),
        detail=diagnosis.detail,
        severity=_SEVERITY[diagnosis.cause],
    )
    return replace(finding, cause=diagnosis.cause.value)


def _places(text: LedgerText) -> list[Place]:
    return list(dict.fromkeys(intent.place for intent in all_intents(text) if not intent.is_refused))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CouldNotLook(
            str(path),
            expected="a file that can be read",
            found=f"{error.strerror}",
            where=str(path),
            means="what is there could not be held against the ledger",
            next_step=f"ls -l {path}",
        ) from error
