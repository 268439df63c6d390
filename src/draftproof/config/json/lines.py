"""Lines that are no JSON, by the tool they come from: a shell, a server, a document."""

import re

__all__ = ["is_remains", "line_kind"]

_BLANKS = " \t\r\n\0"
_PHRASES = (
    "range not satisfiable|not found|entry not found|repository not found|revision not found|access denied"
    "|forbidden|unauthorized|bad gateway|bad request|gateway time-?out|service unavailable"
    "|internal server error|too many requests|invalid username or password|moved permanently"
    "|invalid credentials in authorization header|temporary redirect|request timeout"
)
_HTTP_ERROR = re.compile(
    rf"HTTP/[0-9.]+ [1-5][0-9]{{2}}.*"
    rf"|(?:(?:http )?error[: ]*)?[45][0-9]{{2}}[ :-]*(?:(?:client|server) error[: ]*)?(?:{_PHRASES}).*"
    rf"|(?:requested )?(?:{_PHRASES})[.!]?",
    re.IGNORECASE,
)
# The usual delimiters whatever follows them, and any word of capitals that stands alone.
_DELIMITER = re.compile(
    r"(?i:['\"]?_*(?:EOF|EOT|EOS|HEREDOC)_*['\"]?)(?:[ \t;&|)$].*)?|['\"]?[A-Z_]{2,}[A-Z_0-9]*['\"]?"
)
_COMMANDS = frozenset(
    """awk bash cat cd chmod chown cp curl docker done echo exec exit export fi git grep head if jq kill
    kubectl less ls mkdir mv nano pip printf pwd python python3 rm rsync scp sed sha256sum ssh sudo sync tail
    tee test then touch unset vi vim wget while""".split()  # noqa: SIM905 (a word list reads better)
)
_FIRST_WORD = re.compile(r"[\w.-]+(?=[ \t;&|<>]|$)")
_SHELL = re.compile(
    r"[\w.@:~/-]{0,100}[$#%>] |\$|#|>|&&|\||;|`|[A-Z_][A-Z0-9_]*="
    r"|(?:-?bash|sh|zsh|cat|ls|curl|wget|tee|cp|mv): "
)
_SECTION = re.compile(r"\[{1,2}[\w. \"-]+\]{1,2}")
_REMAINS = ("json-http-error", "json-heredoc-delimiter", "json-shell-text", "json-markdown-fence")


def line_kind(line: str) -> str:
    """The defect that names a line standing outside of every value."""
    text = line.strip(_BLANKS)
    word = _FIRST_WORD.match(text)
    kinds = (
        ("json-http-error", _HTTP_ERROR.fullmatch(text)),
        ("json-heredoc-delimiter", _DELIMITER.fullmatch(text)),
        ("json-markdown-fence", text.startswith("```")),
        ("json-comment", text.startswith(("//", "/*"))),
        ("json-shell-text", _SHELL.match(text) or (word and word.group() in _COMMANDS)),
        ("json-toml", _SECTION.fullmatch(text)),
        ("json-second-value", text.startswith(("{", "["))),
    )
    return next((name for name, matches in kinds if matches), "json-trailing-text")


def is_remains(line: str) -> str | None:
    """The defect of a line that stands inside an unfinished value and is no part of it; else None."""
    if line.startswith(("#", '"')):  # a comment or a string, whatever it looks like
        return None
    kind = line_kind(line)
    return kind if kind in _REMAINS else None
