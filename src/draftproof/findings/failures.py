"""Failures: every error id that a command can end with instead of findings, its exit status, its meaning.

The classes stand on several floors; a test holds this table against all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["FAILURES", "Failure"]


@dataclass(frozen=True, slots=True)
class Failure:
    """One error id."""

    id: str
    exit_code: int
    means: str
    next: str


_SAFE = "take the file's own way: the message names the path and the rule that stopped it"
_LEDGER = (
    "name another --ledger, or restore this one from a copy; draftproof history says what it still holds"
)
_SSH = "connect once with ssh as this user, then try again"
_CONTENT = "mend the new content, then write it"

_ROWS = (
    Failure(
        "usage", 2, "the call itself is wrong: an option's value, or options together", "draftproof --help"
    ),
    Failure(
        "could-not-look",
        3,
        "the subject, or an input that an option named, could not be read: nothing is known about it, which "
        "is neither good nor bad",
        "mend what the message names (a path, a permission), then ask again",
    ),
    Failure(
        "engine-did-not-start",
        3,
        "the engine ended, or gave no answer in its time; it was stopped and nothing of it is left",
        "read the log that the message names; draftproof preflight asks the same engine without a start",
    ),
    Failure("refused", 1, "the input was read, and it is not what it must be", "mend the file named"),
    Failure("fault", 10, "a fault in draftproof itself", "report it with the text shown"),
    Failure("plan-refused", 1, "the file is not a plan; every fault of it is listed", "mend the plan"),
    Failure(
        "ledger-unusable",
        3,
        "the ledger's directory cannot be read or written, or somebody else can write into it",
        _LEDGER,
    ),
    Failure("ledger-damaged", 1, "the ledger was changed after it was written, or lost entries", _LEDGER),
    Failure("ledger-object-damaged", 1, "a kept file no longer has the content its name says", _LEDGER),
    Failure("host-unreachable", 3, "the machine did not run the program at all", _SSH),
    Failure("host-key-unknown", 3, "the machine's key was never accepted by this user", _SSH),
    Failure(
        "host-key-changed",
        3,
        "the machine shows another key than the one on record: it was set up anew, or it is not that machine",
        "find out which before connecting",
    ),
    Failure("host-login-refused", 3, "the machine does not let this user in without being asked", _SSH),
    Failure(
        "host-no-python", 3, "the machine was reached and has no such interpreter", "install Python 3 there"
    ),
    Failure(
        "host-sftp-only",
        3,
        "the account serves files and runs no program",
        "use an account with a shell, or install the extra that the message names",
    ),
    Failure("replay-mismatch", 3, "something else was asked than what was recorded", "record it again"),
    Failure("write-refused", 1, "the write would not be safe; nothing was changed", _SAFE),
    Failure("write-through-symlink", 1, "the target, or a directory above it, is a symbolic link", _SAFE),
    Failure("write-into-hub-cache", 1, "the target lies in a content-addressed download cache", _SAFE),
    Failure("write-into-ledger", 1, "the target lies in the ledger that would record the write", _SAFE),
    Failure("write-escapes-root", 1, "the path is not below the root it was declared to be below", _SAFE),
    Failure("write-not-regular", 1, "there is a directory, device, socket or pipe", _SAFE),
    Failure("write-many-names", 1, "the file has further hard links, which would keep the old bytes", _SAFE),
    Failure("write-parent-foreign-writable", 1, "somebody else can swap names in the directory", _SAFE),
    Failure(
        "write-read-only", 1, "the file system, or the file's attributes, say it must not be written", _SAFE
    ),
    Failure("write-mount-point", 1, "the target itself is mounted; a rename over it cannot work", _SAFE),
    Failure("write-name-too-long", 1, "there is no room for the temporary name beside the target", _SAFE),
    Failure(
        "write-request-broken",
        1,
        "the request reached the host short, long, damaged or too late",
        "write it again",
    ),
    Failure("write-content-unparsable", 1, "the new content is not what its name says", _CONTENT),
    Failure(
        "write-content-duplicate-keys",
        1,
        "the new content names a key twice; readers would differ in what they keep",
        _CONTENT,
    ),
    Failure("write-parent-missing", 3, "there is no directory to put the file into", "make the directory"),
    Failure(
        "write-conflict",
        4,
        "the file is not what the write was to replace, or another writer is at it; nothing was changed",
        "draftproof diff the two, then decide which is meant",
    ),
    Failure(
        "outcome-unknown",
        5,
        "the host fell silent after the order was sent: the write may or may not have happened",
        "draftproof verify the path once the host answers",
    ),
    Failure(
        "rollback-to-nothing",
        1,
        "there was no file before the write; a rollback writes, it never removes",
        "remove the file by hand, if that is meant",
    ),
    Failure(
        "session-fault",
        10,
        "a forward, commit or rollback out of turn, or parts of different length: a fault of the program",
        "report it with the text shown",
    ),
)

FAILURES: Mapping[str, Failure] = MappingProxyType({failure.id: failure for failure in _ROWS})
