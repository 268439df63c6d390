"""The weights as a serving process has them: the file mapped under each name, and the one there now."""

from collections.abc import Iterator, Mapping
from typing import Any

from draftproof.deploy.place import Place
from draftproof.deploy.proof.moment import CLOCK_NS, told_time
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.place import at_file

__all__ = ["shard_answers"]

_SHOWN = 3
"""So many names stand in a reason; of the others the number."""


def shard_answers(place: Place, consumer: Mapping[str, Any]) -> Iterator[Finding | NotLooked]:
    """What is wrong with the shards beside ``place`` as the process and its children have them mapped.

    A shard that is mapped in the file now under its name is fine and is not mentioned. One that nobody has
    mapped was read and closed, or never read: that is not known, and is said.

    Args:
        place: Of the config that was looked at.
        consumer: The view of the process, as host.consumer tells it.
    """
    check = f"the weights as process {consumer['pid']} has them"
    if consumer["num_hidden"]:
        reason = f"{consumer['num_hidden']} of {len(consumer['family'])} processes do not show their mappings"
        yield NotLooked(check, reason, is_required=True)
    if consumer["shards_trouble"]:
        yield NotLooked(check, consumer["shards_trouble"])
    elif not consumer["shards"]:
        yield NotLooked(check, "no *.safetensors beside the config there, and none mapped")
    unmapped = []
    for shard in consumer["shards"]:
        yield from _other_inode(place, shard)
        if not shard["mapped"]:
            unmapped.append(shard["name"])
            yield from _younger(place, consumer, shard)
    if unmapped:
        names = ", ".join(unmapped[:_SHOWN]) + (
            f" and {len(unmapped) - _SHOWN} more" if unmapped[_SHOWN:] else ""
        )
        family = len(consumer["family"]) - 1
        who = f"the process or its {family} descendants" if family else "the process"
        yield NotLooked(check, f"{names}: not mapped by {who}; what was read and closed leaves no trace")


def _other_inode(place: Place, shard: Mapping[str, Any]) -> Iterator[Finding]:
    now = shard["now"]
    for mapping in shard["mapped"]:
        if mapping["is_now"]:
            continue
        device = "" if mapping["dev"] is None else f" on device {mapping['dev']}"
        what = (
            "deleted or replaced" if mapping["is_gone"] else "another file than the one now under that name"
        )
        yield found(
            "consumer-maps-other-shard",
            shard["name"],
            expected="no file" if now is None else f"inode {now['ino']} on device {now['dev']}",
            found=f"inode {mapping['ino']}{device}, mapped by process {mapping['pid']}",
            at=at_file(_beside(place, shard["name"])),
            detail=f"process {mapping['pid']} has {what} mapped ({mapping['path']}); in its root the name "
            f"leads to {shard['path']}",
        )


def _younger(place: Place, consumer: Mapping[str, Any], shard: Mapping[str, Any]) -> Iterator[Finding]:
    """A warning where every process of the family began before the shard's content was changed."""
    now = shard["now"]
    if now is None or consumer["youngest_ns"] + CLOCK_NS >= now["mtime_ns"]:
        return
    yield found(
        "consumer-older-than-file",
        shard["name"],
        expected=f"a process started after {told_time(now['mtime_ns'])}",
        found=f"process {consumer['pid']}, its last descendant started {told_time(consumer['youngest_ns'])}",
        at=at_file(_beside(place, shard["name"])),
        detail=f"its content was changed {told_time(now['mtime_ns'])}; fine if it fetched it itself",
        severity=Severity.WARNING,
    )


def _beside(place: Place, name: str) -> str:
    return str(Place(place.host, f"{place.path.rpartition('/')[0]}/{name}"))
