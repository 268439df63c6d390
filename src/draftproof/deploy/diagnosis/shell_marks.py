r"""What a shell makes of a text it was not meant to read: expansions, lost quotes, lines it swallowed.

Source: POSIX.1-2017 Shell Command Language 2.7.4: in a here-document whose delimiter is not quoted,
parameters, commands and arithmetic are expanded and a backslash escapes ``$``, a backquote, itself and a line
feed; bash warns and exits 0 where the delimiter never comes. XSI echo (dash) interprets ``\n`` and its like.
"""

import re

__all__ = ["expanded_end", "expansions", "lost_quotes", "swallowed"]

_NAME = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_DELIMITER = re.compile(r"[ \t]*[A-Za-z_][A-Za-z0-9_.-]*[ \t]*")
_COMMAND = re.compile(
    r"[ \t]*(?:sudo |exec |export |set -|cd |echo |cat |printf |ssh |scp |rsync |mv |cp |rm |ln |mkdir |"
    r"chmod |chown |systemctl |docker |kubectl |python3? |bash |sh |kill |pkill |nohup |vllm |sleep |"
    r"test |\[ |if |for |while |done|fi|exit|&& |\|\| |tmux |sed |grep |touch |ls |sync)"
)
_ECHO = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "\\": "\\"}


def expansions(text: str) -> list[str]:
    """The literal pieces of ``text`` after an unquoted here-document; between two, an expansion's value."""
    pieces, piece, at = [], "", 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text) and text[at + 1] in "$`\\\n":
            piece += "" if text[at + 1] == "\n" else text[at + 1]
            at += 2
            continue
        end = _expansion_end(text, at)
        if end == at:
            piece += text[at]
            at += 1
        else:
            pieces.append(piece)
            piece, at = "", end
    return [*pieces, piece]


def expanded_end(found: str, intended: str) -> int:
    """Where ``intended``, its expansions replaced by any values, ends in ``found``; -1 where it is not there.

    Nothing but the expansions must have changed, and most of the text must be literal: one that is all
    expansion could have become anything.
    """
    pieces = expansions(intended)
    literal = sum(map(len, pieces))
    if "".join(pieces) == intended or 2 * literal < len(intended) or not found.startswith(pieces[0]):
        return -1
    at = len(pieces[0])
    for piece in pieces[1:]:
        at = found.find(piece, at)
        if at < 0:
            return -1
        at += len(piece)
    return at


def lost_quotes(text: str) -> dict[str, str]:
    """What echo and an unquoted argument make of ``text``, by the way it happened."""
    bare = text.replace('"', "")
    echoed = re.sub(r"\\([ntrbfva\\])", lambda match: _ECHO[match.group(1)], text)
    return {
        "double quotes taken as the shell's own": bare,
        "passed unquoted, words joined by single blanks": " ".join(bare.split()) + "\n",
        "backslashes interpreted by echo": echoed,
    }


def swallowed(tail: str) -> str:
    """The first swallowed line, where ``tail`` reads like a delimiter or commands; else empty."""
    lines = [line.rstrip("\r") for line in tail.split("\n") if line.strip()]
    for line in lines:
        if _DELIMITER.fullmatch(line) or _COMMAND.match(line):
            return lines[0]
    return ""


def _expansion_end(text: str, at: int) -> int:
    """Where the expansion that begins at ``at`` ends; ``at`` itself where none does."""
    if text[at] == "`":
        end = text.find("`", at + 1)
        return end + 1 if end > 0 else at
    for opening, closing in (("$(", ")"), ("${", "}")):
        if text.startswith(opening, at):
            return _closing(text, at + 2, opening[1], closing)
    name = _NAME.match(text, at)
    return name.end() if name else at


def _closing(text: str, at: int, opening: str, closing: str) -> int:
    """After the bracket that closes the one before ``at``; where none does, the opening is no expansion."""
    depth, start = 1, at - 2
    while at < len(text):
        depth += (text[at] == opening) - (text[at] == closing)
        at += 1
        if not depth:
            return at
    return start
