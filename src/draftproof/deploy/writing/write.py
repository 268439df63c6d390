"""The verified write: intent and pre-image recorded, file put in place, read back, receipt recorded."""

import base64
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from draftproof.config.raw import JsonValue
from draftproof.deploy.hosts import KEEP_BYTES, Seen, look, reading_program
from draftproof.deploy.ledger.ledger import Entry, Ledger, LedgerUnusable
from draftproof.deploy.ledger.objects import sha256_hex
from draftproof.deploy.place import Place
from draftproof.deploy.process import NOBODY, Process
from draftproof.deploy.proof.evidence import evidence_of
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.content import check_content, check_ledger
from draftproof.deploy.writing.receipt import ABSENT, FileState, OldDigest, Receipt
from draftproof.deploy.writing.refusals import Conflict, OutcomeUnknown, refusal
from draftproof.errors import CouldNotLook, DraftproofError
from draftproof.host.calling import call
from draftproof.host.program import frame_of, frames_of, request
from draftproof.host.protocol import Host
from draftproof.host.standby import Standby
from draftproof.names import Sha256

__all__ = ["WriteOrder", "conflict", "verified_write"]


SETTLE_S = 5.0
"""A program on the host that is at its last step when the order lapses gets so much longer to finish it."""


@dataclass(frozen=True, slots=True)
class WriteOrder:
    """What is to be put where, and what must be there before."""

    place: Place
    content: bytes
    source: str
    """Where the content comes from, for the ledger."""

    expected_old: OldDigest | None = None
    """What the file must hold before; None for whatever it holds at first look (compared all the same)."""

    level: Level = Level.L2
    root: str = "/"
    """The target must lie below it."""

    patience_s: float = 30.0
    """For the lock and the order together; after it the host no longer publishes."""

    process: Process = NOBODY
    """A process that is to see the file."""


@dataclass(slots=True)
class _Talk:
    """Our side of the conversation with the program on the host."""

    order: WriteOrder
    ledger: Ledger
    nonce: str
    sha256: Sha256
    preimage: dict[str, Any] | None = None
    intent: Entry | None = None
    is_sent: bool = False
    deadline_ms: int = 0
    frames: dict[str, dict[str, Any]] = field(default_factory=dict)
    host_key: str = ""
    """By which the machine proved itself when the order was given."""

    @property
    def old_sha256(self) -> OldDigest:
        """The pre-image's digest; known once the host has spoken."""
        if self.preimage is None or self.preimage["old"] is None:
            return ABSENT
        return Sha256(self.preimage["old"]["sha256"])

    def answer(self, line: bytes) -> bytes | None:
        """The order for the host, once it has told the pre-image; nothing where it must not go on."""
        frame = frame_of(line, self.nonce)
        if frame is None:
            return None
        if frame.kind != "preimage":
            return b""
        self.preimage = frame.facts
        expected = self.order.expected_old
        if expected is not None and expected != self.old_sha256:
            return b""
        self.intent = self.ledger.append("write", self._intent(frame.facts))
        self.deadline_ms = frame.facts["machine"]["monotonic_ms"] + int(self.order.patience_s * 1000)
        head = {
            "expected_old": self.old_sha256,
            "length": len(self.order.content),
            "sha256": self.sha256,
            "deadline_ms": self.deadline_ms,
        }
        self.is_sent = True
        return request(head) + self.order.content

    def _intent(self, preimage: Mapping[str, Any]) -> dict[str, JsonValue]:
        """The ledger's entry, after both contents are kept."""
        self.ledger.objects.keep(self.order.content)
        is_kept = preimage["data"] is not None
        if is_kept:
            self.ledger.objects.keep(base64.b64decode(preimage["data"]))
        return {
            "host": self.order.place.host,
            "path": self.order.place.path,
            "sha256": self.sha256,
            "size_bytes": len(self.order.content),
            "old_sha256": self.old_sha256,
            "is_old_kept": is_kept or self.old_sha256 == ABSENT,
            "old": preimage["old"],
            "source": self.order.source,
            "level_asked": self.order.level.name,
            "nonce": self.nonce,
            "machine": preimage["machine"],
            "file_system": preimage["file_system"],
        }


def verified_write(host: Host, order: WriteOrder, ledger: Ledger) -> Receipt:
    """Put the content in place, read it back, and say how far that is proven.

    Raises:
        WriteRefused: the target or the content must not be written so; nothing was changed.
        Conflict: the target does not hold what was expected, or another writer is at it; nothing was changed.
        CouldNotLook: the host, or the target's directory, cannot be reached; nothing was changed.
        OutcomeUnknown: the host fell silent after the order, and cannot be read since.
    """
    check_content(order.content, order.place.path)
    check_ledger(order.place, ledger)
    talk = _Talk(order, ledger, secrets.token_hex(16), sha256_hex(order.content))
    ask = {
        "nonce": talk.nonce,
        "path": order.place.path,
        "root": order.root,
        "patience_ms": int(order.patience_s * 1000),
        "keep_bytes": KEEP_BYTES,
    }
    reader = reading_program(is_device_asked=order.level >= Level.L4, process=order.process)
    with Standby(host, reader) as standby:
        result = call(
            host,
            "helper",
            stdin=request(ask),
            answer=talk.answer,
            timeout_s=order.patience_s + 15,
            at_login=standby.open,
        )
        talk.frames, talk.host_key = frames_of(result.stdout, talk.nonce), result.host_key
        error = _refused(talk)
        if error is not None:
            _record_refusal(talk, error)
            raise error
        if talk.intent is None or talk.preimage is None:
            raise host.failure(result)
        seen = _read_back(host, talk, standby)
    receipt = _receipt(talk, talk.preimage, talk.intent, seen)
    return _recorded(talk, talk.intent, receipt)


def _recorded(talk: _Talk, intent: Entry, receipt: Receipt) -> Receipt:
    """The receipt, in the ledger; where that fails the write is done all the same, and a note says so."""
    facts = {**_place_of(talk.order), "of": intent.seq, "receipt": receipt.as_dict()}
    try:
        talk.ledger.append("receipt", facts)
    except CouldNotLook as error:
        note = f"this receipt could not be recorded, the ledger knows of the intent alone: {error.found}"
        return replace(receipt, notes=(*receipt.notes, note))
    return receipt


def _refused(talk: _Talk) -> DraftproofError | None:
    """Why nothing was done, if so."""
    shown, expected = str(talk.order.place), talk.order.expected_old
    if talk.preimage is not None and not talk.is_sent:
        found = talk.old_sha256
        return conflict(shown, f"{expected}", found)
    if "refused" not in talk.frames:
        return None
    frame = talk.frames["refused"]
    return refusal(frame["code"], frame["facts"], shown=shown, expected=talk.old_sha256)


def conflict(shown: str, expected: str, found: str) -> Conflict:
    """The error for a target that does not hold what was expected."""
    return Conflict(
        shown,
        expected=expected if expected == ABSENT else f"sha256 {expected}",
        found=found if found == ABSENT else f"sha256 {found}",
        where=shown,
        means="the file is not what this write was to replace; nothing was changed",
        next_step="draftproof history, look at the file, then name what is there with --expect-old",
    )


def _record_refusal(talk: _Talk, error: DraftproofError) -> None:
    """An intent that was recorded must not look open for ever."""
    if talk.intent is not None:
        facts = {**_place_of(talk.order), "of": talk.intent.seq, "id": error.id, "found": error.found}
        with suppress(LedgerUnusable):  # the refusal is what must be told; the intent stays open
            talk.ledger.append("refused", facts)


def _read_back(host: Host, talk: _Talk, standby: Standby) -> Seen | None:
    """The file as another process finds it; None where it cannot be read though the host had answered.

    The request goes out only now, so nothing was read before the host's receipt came. Where the host fell
    silent, its program may still be at work: it is waited for while its order lives, over a new connection.

    Raises:
        OutcomeUnknown: no answer came, and the file cannot be read either, or the program is still at it.
    """
    order = talk.order
    is_silent = not talk.frames.keys() & {"receipt", "failed", "refused"}
    try:
        seen = look(
            host,
            order.place,
            nonce=secrets.token_hex(16),
            is_device_asked=order.level >= Level.L4,
            process=order.process,
            settle_s=order.patience_s + SETTLE_S if is_silent else 0,
            standby=None if is_silent else standby,
        )
    except CouldNotLook as error:
        if not is_silent:
            return None
        raise _unknown(talk, f"neither: {error.found}") from error
    if is_silent and not seen.is_quiet:
        raise _unknown(talk, "the program on the host still holds the directory's lock")
    return seen


def _unknown(talk: _Talk, found: str) -> OutcomeUnknown:
    place = talk.order.place
    return OutcomeUnknown(
        str(place),
        expected="the host's receipt, or a reading of the file",
        found=found,
        where=str(place),
        means="the file holds the old content or the new one, never a mixture; the order lapses on the host "
        f"at its monotonic time {talk.deadline_ms} ms",
        next_step=f"once the host answers: draftproof check {place}; then write again",
    )


def _receipt(talk: _Talk, preimage: Mapping[str, Any], intent: Entry, seen: Seen | None) -> Receipt:
    """The receipt from what the host said and what was read back."""
    order = talk.order
    state, found = _state(talk, seen)
    return Receipt(
        place=order.place,
        sha256=talk.sha256,
        old_sha256=talk.old_sha256,
        asked=order.level,
        evidence=evidence_of(
            talk.sha256, order.place.path, preimage, talk.frames, seen, host_key=talk.host_key
        ),
        state=state,
        found_sha256=found,
        notes=_notes(talk.frames),
        ledger_entry=intent.seq,
    )


def _state(talk: _Talk, seen: Seen | None) -> tuple[FileState, Sha256 | Literal["absent", "unread"]]:
    """Which content the read-back found; new wins where a file was rewritten with what it held."""
    if seen is None:
        return FileState.UNREAD, "unread"
    found: OldDigest = seen.sha256 if seen.sha256 is not None else ABSENT
    if found == talk.sha256:
        return FileState.NEW, found
    return (FileState.OLD if found == talk.old_sha256 else FileState.OTHER), found


def _notes(frames: Mapping[str, dict[str, Any]]) -> tuple[str, ...]:
    if "receipt" not in frames:
        return ()
    receipt = frames["receipt"]
    removed = [f"removed a killed write's leftover: {name}" for name in receipt["removed"]]
    kept = [f"left for you to look at, its bytes are nowhere else: {name}" for name in receipt["kept"]]
    return (*receipt["limits"], *removed, *kept)


def _place_of(order: WriteOrder) -> dict[str, JsonValue]:
    return {"host": order.place.host, "path": order.place.path}
