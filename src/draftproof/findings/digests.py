"""Digests of a directory's weight files: what a manifest, or a second look, can be held against."""

from collections.abc import Callable
from pathlib import Path

from draftproof.checkpoint.digest import FileDigest, digest_files
from draftproof.checkpoint.files.members import follow
from draftproof.checkpoint.ledger import Checkpoint
from draftproof.config.json.value import JsonValue
from draftproof.findings.evidence import Model

__all__ = ["digest_as_dict", "digest_weights", "weight_files"]


def weight_files(model: Model) -> tuple[Path, ...]:
    """The shards whose header could be read, and the index, each followed to the file itself."""
    if not isinstance(model.weights, Checkpoint):
        return ()
    names = [shard.name for shard in model.weights.shards]
    names += [model.weights.index_name] if model.weights.index_name is not None else []
    return tuple(follow(model.weights.root, name).path for name in names)


def digest_weights(model: Model, progress: Callable[[int], None] | None = None) -> tuple[FileDigest, ...]:
    """Every weight file read once: sha256, and blake3 where it is installed.

    Raises:
        CouldNotLook: a file cannot be opened any more.
    """
    return digest_files(weight_files(model), progress=progress)


def digest_as_dict(digest: FileDigest) -> dict[str, JsonValue]:
    """A digest for ``--json``; ``stable`` is whether nobody changed the file while it was read."""
    return {
        "file": str(digest.path),
        "size_bytes": digest.size_bytes,
        **digest.digests,
        "stable": digest.is_stable,
    }
