"""A folder filled by ``hf download --local-dir``: which revision each file came from, and whether it changed.

Source: huggingface_hub _local_folder.py: ``.cache/huggingface/download/<file>.metadata`` holds three lines,
commit, etag and time of download.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from draftproof.checkpoint.files.members import Member, MemberKind
from draftproof.checkpoint.files.shard import ArtefactDefect, listed
from draftproof.checkpoint.hub.proof import Proof
from draftproof.config.json.bytes import read_limited
from draftproof.errors import CouldNotLook

__all__ = ["check_local_dir"]

_FOLDER = Path(".cache") / "huggingface" / "download"
_MAX_METADATA_BYTES = 1024
_LINES = 2


def check_local_dir(root: Path, members: Sequence[Member], proof: Proof) -> list[ArtefactDefect]:
    """What the download records of a folder tell; empty where there are none. Proves files as it goes."""
    folder = root / _FOLDER
    # os.path: unlike Path.is_dir it answers False where it may not look.
    if not os.path.isdir(folder):  # noqa: PTH112
        return []
    by_commit: dict[str, list[str]] = defaultdict(list)
    for member in members:
        record = folder / f"{member.name}.metadata"
        if member.kind is not MemberKind.FILE or not os.path.lexists(record):
            continue
        try:
            lines = _lines(record)
        except CouldNotLook as error:
            proof.not_proven.append(f"{member.name}: its download record {record}: {error.found}")
            continue
        if len(lines) < _LINES:
            proof.not_proven.append(f"{member.name}: its download record {record} is cut short")
            continue
        by_commit[lines[0]].append(member.name)
        proof.hold(member, lines[1])
    defects = []
    if len(by_commit) > 1:
        found = "; ".join(f"{commit}: {listed(names, 4)}" for commit, names in by_commit.items())
        defects.append(ArtefactDefect("hub-mixed-revisions", root.name, "one revision", found, str(folder)))
    if unfinished := sorted(str(p.relative_to(folder)) for p in folder.rglob("*.incomplete")):
        found = f"{len(unfinished)} unfinished: {listed(unfinished, 3)}"
        defects.append(ArtefactDefect("hub-incomplete", root.name, "finished downloads", found, str(folder)))
    return defects


def _lines(record: Path) -> list[str]:
    text = read_limited(record, _MAX_METADATA_BYTES).decode("utf-8", "replace")
    return [line.strip().strip('"') for line in text.splitlines()]
