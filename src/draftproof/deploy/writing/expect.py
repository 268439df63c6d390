"""An expectation: what is meant for a place, and what stands there now, recorded before anybody writes."""

import secrets
from dataclasses import dataclass

from draftproof.config.raw import JsonValue
from draftproof.deploy.hosts import look, told_kind
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.ledger.objects import sha256_hex
from draftproof.deploy.place import Place
from draftproof.deploy.writing.content import check_content, check_ledger
from draftproof.deploy.writing.receipt import ABSENT, OldDigest
from draftproof.deploy.writing.refusals import NotRegular
from draftproof.host.protocol import Host
from draftproof.names import Sha256

__all__ = ["Expectation", "expect"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What was recorded."""

    place: Place
    sha256: Sha256
    old_sha256: OldDigest
    is_old_kept: bool
    """Whether the pre-image's bytes are in the ledger, for diagnosis and rollback."""

    ledger_entry: int

    def as_dict(self) -> dict[str, JsonValue]:
        """For ``--json``."""
        return {
            "schema": "draftproof.expectation/1",
            "target": str(self.place),
            "sha256": self.sha256,
            "old_sha256": self.old_sha256,
            "is_old_kept": self.is_old_kept,
            "is_there_already": self.sha256 == self.old_sha256,
            "ledger_entry": self.ledger_entry,
        }


def expect(host: Host, place: Place, content: bytes, *, source: str, ledger: Ledger) -> Expectation:
    """Record that ``content`` is about to be put at ``place`` by whatever tool, and what is there before.

    Raises:
        WriteRefused: the content is not what its name promises, or the place is no file's.
        CouldNotLook: the host or the file cannot be read, or the ledger cannot be written.
    """
    check_content(content, place.path)
    check_ledger(place, ledger)
    seen = look(host, place, nonce=secrets.token_hex(16))
    if seen.kind == "other":
        raise NotRegular(
            str(place),
            expected="a regular file or a free name",
            found=told_kind(seen.file["found"]),
            where=str(place),
            means="nothing was recorded",
            next_step="name a file",
        )
    old: OldDigest = seen.sha256 if seen.sha256 is not None else ABSENT
    digest = ledger.objects.keep(content)
    if seen.data is not None:
        ledger.objects.keep(seen.data)
    is_old_kept = seen.data is not None or old == ABSENT
    facts: dict[str, JsonValue] = {
        "host": place.host,
        "path": place.path,
        "sha256": digest,
        "size_bytes": len(content),
        "old_sha256": old,
        "is_old_kept": is_old_kept,
        "old": seen.file,
        "source": source,
        "machine": seen.machine,
    }
    entry = ledger.append("expect", facts)
    if old == digest:
        ledger.append("seen", {"host": place.host, "path": place.path, "of": entry.seq, "sha256": digest})
    return Expectation(place, sha256_hex(content), old, is_old_kept, entry.seq)
