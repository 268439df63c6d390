"""What a file is when it is no JSON at all: named before any talk of syntax errors."""

import re
from dataclasses import dataclass

from draftproof.config.json_peers import all_refuse
from draftproof.config.json_value import Defect, Position

__all__ = ["HTTP_ERROR", "foreign_bytes", "foreign_text"]

_LFS = re.compile(rb"version https://(?:git-lfs\.github\.com/spec|hawser\.github\.com/spec)/")
_LFS_OID = re.compile(rb"^oid (\S+)", re.MULTILINE)
_LFS_SIZE = re.compile(rb"^size (\d+)", re.MULTILINE)
_XET = re.compile(rb"# xet version ")
_HTML = re.compile(r"\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_XML = re.compile(r"\s*<(?:\?xml|!DOCTYPE|[A-Za-z][\w:.-]*[\s>/])")
_XML_CODE = re.compile(r"<Code>(.*?)</Code>")
_CONFLICT = re.compile(r"^(?:<{7} |>{7} ).*$", re.MULTILINE)
_NUMBERED = re.compile(r" *[0-9]+(?:\t|: ?| ?[|\u2502\u2192] ?)")
_YAML_KEY = re.compile(r"(?:- )?[A-Za-z_][\w.-]*:(?: .*)?$")
_PHRASES = (
    "range not satisfiable|not found|entry not found|repository not found|revision not found|access denied"
    "|forbidden|unauthorized|bad gateway|bad request|gateway time-?out|service unavailable"
    "|internal server error|too many requests|invalid username or password\\.?|moved permanently"
    "|invalid credentials in authorization header|temporary redirect|request timeout|gone|error"
)
HTTP_ERROR = re.compile(
    rf"\s*(?:HTTP/[0-9.]+\s+[1-5][0-9]{{2}}[^\r\n]*"
    rf"|(?:(?:error|http error)?[: ]*[45][0-9]{{2}})[ :-]*(?:{_PHRASES})"
    rf"|(?:requested )?(?:{_PHRASES}))[.!]?\s*(?=$|[\r\n])",
    re.IGNORECASE,
)
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip data"),
    (b"PK\x03\x04", "a zip archive (PyTorch checkpoints are zip archives too)"),
    (b"\x28\xb5\x2f\xfd", "zstandard data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"GGUF", "a GGUF model"),
    (b"\x7fELF", "an ELF program or library"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"SQLite format 3\x00", "an SQLite database"),
)
_SAFETENSORS_HEADER_MAX = 100_000_000  # safetensors 0.8 tensor.rs MAX_HEADER_SIZE
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class _Named:
    id: str
    expected: str
    found: str
    line: int = 1

    def defect(self) -> Defect:
        """As a defect of the whole file, where the reason begins."""
        return Defect(self.id, "", Position(self.line, 1), self.expected, self.found, all_refuse())


def foreign_bytes(data: bytes) -> Defect | None:
    """The defect of bytes that are something else by their first bytes or their emptiness; else None."""
    named: _Named | None = None
    if not data:
        named = _Named("json-empty-file", "one JSON object", "0 bytes")
    elif not data.strip(b" \t\r\n\x0b\x0c\xef\xbb\xbf"):
        named = _Named("json-empty-file", "one JSON object", f"{len(data)} bytes of blanks")
    elif not data.strip(b"\x00"):
        named = _Named("json-zero-bytes", "one JSON object", f"{len(data)} bytes, all zero")
    elif _LFS.match(data) or _XET.match(data):
        oid, size = _LFS_OID.search(data), _LFS_SIZE.search(data)
        real = f"{int(size.group(1)[:20])} bytes" if size else "size not stated"
        name = oid.group(1)[:80].decode("ascii", "replace") if oid else "oid not stated"
        named = _Named("json-lfs-pointer", "the file's content", f"a pointer to {name}, {real}")
    elif (kind := _magic(data)) is not None:
        named = _Named("json-binary-file", "JSON text", kind)
    return named.defect() if named else None


def _magic(data: bytes) -> str | None:
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    # A safetensors file: 8 bytes of header length, then the header's opening brace.
    header_bytes = int.from_bytes(data[:8], "little")
    if data[8:10] == b'{"' and header_bytes <= _SAFETENSORS_HEADER_MAX and b"\x00" in data[:8]:
        return "a safetensors file"
    return None


def foreign_text(text: str) -> Defect | None:
    """The defect of text that is a page, a message or another format altogether; else None."""
    named: _Named | None = None
    if _HTML.match(text):
        title = _TITLE.search(text)
        said = f"an HTML page titled {_short(title.group(1))!r}" if title else "an HTML page"
        named = _Named("json-html-page", "one JSON object", said)
    elif _XML.match(text):
        code = _XML_CODE.search(text)
        said = f"an XML error document: {_short(code.group(1))}" if code else "an XML document"
        named = _Named("json-xml-document", "one JSON object", said)
    elif conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        named = _Named("json-merge-conflict", "a resolved merge", _short(conflict.group()), line)
    elif (message := HTTP_ERROR.match(text)) and "{" not in text:
        named = _Named("json-http-error", "one JSON object", _short(message.group()))
    elif _is_numbered(text):
        shown = _short(text.lstrip("\n").split("\n", 1)[0])
        named = _Named("json-line-numbers", "JSON without line numbers before each line", shown)
    elif _is_yaml(text):
        named = _Named("json-yaml", "JSON", f"YAML: {_short(_lines(text)[0])}")
    return named.defect() if named else None


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _is_numbered(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    numbers = [m for line in lines if (m := _NUMBERED.match(line))]
    return len(lines) > 1 and len(numbers) == len(lines)


def _is_yaml(text: str) -> bool:
    lines = _lines(text)
    if not lines or text.lstrip()[:1] in "{[\"'":
        return False
    if lines[0].strip() == "---":
        return True
    return bool(_YAML_KEY.match(lines[0])) and not lines[0].rstrip().endswith(("{", "[", ","))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 3] + "..."
