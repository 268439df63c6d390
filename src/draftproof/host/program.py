"""The programs for a host as a command line, and their frames as values: the other end of host.ground."""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

__all__ = ["Frame", "frame_of", "frames_of", "path_field", "program_argv", "request"]

Program = Literal["helper", "reader"]
_PARTS: dict[Program, tuple[str, ...]] = {
    "helper": ("ground", "looking", "beside", "helper"),
    "reader": ("ground", "seeing", "consumer", "reader"),
}
# Each part becomes a module under its own name, so that the same imports work on a bare interpreter.
_START = (
    "import sys,types,json,zlib,base64\n"
    "for n,s in json.loads(zlib.decompress(base64.b64decode('{packed}'))):\n"
    " m=types.ModuleType(n);sys.modules[n]=m;exec(compile(s,n,'exec'),m.__dict__)\n"
    "sys.exit(m.main())"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One thing the program said."""

    kind: str
    """preimage, staged, receipt, refused, failed; seen."""

    facts: dict[str, Any]


def program_argv(python: str, program: Program) -> list[str]:
    """The command that runs ``program`` under ``python``, isolated and without site packages."""
    return [python, "-I", "-S", "-c", _source(program)]


def request(document: Mapping[str, Any]) -> bytes:
    """A document as one frame for the program's standard input."""
    data = json.dumps(document, ensure_ascii=True).encode("ascii")
    return b"draftproof/1 %d %s\n%s" % (len(data), hashlib.sha256(data).hexdigest().encode(), data)


def path_field(path: str) -> str:
    """A path as it travels: any bytes a file system allows, none that a shell could see."""
    return base64.b64encode(path.encode("utf-8", "surrogateescape")).decode("ascii")


def frame_of(line: bytes, nonce: str) -> Frame | None:
    """The frame in a line that ends here, or None for anything else a machine may print."""
    words = line.rstrip(b"\n").split(b" ", 2)
    if len(words) != 3 or words[0] != nonce.encode() or not nonce:  # noqa: PLR2004 - nonce, kind, JSON
        return None
    try:
        facts = json.loads(words[2])
    except ValueError:
        return None
    return Frame(words[1].decode("latin-1"), facts) if isinstance(facts, dict) else None


def frames_of(stdout: bytes, nonce: str) -> dict[str, dict[str, Any]]:
    """Kind -> facts of every whole frame; a last line without its line feed was cut and does not count."""
    whole = stdout[: stdout.rfind(b"\n") + 1]
    frames = (frame_of(line, nonce) for line in whole.splitlines())
    return {frame.kind: frame.facts for frame in frames if frame}


@cache
def _source(program: Program) -> str:
    package = files("draftproof.host")
    parts = [
        (f"draftproof.host.{part}", (package / f"{part}.py").read_text("utf-8")) for part in _PARTS[program]
    ]
    packed = base64.b64encode(zlib.compress(json.dumps(parts).encode("ascii"), 9)).decode("ascii")
    return _START.replace("{packed}", packed)
