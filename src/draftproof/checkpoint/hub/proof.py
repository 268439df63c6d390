"""A file held against the digest it was published under: git's sha1 of a small file, sha256 of a large one.

Source: huggingface_hub file_download.py: the etag of a file is its git blob sha1, or its sha256 where it is
stored with git-lfs or Xet. ``blobs/<etag>`` names it, and so does the second line of a download record.
"""

import hashlib
import os
import re
from dataclasses import dataclass, field

from draftproof.checkpoint.files.members import Member, open_member
from draftproof.checkpoint.files.shard import ArtefactDefect
from draftproof.errors import CouldNotLook

__all__ = ["ALWAYS_HASHED_BYTES", "Proof", "ProvenFile", "file_digest", "is_digest"]

ALWAYS_HASHED_BYTES = 16 * 1024 * 1024
"""Files up to here are hashed whenever they are looked at: configs, tokenizers, indexes."""

_CHUNK = 4 * 1024 * 1024
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_GIT_LENGTH = 40


@dataclass(frozen=True, slots=True)
class ProvenFile:
    """A file whose bytes have the digest that it was published under."""

    name: str
    algorithm: str
    """``git-sha1`` or ``sha256``."""

    digest: str


@dataclass(slots=True)
class Proof:
    """Collects what is proven, what is not, and what is disproven."""

    with_weights: bool
    """Whether files above ALWAYS_HASHED_BYTES are hashed too."""

    proven: list[ProvenFile] = field(default_factory=list)
    not_proven: list[str] = field(default_factory=list)
    """``name: reason``."""

    defects: list[ArtefactDefect] = field(default_factory=list)

    def hold(self, member: Member, published: str) -> None:
        """Hold the bytes of a regular file against the digest it was published under."""
        if not is_digest(published):
            self.not_proven.append(
                f"{member.name}: published as {published}, which is no digest of its bytes"
            )
            return
        try:
            descriptor = open_member(member)
        except CouldNotLook as error:
            self.not_proven.append(f"{member.name}: {error.found}")
            return
        try:
            size = os.fstat(descriptor).st_size
            if size > ALWAYS_HASHED_BYTES and not self.with_weights:
                self.not_proven.append(f"{member.name}: {size} bytes, hashed only when digests are asked for")
                return
            algorithm, digest = file_digest(descriptor, size, published)
        finally:
            os.close(descriptor)
        if digest == published:
            self.proven.append(ProvenFile(member.name, algorithm, digest))
            return
        expected, found = f"{algorithm} {published}", f"{algorithm} {digest}: edited after the download"
        self.defects.append(ArtefactDefect("hub-blob-edited", member.name, expected, found, str(member.path)))


def file_digest(descriptor: int, size: int, published: str) -> tuple[str, str]:
    """(algorithm, value) of the digest of the kind that ``published`` is."""
    is_git = len(published) == _GIT_LENGTH
    # git names a blob by the sha1 of "blob <size>\0" and its bytes. Source: git hash-object.
    state = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False) if is_git else hashlib.sha256()
    position = 0
    while chunk := os.pread(descriptor, _CHUNK, position):
        state.update(chunk)
        position += len(chunk)
    return ("git-sha1" if is_git else "sha256"), state.hexdigest()


def is_digest(name: str) -> bool:
    """Whether a name is 40 or 64 hex digits."""
    return _DIGEST.fullmatch(name) is not None
