"""Why a write was not done: one class a reason, each with its id, from what the program on the host said.

::

    RefusedInput (exit 1)                            CouldNotLook (exit 3)
    |-- WriteRefused                                 |-- ParentMissing  write-parent-missing
    |   |-- Symlink           write-through-symlink  `-- HostUnreachable (host.protocol)
    |   |-- HubCache          write-into-hub-cache
    |   |-- EscapesRoot       write-escapes-root     DraftproofError
    |   |-- NotRegular        write-not-regular      |-- Conflict        write-conflict   exit 4
    |   |-- ManyNames         write-many-names       `-- OutcomeUnknown  outcome-unknown  exit 5
    |   |-- ForeignParent     write-parent-foreign-writable
    |   |-- ReadOnly          write-read-only
    |   |-- MountPoint        write-mount-point
    |   |-- NameTooLong       write-name-too-long
    |   |-- RequestBroken     write-request-broken
    |   |-- IntoLedger        write-into-ledger
    |   |-- Unparsable        write-content-unparsable
    |   `-- DuplicateKeys     write-content-duplicate-keys
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from draftproof.deploy.hosts import told_kind
from draftproof.errors import CouldNotLook, DraftproofError, RefusedInput

__all__ = [
    "Conflict",
    "DuplicateKeys",
    "EscapesRoot",
    "ForeignParent",
    "HubCache",
    "IntoLedger",
    "ManyNames",
    "MountPoint",
    "NameTooLong",
    "NotRegular",
    "OutcomeUnknown",
    "ParentMissing",
    "ReadOnly",
    "RequestBroken",
    "Symlink",
    "Unparsable",
    "WriteRefused",
    "refusal",
]


class WriteRefused(RefusedInput):
    """The write would not be safe; nothing was changed."""

    id = "write-refused"


class Symlink(WriteRefused):
    """The target, or a directory above it, is a symbolic link."""

    id = "write-through-symlink"


class HubCache(WriteRefused):
    """The target lies in a content-addressed download cache."""

    id = "write-into-hub-cache"


class EscapesRoot(WriteRefused):
    """The path is not below the root it was declared to be below."""

    id = "write-escapes-root"


class NotRegular(WriteRefused):
    """There is a directory, device, socket or pipe."""

    id = "write-not-regular"


class ManyNames(WriteRefused):
    """The file has further hard links."""

    id = "write-many-names"


class ForeignParent(WriteRefused):
    """Somebody else can swap names in the directory."""

    id = "write-parent-foreign-writable"


class ReadOnly(WriteRefused):
    """The file system, or the file's attributes, say that it must not be written."""

    id = "write-read-only"


class MountPoint(WriteRefused):
    """The target itself is mounted; a rename over it cannot work."""

    id = "write-mount-point"


class NameTooLong(WriteRefused):
    """No room for the temporary name beside the target."""

    id = "write-name-too-long"


class RequestBroken(WriteRefused):
    """The request reached the host short, long, damaged or too late."""

    id = "write-request-broken"


class IntoLedger(WriteRefused):
    """The target is a part of the ledger that is to record the write."""

    id = "write-into-ledger"


class Unparsable(WriteRefused):
    """The new content is not what its name says."""

    id = "write-content-unparsable"


class DuplicateKeys(WriteRefused):
    """The new content names a key twice; readers would differ in what they keep."""

    id = "write-content-duplicate-keys"


class ParentMissing(CouldNotLook):
    """There is no directory to put the file into."""

    id = "write-parent-missing"


class Conflict(DraftproofError):
    """The file is not what the write was to replace, or another writer is at it; nothing was changed."""

    id = "write-conflict"
    exit_code = 4


class OutcomeUnknown(DraftproofError):
    """The host fell silent after the order was sent, and could not be read since."""

    id = "outcome-unknown"
    exit_code = 5


@dataclass(frozen=True, slots=True)
class _Why:
    kind: type[DraftproofError]
    expected: str
    means: str
    next_step: str


_NOTHING = "nothing was changed"
_BROKEN = _Why(RequestBroken, "the whole request, in time", _NOTHING, "run the command again")
_WHY: dict[str, _Why] = {
    "symlink": _Why(
        Symlink,
        "a regular file reached without symbolic links",
        f"writing through a link changes a file other names share; {_NOTHING}",
        "name the real path; in a hub cache, copy the model to a directory of its own first",
    ),
    "hub-cache": _Why(
        HubCache,
        "a directory outside a Hugging Face cache",
        f"its files are named by their content and shared between revisions; {_NOTHING}",
        "copy the snapshot to a directory of its own and write there",
    ),
    "escapes-root": _Why(EscapesRoot, "an absolute path below the root, without ..", _NOTHING, "correct it"),
    "not-regular": _Why(NotRegular, "a regular file or a free name", _NOTHING, "name a file"),
    "many-names": _Why(
        ManyNames,
        "one name (hard link count 1)",
        f"the other names would keep the old content; {_NOTHING}",
        "find -samefile PATH; then give the target an inode of its own: cp PATH x && mv x PATH",
    ),
    "parent-foreign-writable": _Why(
        ForeignParent,
        "a directory of the writer's own (or root's), not writable by everybody",
        f"another user could swap the name between the check and the load; {_NOTHING}",
        "chmod o-w, chown, or write as the owner",
    ),
    "read-only": _Why(
        ReadOnly, "a file that may be written", _NOTHING, "lift it first: mount, chmod, chattr"
    ),
    "mount-point": _Why(
        MountPoint,
        "a name inside a directory, not a mount of its own",
        f"a single-file mount pins one inode and cannot be replaced by rename; {_NOTHING}",
        "mount the directory instead of the file, and write on the side that owns it",
    ),
    "name-too-long": _Why(NameTooLong, "at most 150 bytes", _NOTHING, "shorten the name"),
    "parent-missing": _Why(ParentMissing, "an existing directory", _NOTHING, "mkdir -p, or correct the path"),
    "conflict": _Why(
        Conflict, "", f"somebody else changed it; {_NOTHING}", "look at it, then write again on top of it"
    ),
    "busy": _Why(Conflict, "a free lock", _NOTHING, "wait for the other writer, then look again"),
    "request-cut": _BROKEN,
    "request-long": _BROKEN,
    "request-damaged": _BROKEN,
    "request-late": _BROKEN,
    "body-differs": _BROKEN,
    "unheard": _BROKEN,
    "late": _BROKEN,
}


def refusal(code: str, facts: Mapping[str, Any], *, shown: str, expected: str) -> DraftproofError | None:
    """The error for a refusal code of the host's program; None where the code is no refusal to the user.

    Args:
        code: As the program said it.
        facts: What it saw; ``found`` always, ``resolved`` for a link.
        shown: The target as people write it.
        expected: The old content the write was to replace, for a conflict.
    """
    if code not in _WHY:
        return None
    why = _WHY[code]
    next_step = why.next_step
    means = why.means
    if "kept" in facts:
        means += "".join(f"; left for you to look at: {name}" for name in facts["kept"])
    if "resolved" in facts:
        next_step = f"write to {facts['resolved']} if that is the file you mean"
    return why.kind(
        shown,
        expected=why.expected or expected,
        found=told_kind(f"{facts['found']}"),
        where=shown,
        means=means,
        next_step=next_step,
    )
