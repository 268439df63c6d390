"""Rollback: the content that stood before a recorded write, put back by a verified write."""

from draftproof.deploy.ledger.history import History, Intent
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.writing.receipt import ABSENT
from draftproof.errors import CouldNotLook, RefusedInput

__all__ = ["NothingBefore", "intent_to_undo", "preimage"]


class NothingBefore(RefusedInput):
    """There was no file before the write; a rollback writes, it never removes."""

    id = "rollback-to-nothing"


def intent_to_undo(history: History, entry: int | None) -> Intent:
    """The write or expectation to go back before: the one numbered, or the latest.

    Raises:
        CouldNotLook: the ledger knows none for the place, or not that one.
    """
    for intent in reversed(history.intents):
        if entry is None or intent.seq == entry:
            return intent
    raise CouldNotLook(
        str(history.place),
        expected="a write or expectation in the ledger" if entry is None else f"entry {entry} for this place",
        found="none",
        where=str(history.place),
        means="what stood there before is not known; nothing was done",
        next_step="draftproof history, or name another ledger with --ledger DIR",
    )


def preimage(intent: Intent, place: Place, ledger: Ledger) -> bytes:
    """The content that stood at ``place`` before ``intent``.

    Raises:
        NothingBefore: there was no file.
        CouldNotLook: its bytes were too many to be kept, or are gone.
        ObjectsDamaged: the kept bytes are no longer those.
    """
    if intent.old_sha256 == ABSENT:
        raise NothingBefore(
            str(place),
            expected="a content from before",
            found=f"no file before entry {intent.seq}",
            where=str(place),
            means="going back would remove the file; nothing is ever removed here, and nothing was done",
            next_step=f"rm {place.path}, if that is meant",
        )
    return ledger.objects.fetch(intent.old_sha256)
