"""Kinds about a file held against what was meant for its place, and against what a process sees there."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error
from draftproof.names import Layer

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    error(
        "file-not-as-written",
        "the file is not the content that the ledger says was meant for it",
        "whatever reads it reads something else than was meant; the readers are innocent",
        "draftproof write SRC DEST, and look at the exit status of whatever wrote it before",
        also=(Severity.WARNING, Severity.NOTE),
    ),
    error(
        "consumer-sees-other-file",
        "the serving process finds another file under this path than we do",
        "what was written here is not what the process reads",
        "compare the mounts: findmnt -N PID; remount, or restart the container",
        also=(Severity.NOTE,),
    ),
    error(
        "consumer-older-than-file",
        "the serving process started before the file became what it is",
        "it cannot have read this file at its start; it runs with what was there before",
        "restart the process, and make sure that the old one is gone: ps -o pid,lstart,cmd -p PID",
        layer=Layer.EFFECTIVE,
        also=(Severity.WARNING,),
    ),
    error(
        "consumer-maps-other-shard",
        "the serving process has a file of weights in memory that is not the one now under that name",
        "it serves weights that are no longer on disk under this name; a restart will serve others",
        "restart it; if the old weights are the ones meant, copy them first from /proc/PID/map_files",
        layer=Layer.EFFECTIVE,
    ),
)
