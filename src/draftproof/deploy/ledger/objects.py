"""Bytes kept under their own digest: intended contents and pre-images, for rollback and diagnosis."""

import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.names import Sha256

__all__ = ["Objects", "ObjectsDamaged", "ObjectsUnusable", "sha256_hex", "sync_directory"]


class ObjectsUnusable(CouldNotLook):
    """The directory of kept contents cannot be used."""

    id = "ledger-unusable"


class ObjectsDamaged(RefusedInput):
    """A kept file no longer has the content its name says."""

    id = "ledger-object-damaged"


@dataclass(frozen=True, slots=True)
class Objects:
    """A directory of files named by the sha256 of their content; nothing is ever removed from it."""

    directory: Path

    def keep(self, data: bytes) -> Sha256:
        """Store ``data`` durably, for the owner only; what is there already is checked, not trusted.

        Raises:
            ObjectsUnusable: it cannot be stored there.
        """
        digest = sha256_hex(data)
        path = self._path(digest)
        try:
            if not path.exists() or path.read_bytes() != data:
                self._store(path, data)
        except OSError as error:
            raise ObjectsUnusable(
                str(self.directory),
                expected="a directory that can be written",
                found=f"{error.strerror}",
                where=str(self.directory),
                means="what is not kept cannot be gone back to; nothing was sent",
                next_step="--ledger DIR",
            ) from error
        return digest

    def _store(self, path: Path, data: bytes) -> None:
        self.directory.parent.parent.mkdir(parents=True, exist_ok=True)
        for directory in (self.directory.parent, self.directory, path.parent):
            directory.mkdir(mode=0o700, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)  # a full disk must not be kept full by what did not fit
            raise
        sync_directory(path.parent)

    def has(self, digest: str) -> bool:
        """Whether something is kept under ``digest``."""
        return self._path(digest).exists()

    def fetch(self, digest: str) -> bytes:
        """The bytes kept under ``digest``.

        Raises:
            CouldNotLook: nothing is kept under it.
            ObjectsDamaged: what is kept has another digest.
        """
        path = self._path(digest)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise CouldNotLook(
                digest,
                expected="a kept content",
                found=f"{error.strerror}",
                where=str(path),
                means="the ledger names this content and does not hold it",
                next_step="name the ledger that recorded it: --ledger DIR",
            ) from error
        if sha256_hex(data) != digest:
            raise ObjectsDamaged(
                digest,
                expected=f"sha256 {digest}",
                found=f"sha256 {sha256_hex(data)}",
                where=str(path),
                means="this evidence was changed after it was recorded; it is not used",
                next_step="restore the file from a backup of the ledger",
            )
        return data

    def _path(self, digest: str) -> Path:
        return self.directory / digest[:2] / digest


def sha256_hex(data: bytes) -> Sha256:
    """The sha256 of ``data`` in lower-case hex."""
    return Sha256(hashlib.sha256(data).hexdigest())


def sync_directory(directory: Path) -> None:
    """Put a directory's names on the medium. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
