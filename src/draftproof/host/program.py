"""The programs for a host as a command line, and their frames as values: the other end of host.ground."""

import base64
import hashlib
import json
import marshal
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

__all__ = [
    "ANY_PYTHON",
    "SYSTEM_PATH",
    "Frame",
    "Program",
    "fields_of",
    "frame_of",
    "frames_of",
    "has_shell_form",
    "program_argv",
    "request",
    "shell_argv",
]

ANY_PYTHON = "python3"
"""Whichever interpreter a host has; any other word is one that somebody named."""

SYSTEM_PATH = "/usr/bin:/bin:"
"""Stands before the user's own path where any interpreter will do."""

Program = Literal["helper", "reader", "examiner", "headers"]
_PARTS: dict[Program, tuple[str, ...]] = {
    "helper": ("ground", "looking", "beside", "helper"),
    "reader": ("ground", "seeing", "reader"),
    "examiner": ("ground", "seeing", "reader", "processes", "mappings", "consumer", "examiner"),
    "headers": ("ground", "headers"),
}
_SHELL_PARTS: dict[Program, tuple[str, ...]] = {
    "helper": ("ground", "helper"),
    "reader": ("ground", "reader"),
    "examiner": ("ground", "consumer", "reader"),
    "headers": ("ground", "headers"),
}
# A Python of the system that is too old makes way for the next one on the user's own path.
# Each part becomes a module under its own name, so that the same imports work on a bare interpreter. The text
# goes to any interpreter; our own gets the same text compiled, which saves it a third of its start-up time.
_START = (
    "import os,sys,zlib,marshal,binascii\n"
    "path=os.environ.get('PATH','')\n"
    "if sys.version_info<{oldest}:\n"
    " if not path.startswith('{system}'):sys.exit('Python 3.8 or newer is needed, this is '+sys.version)\n"
    " os.environ['PATH']=path[len('{system}'):]\n"
    " argv=open('/proc/self/cmdline').read().split('\\0')[:-1];os.execvp(argv[0],argv)\n"
    "for n,s in marshal.loads(zlib.decompress(binascii.a2b_base64('{packed}'))):\n"
    " m=type(sys)(n);sys.modules[n]=m;exec({code},m.__dict__)\n"
    "sys.exit(m.main())"
)
_OLDEST = (3, 8)
_MARSHAL_VERSION = 2
"""The format that every Python 3 reads; only texts travel in it between different ones."""

_NO_DOCSTRINGS = 2
"""Level of compile(): the programs do nothing by their docstrings or asserts."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One thing the program said."""

    kind: str
    """preimage, staged, receipt, refused, failed; seen."""

    facts: dict[str, Any]


def program_argv(python: str, program: Program) -> list[str]:
    """The command that runs ``program`` under ``python``, isolated and without site packages."""
    return [python, "-I", "-S", "-c", _source(program, is_ours=python == sys.executable)]


def has_shell_form(program: Program) -> bool:
    """Whether a host without Python can run it, and an account that serves SFTP alone do the same."""
    return program in _SHELL_PARTS


def shell_argv(program: Program, limit_s: float) -> list[str]:
    """The command that runs the shell form of ``program``, ended there after ``limit_s`` seconds."""
    package = files("draftproof.host")
    text = "".join((package / f"{part}.sh").read_text("utf-8") for part in _SHELL_PARTS[program])
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return ["timeout", str(int(limit_s) + 1), "sh", "-c", "\n".join(lines)]


def request(document: Mapping[str, Any]) -> bytes:
    """Texts and integers as one frame for the program's standard input; any file's name may travel."""
    data = "\n".join(map(_field, document, document.values())).encode("ascii")
    return b"draftproof/1 %d %s\n%s" % (len(data), hashlib.sha256(data).hexdigest().encode(), data)


def fields_of(data: bytes) -> dict[str, str | int]:
    """The fields of a frame that begins ``data``; empty where none does."""
    head, line_feed, rest = data.partition(b"\n")
    words = head.split(b" ")
    if not line_feed or words[0] != b"draftproof/1":
        return {}
    fields: dict[str, str | int] = {}
    for line in rest[: int(words[1])].decode("ascii").splitlines():
        name, kind, value = line.split(" ")
        fields[name] = (
            int(value) if kind == "i" else base64.b64decode(value).decode("utf-8", "surrogateescape")
        )
    return fields


def _field(name: str, value: str | int) -> str:
    if isinstance(value, int):
        return f"{name} i {int(value)}"
    return f"{name} s {base64.b64encode(value.encode('utf-8', 'surrogateescape')).decode('ascii')}"


def frame_of(line: bytes, nonce: str) -> Frame | None:
    """The frame in a line that ends here, or None for anything else a machine may print."""
    words = line.rstrip(b"\n").split(b" ", 2)
    if len(words) != 3 or words[0] != nonce.encode() or not nonce:  # noqa: PLR2004 - nonce, kind, JSON
        return None
    try:
        facts = json.loads(words[2])
    except (ValueError, RecursionError):
        return None
    return Frame(words[1].decode("latin-1"), facts) if isinstance(facts, dict) else None


def frames_of(stdout: bytes, nonce: str) -> dict[str, dict[str, Any]]:
    """Kind -> facts of every whole frame; a last line without its line feed was cut and does not count."""
    whole = stdout[: stdout.rfind(b"\n") + 1]
    frames = (frame_of(line, nonce) for line in whole.splitlines())
    return {frame.kind: frame.facts for frame in frames if frame}


@cache
def _source(program: Program, *, is_ours: bool) -> str:
    package = files("draftproof.host")
    texts = [
        (f"draftproof.host.{part}", (package / f"{part}.py").read_text("utf-8")) for part in _PARTS[program]
    ]
    parts: list[tuple[str, Any]] = [*texts]
    if is_ours:
        parts = [(name, compile(text, name, "exec", optimize=_NO_DOCSTRINGS)) for name, text in texts]
    data = marshal.dumps(parts) if is_ours else marshal.dumps(parts, _MARSHAL_VERSION)
    packed = base64.b64encode(zlib.compress(data, 9)).decode("ascii")
    said = {"packed": packed, "code": "s" if is_ours else "compile(s,n,'exec')"}
    return _START.format(**said, oldest=_OLDEST, system=SYSTEM_PATH)
