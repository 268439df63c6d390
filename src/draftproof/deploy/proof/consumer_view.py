"""The config through the eyes of a serving process: the same file, and one it can have read?"""

import secrets
from collections.abc import Mapping
from typing import Any

from draftproof.deploy.hosts import Seen, look
from draftproof.deploy.place import Place
from draftproof.deploy.process import Process
from draftproof.deploy.proof.consumer_shards import shard_answers
from draftproof.deploy.proof.moment import CLOCK_NS, told_time
from draftproof.errors import CouldNotLook
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.place import at_file
from draftproof.host.protocol import Host

__all__ = ["consumer_answers", "path_as_seen"]


def consumer_answers(host: Host, place: Place, process: Process) -> list[Finding | NotLooked]:
    """What is wrong with the file at ``place`` and the shards beside it as a process there has them.

    Whatever cannot be told, a process that is gone or another user's included, is a required NotLooked.
    """
    check = f"the file as {process} sees it"
    try:
        seen = look(host, place, nonce=secrets.token_hex(16), process=process)
    except CouldNotLook as error:
        return [NotLooked(check, f"{error.id}: {error.subject}: {error.found}", is_required=True)]
    consumer = seen.consumer
    if consumer is None or "reason" in consumer:
        reason = "this machine's program does not tell" if consumer is None else str(consumer["reason"])
        return [NotLooked(check, reason, is_required=True)]
    view: Mapping[str, Any] = consumer["view"]
    if view["kind"] == "unreadable":
        return [NotLooked(check, f"{consumer['path']}: {view['error']}", is_required=True)]
    others = _other_file(place, seen, consumer, view)
    answers = [*others, *_older(place, consumer, view, is_ours=not others)]
    return [*answers, *shard_answers(place, consumer)]


def path_as_seen(host: Host, place: Place, process: Process) -> Place:
    """The place by which ``process`` and nobody else reads what is under this path for it.

    Raises:
        CouldNotLook: there is no such process, or what it sees is not shown.
    """
    consumer = look(host, place, nonce=secrets.token_hex(16), process=process).consumer
    if consumer is None or "reason" in consumer:
        raise CouldNotLook(
            str(process),
            expected=f"a process that shows what it finds at {place}",
            found="this machine's program does not tell" if consumer is None else str(consumer["reason"]),
            where=str(place),
            means="what the process reads is not known; nothing may be concluded",
            next_step="name it with --pid, as a user that may look into it",
        )
    return Place(place.host, f"/proc/{consumer['pid']}/root{consumer['real_path']}")


def _other_file(
    place: Place, seen: Seen, consumer: Mapping[str, Any], view: Mapping[str, Any]
) -> list[Finding | NotLooked]:
    """A finding where the process finds other bytes, no file, or the same bytes in another file."""
    here = seen.file["identity"] if seen.kind == "file" else None
    there = view["identity"] if view["kind"] == "file" else None
    if here is None and there is None:
        return []
    is_same_file = here is not None and there is not None and _inode(here) == _inode(there)
    if is_same_file:
        return []
    is_same_content = here is not None and there is not None and view["sha256"] == seen.sha256
    stale = "".join(
        f"its mount at {point} is stale: the file was replaced beneath it; remount, or mount the directory; "
        for point in consumer["stale_mounts"]
    )
    what = "the same bytes in another file" if is_same_content else "other bytes"
    return [
        found(
            "consumer-sees-other-file",
            place.path.rpartition("/")[2],
            expected=_told(seen.kind, seen.sha256, here),
            found=_told(view["kind"], view["sha256"] if there is not None else None, there),
            at=at_file(str(place)),
            detail=f"{stale}process {consumer['pid']} finds {what} at {consumer['path']}",
            severity=Severity.NOTE if is_same_content else Severity.ERROR,
        )
    ]


def _older(
    place: Place, consumer: Mapping[str, Any], view: Mapping[str, Any], *, is_ours: bool
) -> list[Finding]:
    """A finding where the process began before the file it finds became what it is."""
    if view["kind"] != "file":
        return []
    started, identity = consumer["started_ns"], view["identity"]
    if started + CLOCK_NS >= identity["ctime_ns"]:
        return []
    # ctime moves with the name and the mode too, and cannot be set back; mtime only with the content.
    is_content = started + CLOCK_NS < identity["mtime_ns"]
    if not is_content and not is_ours:
        return []  # an inode that lost its name to ours has a new ctime for that alone
    what = "its content" if is_content else "the file (its content, or only its name, mode or links)"
    changed = identity["mtime_ns"] if is_content else identity["ctime_ns"]
    return [
        found(
            "consumer-older-than-file",
            place.path.rpartition("/")[2],
            expected=f"a process started after {told_time(changed)}",
            found=f"process {consumer['pid']}, started {told_time(started)}",
            at=at_file(str(place)),
            detail=f"{what} was changed {told_time(changed)}",
            severity=Severity.ERROR if is_content else Severity.WARNING,
        )
    ]


def _inode(identity: Mapping[str, int]) -> tuple[int, int]:
    return identity["dev"], identity["ino"]


def _told(kind: str, digest: str | None, identity: Mapping[str, int] | None) -> str:
    return f"sha256 {digest}, inode {identity['ino']}" if identity is not None else kind
