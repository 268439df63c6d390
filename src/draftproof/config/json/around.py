"""What stands before or after the one value: the remains of the tool that wrote the file."""

import re
from collections.abc import Mapping

from draftproof.config.json.lines import line_kind
from draftproof.config.json.log import DefectLog
from draftproof.config.json.peers import all_refuse
from draftproof.config.json.value import one_line

__all__ = ["name_trailing", "skip_leading"]

_BLANKS = " \t\r\n\0"  # zero bytes are named for the whole file, as json-nul-bytes
_OBJECT_LINE = re.compile(r"^[ \t]*\{", re.MULTILINE)
_MOST_LINES = 1000
_BRACKETS_ONLY = re.compile(r"[\]},\s]+")


def skip_leading(text: str, log: DefectLog) -> int:
    """The offset where the object begins; what stands before it is named."""
    stripped = text.lstrip(_BLANKS)
    start = len(text) - len(stripped)
    if not stripped or stripped[0] in "{[\"'/#" or (stripped[0].isdigit() and "{" not in stripped):
        return start
    # The object most likely begins a line; else ("const x = {") it begins at the first brace.
    match = _OBJECT_LINE.search(text, start)
    begin = match.end() - 1 if match else text.find("{", start)
    if begin <= start:
        return start
    before = text[start:begin]
    kind = line_kind(before.split("\n", 1)[0])
    log.add(
        "json-leading-text" if kind == "json-trailing-text" else kind,
        at=start,
        expected="the object to begin the file",
        found=f"before it: {one_line(before)}",
        readers=all_refuse(),
    )
    return begin


def name_trailing(text: str, end: int, log: DefectLog) -> None:
    """Name everything after the value's end, line by line; one name for a run of the same kind."""
    rest = text[end:].strip(_BLANKS)
    if not rest:
        return
    at = len(text) - len(text[end:].lstrip(_BLANKS))
    whole = _whole_name(rest)
    if whole is not None:
        _add(log, whole, at, rest)
        return
    previous = ""
    lines = rest.split("\n", _MOST_LINES)
    for line in lines[:_MOST_LINES]:
        content = line.strip(_BLANKS)
        name = line_kind(line) if content else previous
        if content and name != previous:
            _add(log, name, at + (len(line) - len(line.lstrip(_BLANKS))), content)
            previous = name
        at += len(line) + 1
    if len(lines) > _MOST_LINES:
        _add(log, "json-trailing-text", at, f"{lines[-1].count(chr(10)) + 1} more lines, not looked at")


def _whole_name(rest: str) -> str | None:
    """The kind of a remainder that is one thing."""
    if rest[0] in "{[":
        return "json-second-value"
    if rest[0] in "]}," and _BRACKETS_ONLY.fullmatch(rest):
        return "json-extra-bracket"
    closes = rest.count("}") + rest.count("]") - rest.count("{") - rest.count("[")
    if rest[-1] == "}" and closes > 0 and '"' in rest:
        return "json-overwritten-tail"
    return None


_FOUND: Mapping[str, str] = {
    "json-second-value": "another value",
    "json-extra-bracket": "a bracket too many",
    "json-http-error": "the text of an HTTP error",
    "json-overwritten-tail": "the tail of a longer text",
    "json-heredoc-delimiter": "a here-document's delimiter",
    "json-markdown-fence": "a Markdown fence",
    "json-comment": "a comment",
    "json-shell-text": "shell text",
    "json-toml": "a section heading",
    "json-trailing-text": "text",
}


def _add(log: DefectLog, name: str, at: int, content: str) -> None:
    found = f"{_FOUND[name]}: {one_line(content)}"
    log.add(name, at=at, expected="nothing after the value", found=found, readers=all_refuse())
