"""Kinds about the file on disk held against the intended one."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    error(
        "intent-drift",
        "a value on disk is not the intended one",
        "the file on disk is not the file that was meant; everything that reads it is innocent",
        "write the intended file again and read it back from the place that serves",
        also=(Severity.WARNING,),
    ),
    warning(
        "intent-line-endings",
        "the values are the intended ones, the line endings are not",
        "something between the writer and the disk rewrites text; the next file may not survive it",
        "find the transfer in text mode (git autocrlf, ftp, an editor) and write the bytes again",
    ),
    note(
        "intent-formatting",
        "the values are the intended ones, the formatting is not",
        "key order, white space or the spelling of a number differ; nothing that is read does",
        "nothing to mend",
    ),
    error(
        "intent-refused",
        "the intended file itself is not one strict JSON object",
        "there is nothing to hold the file on disk against",
        "mend the intended file first",
    ),
)
