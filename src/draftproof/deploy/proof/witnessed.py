"""L7 from a witness's record: was this very file, with these bytes, opened by a process of the engine?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from draftproof.config.raw import JsonValue
from draftproof.deploy.proof.level import Evidence, Level
from draftproof.names import Sha256
from draftproof.runtimes.witness.record import Opened, WitnessRecord

__all__ = ["Wanted", "Witnessed", "witnessed"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file that is to have been opened."""

    path: str
    """Links followed."""

    sha256: Sha256
    """Of the whole file, or of a safetensors header with its length."""

    inode: tuple[int, int] | None
    """Device and inode; None where only the content is known."""


@dataclass(frozen=True, slots=True)
class Witnessed:
    """One wanted file, and whether its content was opened."""

    wanted: Wanted
    evidence: Evidence
    is_other: bool
    """Whether the last opening of the path was of other content: worse than none."""

    def as_dict(self) -> dict[str, JsonValue]:
        """The entry of ``files`` in ``--json``."""
        return {"path": self.wanted.path, "sha256": self.wanted.sha256, "evidence": self.evidence.as_dict()}


def witnessed(record: WitnessRecord, wanted: Sequence[Wanted]) -> Iterator[Witnessed]:
    """L7 for each file: the last opening of its path counts, since an engine may start more than once."""
    for one in wanted:
        openings = [opened for opened in record.opened if one.path in (opened.real, opened.path)]
        last = openings[-1].sha256 if openings else None
        yield Witnessed(one, _evidence(one, openings), last not in (None, one.sha256))


def _evidence(wanted: Wanted, openings: Sequence[Opened]) -> Evidence:
    if not openings:
        how = "no opening is recorded; what opens files without Python is not seen"
        return Evidence(Level.L7, False, how, {})
    last = openings[-1]
    facts = {
        "pid": last.pid,
        "time_ns": last.time_ns,
        "how": last.how,
        "dev": last.dev,
        "ino": last.ino,
        "hashed": last.hashed,
        "sha256": last.sha256,
    }
    if last.sha256 is None:
        return Evidence(Level.L7, False, f"process {last.pid} opened it; it was too long to hash", facts)
    if last.sha256 != wanted.sha256:
        how = f"process {last.pid} opened other content under this path, sha256 {last.sha256}"
        return Evidence(Level.L7, False, how, facts)
    if wanted.inode is not None and wanted.inode != (last.dev, last.ino):
        how = f"process {last.pid} opened the same content in inode {last.ino}, replaced since"
        return Evidence(Level.L7, True, how, facts)
    part = "its header" if last.hashed == "header" else "it"
    which = "a file under this path" if wanted.inode is None else "this inode"
    how = f"process {last.pid} opened {which}, and {part} had this digest"
    return Evidence(Level.L7, True, how, facts)
