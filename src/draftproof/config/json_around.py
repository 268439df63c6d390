"""What stands before or after the one value: the remains of the tool that wrote the file."""

import re
from collections.abc import Mapping

from draftproof.config.json_log import DefectLog
from draftproof.config.json_peers import all_refuse
from draftproof.config.recognise import HTTP_ERROR

__all__ = ["name_trailing", "skip_leading"]

_BLANKS = " \t\r\n\0"  # zero bytes are named for the whole file, as json-nul-bytes
_VALUE_START = re.compile(r"^[ \t]*[{]", re.MULTILINE)
_FENCE = re.compile(r"\s*```[\w-]*[ \t]*$", re.MULTILINE)
_DELIMITER = re.compile(
    r"[ \t]*'?\"?[A-Z_]*(?:EOF|EOT|EOS|END|STOP|JSON|CONFIG|HEREDOC|PY)[A-Z_0-9]*'?\"?[ \t]*"
)
_WORD_DELIMITER = re.compile(r"[A-Z_]{2,}[A-Z_0-9]*")
_COMMANDS = (
    "awk|bash|cat|cd|chmod|chown|cp|curl|docker|done|echo|exec|exit|export|false|fi|git|grep|head|if|jq|kill|kubectl|less|ls|mkdir"
    "|mv|nano|pip|printf|pwd|python|python3|rm|rsync|scp|sed|sha256sum|ssh|sudo|sync|tail|tee|test|then|touch|true|unset|vi|vim|wget|while"
)
_SHELL = re.compile(
    rf"[ \t]*(?:[\w.@:~/-]*[$#%>][ \t]|\$|#|>|&&|\|\|?|;|`|(?:{_COMMANDS})(?=[ \t\n;&|<>]|$)"
    r"|(?:bash|sh|zsh|-bash): |[A-Z_][A-Z0-9_]*=)"
)
_COMMENT = re.compile(r"[ \t]*(?://|/\*)")
_SHOWN_CHARACTERS = 60


def skip_leading(text: str, log: DefectLog) -> int:
    """The offset where the object begins; what stands before it is named."""
    stripped = text.lstrip(_BLANKS)
    start = len(text) - len(stripped)
    if not stripped or stripped[0] in "{[\"'/#" or (stripped[0].isdigit() and "{" not in stripped):
        return start
    match = _VALUE_START.search(text)
    if match is None:
        return start
    before = text[start : match.start()]
    if not before.strip():
        return start
    name, found = "json-leading-text", _short(before)
    if _FENCE.match(before):
        name = "json-markdown-fence"
    elif HTTP_ERROR.match(before):
        name, found = "json-http-error", _short(before)
    elif _SHELL.match(before):
        name = "json-shell-text"
    log.add(
        name,
        at=start,
        expected="the object to begin the file",
        found=f"before it: {found}",
        readers=all_refuse(),
    )
    return match.start()


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
    for line in rest.split("\n"):
        content = line.strip(_BLANKS)
        name = _line_name(line.rstrip(_BLANKS)) if content else previous
        if content and name != previous:
            _add(log, name, at + (len(line) - len(line.lstrip(_BLANKS))), content)
            previous = name
        at += len(line) + 1


def _whole_name(rest: str) -> str | None:
    """The kind of a remainder that is one thing."""
    if rest[0] in "{[":
        return "json-second-value"
    if not rest.strip("]}, \t\r\n"):
        return "json-extra-bracket"
    if HTTP_ERROR.fullmatch(rest):
        return "json-http-error"
    closes = rest.count("}") + rest.count("]") - rest.count("{") - rest.count("[")
    if rest[-1] == "}" and closes > 0 and '"' in rest:
        return "json-overwritten-tail"
    return None


def _line_name(line: str) -> str:
    """The kind of one line; ``line`` keeps its indent, which a delimiter may have and a comment too."""
    text = line.strip(_BLANKS)
    kinds = (
        ("json-http-error", HTTP_ERROR.fullmatch(text)),
        ("json-heredoc-delimiter", _DELIMITER.fullmatch(line) or _WORD_DELIMITER.fullmatch(text)),
        ("json-markdown-fence", text.startswith("```")),
        ("json-comment", _COMMENT.match(line)),
        ("json-shell-text", _SHELL.match(line)),
        ("json-second-value", text[0] in "{["),
    )
    return next((name for name, matches in kinds if matches), "json-trailing-text")


_FOUND: Mapping[str, str] = {
    "json-second-value": "another value",
    "json-extra-bracket": "a bracket too many",
    "json-http-error": "the text of an HTTP error",
    "json-overwritten-tail": "the tail of a longer text",
    "json-heredoc-delimiter": "a here-document's delimiter",
    "json-markdown-fence": "a Markdown fence",
    "json-comment": "a comment",
    "json-shell-text": "shell text",
    "json-trailing-text": "text",
}


def _add(log: DefectLog, name: str, at: int, content: str) -> None:
    found = f"{_FOUND[name]}: {_short(content)}"
    log.add(name, at=at, expected="nothing after the value", found=found, readers=all_refuse())


def _short(text: str) -> str:
    line = " ".join(text.split()) or repr(text)
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 3] + "..."
