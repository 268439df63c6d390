"""What a Hugging Face cache or download folder proves offline.

A blob's name is the digest of its bytes: a file edited after its download no longer has the digest it is
named by, and no network is needed to tell.
"""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from draftproof.checkpoint.files.members import Member, MemberKind, read_members, read_root
from draftproof.checkpoint.files.shard import ArtefactDefect, listed
from draftproof.checkpoint.hub.layout import HubSnapshot, find_snapshot, read_ref
from draftproof.checkpoint.hub.local_dir import check_local_dir
from draftproof.checkpoint.hub.proof import Proof, ProvenFile
from draftproof.errors import CouldNotLook

__all__ = ["HubReport", "read_hub"]


@dataclass(frozen=True, slots=True)
class HubReport:
    """What the cache around a directory tells about it."""

    snapshot: HubSnapshot | None
    """None where the directory is no cache snapshot (it may be a download folder)."""

    proven: tuple[ProvenFile, ...]
    not_proven: tuple[str, ...]
    """``name: reason`` of files of a cache or download folder whose content is not proven."""

    defects: tuple[ArtefactDefect, ...]


def read_hub(root: Path, *, with_weights: bool = False) -> HubReport:
    """Hold every file of ``root`` against the digest it was published under, and the cache against itself.

    Args:
        root: a directory, in a cache or not.
        with_weights: also hash files above 16 MiB.

    Raises:
        CouldNotLook: a directory cannot be listed.
    """
    real = read_root(root)
    snapshot = find_snapshot(real)
    proof = Proof(with_weights)
    members = _tree(real) if snapshot is not None else list(read_members(real))
    if snapshot is None:
        proof.defects += check_local_dir(real, members, proof)
    else:
        for member in members:
            _judge(member, proof)
        proof.defects += [*_ref(snapshot, proof), *_incomplete(snapshot), *_shared(snapshot, members)]
    proof.defects += _hard_linked(real, members)
    return HubReport(snapshot, tuple(proof.proven), tuple(proof.not_proven), tuple(proof.defects))


def _tree(root: Path) -> list[Member]:
    """Every file below the snapshot; names of subdirectories carry their path."""
    found: list[Member] = []
    for member in read_members(root):
        if member.kind is MemberKind.DIRECTORY and not member.links:
            found += (Member(f"{member.name}/{m.name}", m.kind, m.path, m.links) for m in _tree(member.path))
        else:
            found.append(member)
    return found


def _judge(member: Member, proof: Proof) -> None:
    """One file of a snapshot."""
    here = str(member.links[0] if member.links else member.path)
    if member.kind is MemberKind.DANGLING:
        found = f"a link to {member.path}, where nothing is"
        proof.defects.append(ArtefactDefect("hub-link-dangling", member.name, "a blob", found, here))
    elif member.kind is MemberKind.FILE and not member.links:
        found = "a regular file: the link to its blob was replaced"
        proof.defects.append(
            ArtefactDefect("hub-file-not-link", member.name, "a link into blobs/", found, here)
        )
    elif member.kind is MemberKind.FILE:
        # The blob in the repository is named by the etag; in the shared store behind it by another hash.
        proof.hold(member, (*member.links[1:], member.path)[0].name)
    else:
        proof.not_proven.append(f"{member.name}: {member.kind.value}, not opened")


def _ref(snapshot: HubSnapshot, proof: Proof) -> list[ArtefactDefect]:
    try:
        named = read_ref(snapshot.repo, "main")
    except CouldNotLook as error:
        proof.not_proven.append(f"refs/main: {error.found}")
        return []
    if named is None or named == snapshot.revision:
        return []
    where = str(snapshot.repo / "refs" / "main")
    return [ArtefactDefect("hub-ref-mismatch", "refs/main", snapshot.revision, named, where)]


def _incomplete(snapshot: HubSnapshot) -> list[ArtefactDefect]:
    blobs = snapshot.blobs
    # os.path: unlike Path.is_dir it answers False where it may not look.
    members = read_members(blobs) if os.path.isdir(blobs) else ()  # noqa: PTH112
    names = [m.name for m in members if m.name.endswith(".incomplete")]
    if not names:
        return []
    found = f"{len(names)} unfinished: {listed(names, 3)}"
    return [ArtefactDefect("hub-incomplete", "blobs", "finished downloads", found, str(blobs))]


def _shared(snapshot: HubSnapshot, members: list[Member]) -> list[ArtefactDefect]:
    """Files whose bytes another snapshot of the repository has too: whoever writes through one edits both."""
    counts: Counter[Path] = Counter()
    for other in read_members(snapshot.root.parent):
        if other.kind is MemberKind.DIRECTORY and other.path != snapshot.root:
            counts.update({m.path for m in _tree(other.path) if m.links and m.kind is MemberKind.FILE})
    shared = [m for m in members if m.links and counts[m.path]]
    if not shared:
        return []
    found = listed([f"{m.name} (blob {m.path.name} of {counts[m.path] + 1} snapshots)" for m in shared])
    subject = shared[0].name if len(shared) == 1 else snapshot.name
    return [ArtefactDefect("hub-blob-shared", subject, "bytes of one snapshot", found, str(snapshot.blobs))]


def _hard_linked(root: Path, members: list[Member]) -> list[ArtefactDefect]:
    files = [m for m in members if m.kind is MemberKind.FILE]
    linked = [(m, n) for m in files if (n := m.path.stat().st_nlink) > 1]
    if not linked:
        return []
    found = listed([f"{m.name} ({n} names)" for m, n in linked])
    subject = linked[0][0].name if len(linked) == 1 else root.name
    return [ArtefactDefect("hard-linked", subject, "one name for each file", found, str(root))]
