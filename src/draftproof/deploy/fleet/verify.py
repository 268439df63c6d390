"""A place read again: is the content meant for it there, how far is that proven, and if not, why not."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from draftproof.config.raw import JsonValue
from draftproof.deploy.diagnosis.diagnose import Cause, Diagnosis, diagnose
from draftproof.deploy.hosts import Seen, look, told_kind
from draftproof.deploy.ledger.history import History, Intent, history_of
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.ledger.objects import sha256_hex
from draftproof.deploy.place import Place
from draftproof.deploy.process import NOBODY, Process
from draftproof.deploy.proof.evidence import consumer_evidence, device_evidence
from draftproof.deploy.proof.level import Evidence, Level, reached
from draftproof.deploy.proof.witnessed import Wanted, witnessed
from draftproof.deploy.writing.receipt import ABSENT
from draftproof.host.protocol import Host
from draftproof.names import Sha256
from draftproof.runtimes.witness.record import WitnessRecord

__all__ = ["Verdict", "verify"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is at a place now, held against what is meant for it."""

    place: Place
    sha256: Sha256
    """Of the intended content."""

    found_sha256: str
    """Of what is there; ``absent`` where there is no file."""

    diagnosis: Diagnosis | None
    """Why it is not the intended content; None where it is."""

    evidence: tuple[Evidence, ...]
    """One a level, from the reading just made and the receipt of the write; two where the file is wrong."""

    @property
    def level(self) -> Level:
        """The highest level up to which every claim holds."""
        return reached(self.evidence)[0]

    def is_enough(self, asked: Level) -> bool:
        """Whether writing it anew would show no more of what is asked; never so for a file not in place.

        Up to L2 this reading is enough, whoever wrote the file; that it is durable only a receipt shows.
        """
        return self.diagnosis is None and (asked <= Level.L2 or self.evidence[Level.L3].holds)

    def with_witness(self, record: WitnessRecord) -> "Verdict":
        """The same with L7 by what the engine's processes opened here, where no mapping of the file shows it.

        A record that does not speak of this file leaves L7 as it was, and says so.
        """
        if self.diagnosis is not None or self.evidence[Level.L7].holds:
            return self
        seventh = self._by_witness(record)
        if not seventh.facts:
            how = f"{self.evidence[Level.L7].how}; {record.file}: {seventh.how}"
            seventh = replace(self.evidence[Level.L7], how="; ".join((how, *record.trouble[:1])))
        return replace(self, evidence=(*self.evidence[: Level.L7], seventh))

    def _by_witness(self, record: WitnessRecord) -> Evidence:
        if self.place.host:
            return Evidence(Level.L7, False, f"of this machine, not of {self.place.host}", {})
        identity: Any = self.evidence[Level.L2].facts["identity"]
        wanted = Wanted(os.path.realpath(self.place.path), self.sha256, (identity["dev"], identity["ino"]))
        (told,) = witnessed(record, [wanted])
        return told.evidence

    def as_dict(self) -> dict[str, JsonValue]:
        """For ``--json``."""
        missing = reached(self.evidence)[1]
        return {
            "schema": "draftproof.verdict/1",
            "target": str(self.place),
            "sha256": self.sha256,
            "found_sha256": self.found_sha256,
            "is_in_place": self.diagnosis is None,
            "cause": self.diagnosis.cause.value if self.diagnosis else None,
            "detail": self.diagnosis.detail if self.diagnosis else None,
            "level": self.level.name,
            "not_reached": {"level": missing.level.name, "reason": missing.how} if missing else None,
            "evidence": [item.as_dict() for item in self.evidence],
        }


def verify(
    host: Host, place: Place, intended: bytes, ledger: Ledger, *, process: Process = NOBODY
) -> Verdict:
    """Read ``place`` now, past the page cache where that can be had, and judge it by the ledger.

    Raises:
        CouldNotLook: the host or the file cannot be read.
        LedgerDamaged: the ledger does not fit together.
    """
    seen = look(host, place, nonce=secrets.token_hex(16), is_device_asked=True, process=process)
    history = history_of(ledger.read(), place)
    digest = sha256_hex(intended)
    found = seen.sha256 if seen.sha256 is not None else ABSENT
    diagnosis = _diagnosis(intended, seen, history)
    latest = history.latest
    is_recorded = latest is not None and latest.sha256 == digest
    recorded = latest if is_recorded else None
    evidence = _evidence(digest, seen, recorded) if diagnosis is None else _wrong(digest, found)
    if diagnosis is None and recorded is not None and not recorded.is_seen:
        facts: dict[str, JsonValue] = {"host": place.host, "path": place.path, "of": recorded.seq}
        ledger.append("seen", {**facts, "sha256": digest})
    return Verdict(place, digest, found, diagnosis, evidence)


def _diagnosis(intended: bytes, seen: Seen, history: History) -> Diagnosis | None:
    """Why what was seen is not what is intended, None where it is."""
    if seen.kind == "other":
        return Diagnosis(Cause.UNKNOWN, f"no regular file but {told_kind(seen.file['found'])}")
    if seen.sha256 == sha256_hex(intended):
        return None
    if seen.kind == "file" and seen.data is None:
        return Diagnosis(Cause.UNKNOWN, f"{seen.file['length']} bytes, too many to be looked into")
    return diagnose(intended, seen.data, history)


def _wrong(digest: Sha256, found: str) -> tuple[Evidence, ...]:
    return (
        Evidence(Level.L0, True, "the intended bytes are at hand", {"sha256": digest}),
        Evidence(Level.L1, False, f"the file holds {found}", {}),
    )


def _evidence(digest: Sha256, seen: Seen, recorded: Intent | None) -> tuple[Evidence, ...]:
    """All levels for a file that holds the intended bytes."""
    held = _held_by_receipt(seen, recorded)
    reading = Evidence(
        Level.L2, True, "read just now by another process, whole", {"sha256": digest, **seen.file}
    )
    return (
        Evidence(Level.L0, True, "the intended bytes are at hand", {"sha256": digest}),
        held[Level.L1],
        reading,
        held[Level.L3],
        device_evidence(digest, seen),
        _another_boot(seen, recorded),
        *consumer_evidence(digest, seen),
    )


def _held_by_receipt(seen: Seen, recorded: Intent | None) -> dict[Level, Evidence]:
    """L1 and L3 as the write's receipt had them, where the very file it published is still there."""
    levels = (Level.L1, Level.L3)
    if recorded is None or recorded.receipt is None:
        how = "not known: no receipt of a write of ours for this content"
        return {level: Evidence(level, False, how, {}) for level in levels}
    items: list[Mapping[str, Any]] = recorded.receipt["evidence"]
    published = items[Level.L2]["facts"]
    now = seen.file["identity"]
    # The device's number may change at a restart; inode and ctime cannot be kept by a file put in its place.
    keys = ("ino", "ctime_ns")
    if "identity" not in published or any(now[key] is None for key in keys):
        how = "cannot tell: inode and change time are not shown over SFTP"
        return {level: Evidence(level, False, how, {}) for level in levels}
    if any(published["identity"][key] != now[key] for key in keys):
        how = "the file was replaced or touched since the write, with the same bytes"
        return {level: Evidence(level, False, how, {}) for level in levels}
    return {
        level: Evidence(
            level,
            items[level]["holds"],
            f"receipt of entry {recorded.seq}: {items[level]['how']}",
            dict(items[level]["facts"]),
        )
        for level in levels
    }


def _another_boot(seen: Seen, recorded: Intent | None) -> Evidence:
    boot_id = seen.machine["boot_id"]
    if recorded is None:
        return Evidence(Level.L5, False, "not known under which boot it was written", {"boot_id": boot_id})
    if boot_id.startswith("unknown") or recorded.boot_id.startswith("unknown"):
        how = f"not known: written under boot {recorded.boot_id}, read under {boot_id}"
        return Evidence(Level.L5, False, how, {"boot_id": boot_id})
    if recorded.boot_id == boot_id:
        return Evidence(Level.L5, False, f"still the boot of the write ({boot_id})", {"boot_id": boot_id})
    how = f"written under boot {recorded.boot_id}, read under {boot_id}"
    return Evidence(Level.L5, True, how, {"boot_id": boot_id})
