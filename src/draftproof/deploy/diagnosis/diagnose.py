"""Diagnosis by digest: a wrong file is told from what was intended, what was there before, and what it is.

Each cause is a content that can be built from the intended bytes, or that the ledger names, and compared
exactly; what fits none stays unknown.
"""

from dataclasses import dataclass
from enum import StrEnum

from draftproof.config.json.compare import BytesVerdict, compare_bytes
from draftproof.deploy.diagnosis.recodings import recodings
from draftproof.deploy.diagnosis.shell_marks import expanded_end, lost_quotes, swallowed
from draftproof.deploy.ledger.history import History
from draftproof.deploy.ledger.objects import sha256_hex
from draftproof.deploy.writing.receipt import ABSENT

__all__ = ["Cause", "Diagnosis", "diagnose", "diagnose_digest"]


class Cause(StrEnum):
    """How a file came to be other than intended."""

    NEVER_TOOK_EFFECT = "never_took_effect"
    CUT_AT = "cut_at"
    ZERO_TAIL = "zero_tail"
    SHELL_EXPANDED = "shell_expanded"
    HEREDOC_OPEN = "heredoc_open"
    NEWLINES_OR_BOM = "newlines_or_bom"
    WRONG_TARGET = "wrong_target"
    REVERTED = "reverted"
    REFORMATTED = "reformatted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The cause and the observation it rests on."""

    cause: Cause
    detail: str


def diagnose(intended: bytes, found: bytes | None, history: History) -> Diagnosis | None:
    """Why ``found`` is not ``intended``; None where it is.

    Args:
        intended: The content meant to be there now: that of ``history.latest``.
        found: The file's bytes, None where there is no file.
        history: What the ledger knows about the place.
    """
    if found == intended:
        return None
    known = diagnose_digest(ABSENT if found is None else sha256_hex(found), history)
    if known is not None:
        return known
    if found is None:
        return Diagnosis(Cause.UNKNOWN, "there is no file; the ledger knows of no time without one")
    for judge in (_recoded, _cut, _zero_tail, _expanded, _open_heredoc, _reformatted):
        diagnosis = judge(intended, found)
        if diagnosis is not None:
            return diagnosis
    return Diagnosis(Cause.UNKNOWN, f"{_first_difference(intended, found)}; no known corruption gives it")


def diagnose_digest(digest: str, history: History) -> Diagnosis | None:
    """Why a content that is not the intended one is there, by its digest (``absent``: no file) alone.

    None where the ledger does not name it: other causes need the bytes.
    """
    latest = history.latest
    if latest is not None and digest == latest.old_sha256 and not latest.is_seen:
        what = "there is still no file" if digest == ABSENT else "bytes equal the recorded pre-image"
        return Diagnosis(
            Cause.NEVER_TOOK_EFFECT,
            f"write never took effect ({what}), recorded {latest.time}, entry {latest.seq}",
        )
    if history.is_older_than_a_seen_write(digest):
        what = "no file, as" if digest == ABSENT else "bytes"
        return Diagnosis(Cause.REVERTED, f"{what} from before a write that had been seen in place")
    if digest in history.elsewhere:
        return Diagnosis(Cause.WRONG_TARGET, f"bytes meant for {history.elsewhere[digest]}")
    return None


def _recoded(intended: bytes, found: bytes) -> Diagnosis | None:
    for what, data in recodings(intended):
        if data == found:
            return Diagnosis(Cause.NEWLINES_OR_BOM, what)
    return None


def _cut(intended: bytes, found: bytes) -> Diagnosis | None:
    if intended.startswith(found):
        return Diagnosis(Cause.CUT_AT, f"cut at byte {len(found)} of {len(intended)}")
    return None


def _zero_tail(intended: bytes, found: bytes) -> Diagnosis | None:
    head = found.rstrip(b"\0")
    if len(head) == len(found) or not intended.startswith(head):
        return None
    return Diagnosis(
        Cause.ZERO_TAIL,
        f"{len(found) - len(head)} zero bytes from byte {len(head)}, of {len(intended)} intended",
    )


def _expanded(intended: bytes, found: bytes) -> Diagnosis | None:
    # latin-1 maps every byte to one character and back, so that no encoding can hide a match.
    meant, seen = intended.decode("latin-1"), found.decode("latin-1")
    for text in (meant, meant + "\n"):
        for form in (text, text.replace('"', "")):
            if expanded_end(seen, form) == len(seen):
                return Diagnosis(Cause.SHELL_EXPANDED, "an unquoted here-document or double quotes")
        for way, lost in lost_quotes(text).items():
            if lost == seen:
                return Diagnosis(Cause.SHELL_EXPANDED, way)
    return None


def _open_heredoc(intended: bytes, found: bytes) -> Diagnosis | None:
    meant, seen = intended.decode("latin-1"), found.decode("latin-1")
    whole = meant if meant.endswith("\n") else meant + "\n"
    ends = [len(base) for base in (whole, whole.replace("\n", "\r\n")) if seen.startswith(base)]
    for end in (*ends, expanded_end(seen, whole)):
        line = swallowed(seen[end:]) if end > 0 else ""
        if line:
            detail = f"the here-document went on after byte {end}: {line[:60]!r}"
            return Diagnosis(Cause.HEREDOC_OPEN, detail)
    return None


def _reformatted(intended: bytes, found: bytes) -> Diagnosis | None:
    match compare_bytes(intended, found):
        case BytesVerdict.FORMATTING:
            return Diagnosis(Cause.REFORMATTED, "the same values, types included, in other bytes")
        case BytesVerdict.LINE_ENDINGS:
            return Diagnosis(Cause.NEWLINES_OR_BOM, "line endings mixed")
        case BytesVerdict.BOM:
            return Diagnosis(Cause.NEWLINES_OR_BOM, "a byte order mark, and other formatting")
    return None


def _first_difference(intended: bytes, found: bytes) -> str:
    pairs = zip(intended, found, strict=False)
    at = next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(intended), len(found)))
    return f"differs from byte {at} on"
