"""The Hugging Face cache as a layout: ``models--org--name/snapshots/<revision>/file -> ../../blobs/<etag>``.

Source: huggingface_hub file_download.py (cache), utils/_shared_blobs.py (2.x: a blob is itself a link to
``<cache>/blobs/<2 hex>/<hash>``), _local_folder.py (``.cache/huggingface/download/<file>.metadata``).
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from draftproof.checkpoint.files.members import MemberKind, read_members, read_root
from draftproof.config.json.bytes import read_limited
from draftproof.errors import CouldNotLook

__all__ = ["HubSnapshot", "find_snapshot", "read_ref", "resolve"]

_REPO = re.compile(r"(models|datasets|spaces)--.+")
_MAX_REF_BYTES = 256


@dataclass(frozen=True, slots=True)
class HubSnapshot:
    """A snapshot directory inside a cache."""

    repo: Path
    """``.../models--org--name``."""

    revision: str
    root: Path

    @property
    def blobs(self) -> Path:
        """Where the bytes of every revision are."""
        return self.repo / "blobs"

    @property
    def name(self) -> str:
        """``org/name``."""
        return self.repo.name.split("--", 1)[1].replace("--", "/")


def resolve(path: Path) -> Path:
    """The directory to look at: a cache's repository folder stands for the snapshot that refs/main names.

    Any other path is returned as it is.

    Raises:
        CouldNotLook: it is a repository folder, and no snapshot can be chosen.
    """
    # os.path: unlike Path.is_dir it answers False where it may not look.
    if not (_REPO.fullmatch(path.name) and os.path.isdir(path / "snapshots")):  # noqa: PTH112
        return path
    revision = read_ref(path, "main")
    present = [m.name for m in read_members(path / "snapshots") if m.kind is MemberKind.DIRECTORY]
    if revision in present:
        return path / "snapshots" / revision
    if revision is None and len(present) == 1:
        return path / "snapshots" / present[0]
    raise CouldNotLook(
        str(path),
        expected="a snapshot that refs/main names",
        found=f"refs/main {revision or 'absent'}, snapshots {', '.join(present) or 'none'}",
        where=str(path / "refs" / "main"),
        means="which revision is meant is not known",
        next_step=f"name one of {path}/snapshots/*",
    )


def find_snapshot(root: Path) -> HubSnapshot | None:
    """The cache snapshot that the directory ``root`` is, links of the path followed; None outside a cache."""
    real = read_root(root)
    repo = real.parent.parent
    if real.parent.name == "snapshots" and _REPO.fullmatch(repo.name):
        return HubSnapshot(repo, real.name, real)
    return None


def read_ref(repo: Path, name: str) -> str | None:
    """The revision a ref names; None where there is no such ref.

    Raises:
        CouldNotLook: there is one and it cannot be read.
    """
    path = repo / "refs" / name
    if not os.path.lexists(path):
        return None
    return read_limited(path, _MAX_REF_BYTES).decode("ascii", "replace").strip() or None
