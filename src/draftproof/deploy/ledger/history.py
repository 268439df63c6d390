"""What the ledger knows about one place: each content meant for it, what stood before, what was seen."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from draftproof.deploy.ledger.ledger import Entry, LedgerDamaged, LedgerText
from draftproof.deploy.place import Place

__all__ = ["History", "Intent", "all_intents", "history_among", "history_of"]


@dataclass(frozen=True, slots=True)
class Intent:
    """One content meant for a place, by a write of ours or announced for somebody else's."""

    seq: int
    time: str
    kind: str
    """write or expect."""

    place: Place
    sha256: str
    old_sha256: str
    """Of the pre-image, or ``absent``."""

    is_old_kept: bool
    """Whether the ledger holds the pre-image's bytes (or there were none)."""

    source: str
    level: str
    """Reached by the write's receipt; ``""`` where there is none."""

    is_seen: bool
    """The content was once read back from the place."""

    is_refused: bool
    """The write was called off; nothing was done."""

    boot_id: str
    """Of the machine when it was recorded."""

    receipt: Mapping[str, Any] | None
    """The write's receipt as it was recorded, None where there is none."""

    outcomes: tuple[int, ...] = ()
    """The entries that tell what became of it: receipt, refusal, and each time it was seen."""


@dataclass(frozen=True, slots=True)
class History:
    """All intents for one place, oldest first, and what was meant for other places."""

    place: Place
    intents: tuple[Intent, ...]
    elsewhere: Mapping[str, Place]
    """Intended digest -> another place it was meant for; digests also meant for this place left out."""

    @property
    def latest(self) -> Intent | None:
        """The content meant to be there now, None where nothing is recorded."""
        return self.intents[-1] if self.intents else None

    def is_older_than_a_seen_write(self, digest: str) -> bool:
        """Whether ``digest`` stood here before, and a later content was seen to have taken its place."""
        has_stood = False
        for intent in self.intents:
            has_stood = has_stood or digest == intent.old_sha256
            if has_stood and intent.is_seen and intent.sha256 != digest:
                return True
            has_stood = has_stood or digest == intent.sha256
        return False


def history_of(text: LedgerText, place: Place) -> History:
    """The history of ``place``; writes that were refused are no part of it."""
    return history_among(all_intents(text), {place}, shown=place)


def history_among(all_known: list[Intent], places: Collection[Place], *, shown: Place) -> History:
    """The history of one file that goes by any of ``places``, told as ``shown``."""
    intents = [intent for intent in all_known if not intent.is_refused]
    here = tuple(intent for intent in intents if intent.place in places)
    known = {intent.sha256 for intent in here} | {intent.old_sha256 for intent in here}
    elsewhere = {
        intent.sha256: intent.place
        for intent in intents
        if intent.place not in places and intent.sha256 not in known
    }
    return History(shown, here, elsewhere)


def all_intents(text: LedgerText) -> list[Intent]:
    """Every intent of the ledger with its outcome, oldest first."""
    outcomes: dict[int, list[Entry]] = {entry.seq: [] for entry in text.entries}
    intents = []
    for entry in text.entries:
        try:
            if "of" in entry.facts:
                outcomes[_number(entry.facts["of"])].append(entry)
        except (KeyError, TypeError) as error:
            raise _unreadable(entry, error) from error
    for entry in text.entries:
        try:
            if entry.kind in {"write", "expect"}:
                intents.append(_intent(entry, outcomes[entry.seq]))
        except (KeyError, TypeError) as error:
            raise _unreadable(entry, error) from error
    return intents


def _unreadable(entry: Entry, error: Exception) -> LedgerDamaged:
    """An entry that fits the chain and is none of ours."""
    return LedgerDamaged(
        f"entry {entry.seq}",
        expected=f"the facts of an entry of kind {entry.kind!r}",
        found=f"{error.__class__.__name__}: {error}",
        where=f"the ledger's line {entry.seq}",
        means="somebody else wrote it; nothing is concluded from this ledger and nothing added",
        next_step="restore it from a backup, or start another one with --ledger DIR",
    )


def _intent(entry: Entry, outcomes: list[Entry]) -> Intent:
    facts: Mapping[str, Any] = entry.facts
    proofs: list[Mapping[str, Any]] = [outcome.facts for outcome in outcomes if outcome.kind == "receipt"]
    receipts = [proof["receipt"] for proof in proofs]
    return Intent(
        seq=entry.seq,
        time=entry.time,
        kind=entry.kind,
        place=Place(facts["host"], facts["path"]),
        sha256=facts["sha256"],
        old_sha256=facts["old_sha256"],
        is_old_kept=facts["is_old_kept"],
        source=facts["source"],
        level=receipts[-1]["level"] if receipts else "",
        is_seen=any(r["state"] == "new" for r in receipts) or any(o.kind == "seen" for o in outcomes),
        is_refused=any(o.kind == "refused" for o in outcomes),
        boot_id=facts["machine"]["boot_id"],
        receipt=receipts[-1] if receipts else None,
        outcomes=tuple(outcome.seq for outcome in outcomes),
    )


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"an entry refers to {value!r}, which is no entry number")
    return value
