"""Every defect of a JSON file's bytes by name: what it means and what to do.

Errors refuse the file; warnings and notes are oddities of a file that was accepted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["DEFECTS", "DefectKind"]


@dataclass(frozen=True, slots=True)
class DefectKind:
    """What is known about a defect before it is met."""

    severity: str
    """``error``, ``warning`` or ``note``."""

    title: str
    means: str
    next_step: str


_ASK_AGAIN = "fetch or write the file again, then read it back: draftproof diff WRITTEN READ"
_EDIT = "correct the place named, then read the file again"

_NO_JSON = "no reader can load this; the engine stops here or falls back to something else"
_TOLERANT = "strict readers stop, tolerant ones go on: what is served depends on who reads"


def _error(title: str, means: str, next_step: str = _EDIT) -> DefectKind:
    return DefectKind("error", title, means, next_step)


_FILES = {
    "json-empty-file": _error(
        "the file is empty",
        "it was created and nothing was written into it, or it was cut to nothing",
        _ASK_AGAIN,
    ),
    "json-zero-bytes": _error(
        "the file holds zero bytes only",
        "its length was reserved and its content never reached the disk: a crash, a full disk, a sparse copy",
        _ASK_AGAIN,
    ),
    "json-nul-tail": _error(
        "the file ends in zero bytes",
        "the end was reserved and not written: a crash or a full disk while writing",
        _ASK_AGAIN,
    ),
    "json-nul-bytes": _error(
        "zero bytes stand inside the text",
        "a block of the file was never written, or the file is no text",
        _ASK_AGAIN,
    ),
    "json-utf8-bom": _error(
        "the file begins with a UTF-8 byte order mark",
        "Python's json refuses text that begins with it: the config does not load",
        "remove the first three bytes: tail -c +4 FILE > NEW",
    ),
    "json-utf16": _error("the file is UTF-16", _NO_JSON, "recode it: iconv -f UTF-16 -t UTF-8 FILE > NEW"),
    "json-utf32": _error("the file is UTF-32", _NO_JSON, "recode it: iconv -f UTF-32 -t UTF-8 FILE > NEW"),
    "json-not-utf8": _error(
        "bytes that are not UTF-8",
        _NO_JSON,
        "recode it: iconv -f LATIN1 -t UTF-8 FILE > NEW, if it is Latin-1",
    ),
    "json-too-large": _error(
        "the file is larger than any config", "not read further; it is probably another file under this name"
    ),
    "json-lfs-pointer": _error(
        "a large-file pointer instead of the file",
        "git fetched the pointer and nobody fetched the content",
        "git lfs pull, or download the file itself",
    ),
    "json-html-page": _error(
        "an HTML page instead of the file",
        "a login, error or preview page was saved under this name",
        "download from the raw address (resolve/, not blob/) and check the status",
    ),
    "json-xml-document": _error(
        "an XML document instead of the file",
        "an object store's error answer was saved under this name",
        _ASK_AGAIN,
    ),
    "json-http-error": _error(
        "the text of an HTTP error",
        "a failed download was saved, or appended to what was there",
        "delete the file and download it whole, without resuming",
    ),
    "json-binary-file": _error("a binary file, no text", _NO_JSON, "unpack it, or name the right file"),
    "json-yaml": _error("YAML, no JSON", _NO_JSON, "convert it to JSON, or name the right file"),
    "json-toml": _error("TOML or INI, no JSON", _NO_JSON, "convert it to JSON, or name the right file"),
    "json-plain-text": _error(
        "plain text, no JSON", "a message was written in place of the file", _ASK_AGAIN
    ),
    "json-merge-conflict": _error(
        "an unresolved merge conflict",
        "two versions stand in the file and neither is in force",
        "resolve the merge",
    ),
    "json-line-numbers": _error(
        "line numbers before every line",
        "the output of a viewer (cat -n, an editor tool) was saved as the file",
        "write the file from its source, not from what was displayed",
    ),
}

_AROUND = {
    "json-leading-text": _error("text before the object", "a message was written into the file", _ASK_AGAIN),
    "json-trailing-text": _error("text after the object", "something was appended to the file", _ASK_AGAIN),
    "json-heredoc-delimiter": _error(
        "a here-document's delimiter after the object",
        "the shell did not take it for the end: what followed it stands in the file instead of having run",
        "write the file without a here-document, then read it back",
    ),
    "json-shell-text": _error(
        "shell text in the file",
        "commands or their output were written into the file; commands meant to run did not run",
        "write the file without a here-document, then read it back",
    ),
    "json-second-value": _error(
        "a second value after the first", "two writes were appended, or this is JSON lines", _EDIT
    ),
    "json-extra-bracket": _error("a closing bracket too many", _NO_JSON),
    "json-overwritten-tail": _error(
        "the tail of a longer text after the object",
        "a shorter text was written over a longer one without cutting the file first",
        _ASK_AGAIN,
    ),
    "json-markdown-fence": _error(
        "a Markdown fence around the object", "the text was copied out of a document or a chat", _EDIT
    ),
    "json-truncated": _error(
        "the text ends in the middle",
        "the write or the download was cut; the rest is missing, not default",
        _ASK_AGAIN,
    ),
    "json-not-an-object": _error(
        "valid JSON, but no object", "whoever loads it as a config fails later, at the first key", _EDIT
    ),
}

_VALUES = {
    "json-duplicate-key": _error(
        "a key stands twice in one object",
        "every reader silently keeps one of them, the last; the other is dropped without a word",
        "remove all but the one that is meant",
    ),
    "json-nan": _error("NaN as a value", _TOLERANT),
    "json-infinity": _error("Infinity as a value", _TOLERANT),
    "json-float-overflow": _error("a number beyond the double range", _TOLERANT),
    "json-integer-too-long": _error("an integer of thousands of digits", _NO_JSON),
    "json-too-deep": _error("containers nested too deeply", _TOLERANT),
    "json-too-many-values": _error("more values than any config has", "not read further"),
    "json-too-many-defects": _error("more defects than anybody would read", "not read further", _ASK_AGAIN),
    "json-lone-surrogate": _error("half a surrogate pair", _TOLERANT),
    "json-control-character": _error("a raw control character inside a string", _NO_JSON),
    "json-invalid-escape": _error("an escape that JSON does not have", _NO_JSON),
    "json-unclosed-string": _error("a string without its closing quote", _NO_JSON),
    "json-leading-zero": _error("a number with leading zeros", _NO_JSON),
    "json-malformed-number": _error("a number that is not JSON's", _NO_JSON),
    "json-unknown-word": _error("a word that is no JSON value", _NO_JSON),
    "json-python-constant": _error(
        "Python's True, False or None", "printed by Python, not written by json.dump"
    ),
    "json-single-quotes": _error("single quotes", "printed by Python or written as JSON5, not JSON"),
    "json-curly-quotes": _error("typographic quotes", "an editor or a chat changed the quotes"),
    "json-unquoted-key": _error("a key without quotes", "JavaScript, JSON5 or YAML, not JSON"),
    "json-comment": _error("a comment", "JSON5 or JSONC, not JSON; no reader here takes it"),
    "json-trailing-comma": _error("a comma before a closing bracket", _NO_JSON),
    "json-extra-comma": _error("a comma without an item", _NO_JSON),
    "json-missing-comma": _error("no comma between two items", _NO_JSON),
    "json-missing-colon": _error("no colon after a key", _NO_JSON),
    "json-missing-value": _error(
        "no value where one is due",
        "often a shell or template variable that was empty when the file was written",
    ),
    "json-template": _error(
        "a template that was not filled in",
        "the file was copied without being rendered",
        "render it, then read it back",
    ),
    "json-foreign-space": _error("a blank that is none of JSON's", "often pasted from a web page or a chat"),
    "json-mismatched-bracket": _error("a closing bracket of the other kind", _NO_JSON),
    "json-syntax": _error("no JSON from here on", _NO_JSON),
}

_ODDITIES = {
    "json-crlf": DefectKind(
        "note", "CRLF line endings", "every reader takes it; its digest differs from the LF form", "nothing"
    ),
    "json-lone-cr": DefectKind(
        "note", "CR line endings", "every reader takes it; tools show one long line", "nothing"
    ),
    "json-mixed-line-endings": DefectKind(
        "note",
        "mixed line endings",
        "parts were written by different tools; every reader takes it",
        "nothing",
    ),
    "json-no-final-newline": DefectKind("note", "no final line ending", "every reader takes it", "nothing"),
    "json-integer-beyond-64-bits": DefectKind(
        "note",
        "an integer beyond 64 bits",
        "orjson turns it into a float or refuses it; others keep it",
        "nothing",
    ),
    "json-float-underflow": DefectKind(
        "warning", "a number too small for a double", "every reader takes it as zero", _EDIT
    ),
    "json-error-body": DefectKind(
        "warning",
        "the object is a server's error answer",
        "a failed download was saved as the file",
        _ASK_AGAIN,
    ),
    "json-terminal-escape": DefectKind(
        "warning",
        "a string that drives a terminal",
        "shown raw it moves the cursor, recolours or hides text: what one sees is not what is there",
        "look at it with draftproof, never with cat; ask where the file came from",
    ),
    "json-hidden-character": DefectKind(
        "warning",
        "an invisible or text-reordering character",
        "two strings that look alike differ, or a string reads differently from what it says",
        "retype the string; ask where the file came from",
    ),
    "json-nul-in-string": DefectKind(
        "warning", "a NUL inside a string", "C code ends the string there, Python does not", _EDIT
    ),
    "json-padded-key": DefectKind(
        "warning",
        "blanks at the ends of a key",
        "the key is another one: whoever asks for the name finds nothing",
        _EDIT,
    ),
    "json-lookalike-key": DefectKind(
        "warning",
        "a key with letters of another script",
        "it looks like a known key and is none",
        "retype the key",
    ),
}

DEFECTS: Mapping[str, DefectKind] = MappingProxyType(_FILES | _AROUND | _VALUES | _ODDITIES)
"""Every id that a Defect of this package can carry."""
