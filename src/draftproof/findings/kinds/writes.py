"""Kinds about a file held against what the ledger says was written, or announced, for its place."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    error(
        "file-not-as-written",
        "the file is not the content that the ledger says was meant for it",
        "whatever reads it reads something else than was meant; the readers are innocent",
        "draftproof write SRC DEST, and look at the exit status of whatever wrote it before",
        also=(Severity.WARNING, Severity.NOTE),
    ),
)
