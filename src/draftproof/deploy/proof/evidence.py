"""The evidence for each level of one write, from what the host's program said and what was read back."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from draftproof.deploy.hosts import Seen
from draftproof.deploy.proof.durability import sync_meaning
from draftproof.deploy.proof.level import Evidence, Level
from draftproof.names import Sha256

__all__ = ["consumer_evidence", "device_evidence", "evidence_of"]

Frames = Mapping[str, dict[str, Any]]


def evidence_of(
    sha256: Sha256,
    path: str,
    preimage: Mapping[str, Any],
    frames: Frames,
    seen: Seen | None,
    *,
    host_key: str = "",
) -> tuple[Evidence, ...]:
    """L0 to L7, one each, whether it holds and by what observation.

    Args:
        sha256: Of the intended content.
        path: Of the target on its host.
        preimage: The first thing the program said: machine, file_system.
        frames: What it said after the order: staged, receipt, failed, refused.
        seen: The read-back, None where it could not be had.
        host_key: By which the machine proved itself when the order was given, as the ssh client tells it.
    """
    return (
        Evidence(Level.L0, True, "recorded in the ledger before the order was sent", {"sha256": sha256}),
        _staged(sha256, frames),
        _same_key(_visible(sha256, path, preimage, frames, seen), host_key, seen),
        _synced(preimage, frames),
        device_evidence(sha256, seen),
        Evidence(Level.L5, False, _same_boot(preimage), {}),
        *consumer_evidence(sha256, seen),
    )


def _staged(sha256: Sha256, frames: Frames) -> Evidence:
    if "staged" in frames and frames["staged"]["sha256"] == sha256:
        how = "the temporary file read back through a second descriptor before it was published"
        return Evidence(Level.L1, True, how, frames["staged"])
    return Evidence(Level.L1, False, _failure(frames), {})


def _failure(frames: Frames) -> str:
    """Why the program did not get as far."""
    if "failed" in frames:
        return f"{frames['failed']['step']} failed: {frames['failed']['error']}"
    if "refused" in frames:
        return f"{frames['refused']['code']}: {frames['refused']['facts']['found']}"
    return "the host's receipt did not arrive"


def _visible(
    sha256: Sha256, path: str, preimage: Mapping[str, Any], frames: Frames, seen: Seen | None
) -> Evidence:
    if seen is None:
        return Evidence(Level.L2, False, "the read-back got no answer", {})
    facts = {"sha256": seen.sha256 or seen.kind, "machine": seen.machine, **seen.file}
    doubts = [*_content_doubts(sha256, frames, seen), *_place_doubts(path, preimage, seen)]
    if doubts:
        return Evidence(Level.L2, False, doubts[0], facts)
    how = "another process resolved the path anew and read the whole file"
    return Evidence(Level.L2, True, how, facts)


def _same_key(visible: Evidence, host_key: str, seen: Seen | None) -> Evidence:
    """L2 with the host's key among its facts; another key at the read-back is another machine."""
    if seen is None or not (host_key or seen.host_key):
        return visible
    facts = {**visible.facts, "host_key": host_key, "host_key_at_reading": seen.host_key}
    if visible.holds and host_key != seen.host_key:
        how = f"the read-back came over another host key: {seen.host_key}, written over {host_key}"
        return Evidence(Level.L2, False, how, facts)
    return replace(visible, facts=facts)


def _content_doubts(sha256: Sha256, frames: Frames, seen: Seen) -> list[str]:
    """Why what was read back is not the file that was published."""
    if seen.sha256 != sha256:
        why = "" if "receipt" in frames else f" ({_failure(frames)})"
        return [f"the read-back found {seen.sha256 or seen.kind}{why}"]
    if "receipt" not in frames:
        return [f"the bytes are in place, but {_failure(frames)}"]
    published = frames["receipt"]["identity"]
    if any(seen.file["identity"][key] != published[key] for key in ("dev", "ino")):
        return ["another file with the same bytes took its place"]
    return [
        f"{key} is {seen.file['identity'][key]}, published as {published[key]}"
        for key in ("mode", "uid", "gid")
        if seen.file["identity"][key] != published[key]
    ]


def _place_doubts(path: str, preimage: Mapping[str, Any], seen: Seen) -> list[str]:
    """Why what was read back may not be where it was published."""
    here, there = preimage["machine"], seen.machine
    doubts = [
        f"the read-back came from another {key}: {there[key]}, written on {here[key]}"
        for key in ("machine", "boot_id", "hostname")
        if here[key] != there[key]
    ]
    if seen.file["real_path"] != path:
        doubts.append(f"the path now leads to {seen.file['real_path']}")
    return doubts


def _synced(preimage: Mapping[str, Any], frames: Frames) -> Evidence:
    facts = dict(preimage["file_system"])
    if "receipt" not in frames:
        return Evidence(Level.L3, False, _failure(frames), facts)
    directory_sync = frames["receipt"]["directory_sync"]
    if directory_sync != "ok":
        how = f"published, durability unknown: fsync of the directory: {directory_sync}"
        return Evidence(Level.L3, False, how, facts)
    meaning = sync_meaning(preimage["file_system"], preimage["machine"]["preload"])
    how = f"fsync of file and directory answered 0 the first time; {meaning.reason}"
    return Evidence(Level.L3, meaning.is_honoured, how if meaning.is_honoured else meaning.reason, facts)


def device_evidence(sha256: Sha256, seen: Seen | None) -> Evidence:
    """L4, from a reading past the page cache."""
    if seen is None or seen.device is None:
        return Evidence(Level.L4, False, "not asked for: --level L4 reads past the page cache", {})
    if "reason" in seen.device:
        return Evidence(Level.L4, False, f"not available: {seen.device['reason']}", {})
    is_same = seen.device["sha256"] == sha256
    how = seen.device["how"] if is_same else f"the device holds sha256 {seen.device['sha256']}"
    return Evidence(Level.L4, is_same, how, seen.device)


def _same_boot(preimage: Mapping[str, Any]) -> str:
    return f"still the boot of the write ({preimage['machine']['boot_id']}): read again after a restart"


def consumer_evidence(sha256: Sha256, seen: Seen | None) -> tuple[Evidence, Evidence]:
    """L6 and L7, from the view of a process."""
    if seen is None or seen.consumer is None:
        reason = "not asked for: --pid or --port names the serving process"
        return Evidence(Level.L6, False, reason, {}), Evidence(Level.L7, False, reason, {})
    consumer = seen.consumer
    if "reason" in consumer:
        reason = f"cannot tell: {consumer['reason']}"
        return Evidence(Level.L6, False, reason, {}), Evidence(Level.L7, False, reason, {})
    return _sees(sha256, seen, consumer), _has_read(seen, consumer)


def _sees(sha256: Sha256, seen: Seen, consumer: Mapping[str, Any]) -> Evidence:
    view, facts = consumer["view"], dict(consumer)
    if view["kind"] != "file" or view["sha256"] != sha256:
        found = view["sha256"] if view["kind"] == "file" else view["kind"]
        stale = "".join(
            f"; its mount at {place} is stale (//deleted): remount, or mount the directory"
            for place in consumer["stale_mounts"]
        )
        return Evidence(Level.L6, False, f"process {consumer['pid']} sees {found}{stale}", facts)
    if seen.kind != "file":
        return Evidence(Level.L6, False, "there is a file in its namespace only", facts)
    same = all(view["identity"][key] == seen.file["identity"][key] for key in ("dev", "ino"))
    how = f"process {consumer['pid']} sees the same inode and digest at {consumer['path']}"
    return Evidence(Level.L6, same, how if same else "same bytes, another inode in its namespace", facts)


def _has_read(seen: Seen, consumer: Mapping[str, Any]) -> Evidence:
    """Only a mapped inode shows that a process holds the file; start before ctime shows that it cannot."""
    if seen.kind != "file":
        return Evidence(Level.L7, False, "there is no file to read", {})
    identity = seen.file["identity"]
    ctime_ns = identity["ctime_ns"]
    if consumer["mapped_by"]:
        who = ", ".join(map(str, consumer["mapped_by"]))
        return Evidence(Level.L7, True, f"process {who} has this inode mapped", {})
    if consumer["started_ns"] < ctime_ns:
        how = f"process {consumer['pid']} started before the file was written: restart it to load the file"
        return Evidence(Level.L7, False, how, {"started_ns": consumer["started_ns"], "ctime_ns": ctime_ns})
    how = f"cannot tell: process {consumer['pid']} started after the write; nothing shows that it read it"
    return Evidence(Level.L7, False, how, {"started_ns": consumer["started_ns"], "ctime_ns": ctime_ns})
