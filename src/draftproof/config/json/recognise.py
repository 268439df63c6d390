"""What a file is when it is no JSON at all: named before any talk of syntax errors."""

import json
import re
from dataclasses import dataclass

from draftproof.config.json.lines import line_kind
from draftproof.config.json.peers import all_refuse
from draftproof.config.json.value import Defect, Position, one_line

__all__ = ["foreign_bytes", "foreign_text"]

_LFS = re.compile(rb"version https://(?:git-lfs\.github\.com/spec|hawser\.github\.com/spec)/")
_LFS_OID = re.compile(rb"^oid (\S+)", re.MULTILINE)
_LFS_SIZE = re.compile(rb"^size (\d+)", re.MULTILINE)
_XET = re.compile(rb"# xet version ")
_HTML = re.compile(
    r"\s*(?:<!--.{0,2000}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_TITLE = re.compile(r"<title[^>]{0,200}>(.{0,300}?)</title>", re.IGNORECASE | re.DOTALL)
_XML = re.compile(r"\s*<(?:\?xml|!DOCTYPE|[A-Za-z][\w:.-]*[\s>/])")
_XML_CODE = re.compile(r"<Code>([^<]{0,200})</Code>")
_CONFLICT = re.compile(r"^(?:<{7} |>{7} ).*$", re.MULTILINE)
_NUMBERED = re.compile(r" *[0-9]+(?:\t|: ?| ?[|\u2502\u2192] ?)")
_INI_LINE = re.compile(r"[a-z_][\w.-]* *= *[^=].*")
_MESSAGE = re.compile(r"(?:error|warning|fatal|exception|traceback|usage|note|info)\b", re.IGNORECASE)
_VALUE_STARTS = tuple("{[\"'/")
_YAML_KEY = re.compile(r"(?:- )?[A-Za-z_][\w.-]*:(?: .*)?$")
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
        said = f"an HTML page titled {one_line(title.group(1))!r}" if title else "an HTML page"
        named = _Named("json-html-page", "one JSON object", said)
    elif _XML.match(text):
        code = _XML_CODE.search(text)
        said = f"an XML error document: {one_line(code.group(1))}" if code else "an XML document"
        named = _Named("json-xml-document", "one JSON object", said)
    elif conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        named = _Named("json-merge-conflict", "a resolved merge", one_line(conflict.group()), line)
    elif _is_numbered(text):
        shown = one_line(text.lstrip("\n").split("\n", 1)[0])
        named = _Named("json-line-numbers", "JSON without line numbers before each line", shown)
    elif _is_yaml(text):
        named = _Named("json-yaml", "JSON", f"YAML: {one_line(_lines(text)[0])}")
    elif (name := _plain_text(text)) is not None:
        named = _Named(name, "one JSON object", one_line(text))
    return named.defect() if named else None


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _is_numbered(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    numbers = [m for line in lines if (m := _NUMBERED.match(line))]
    return len(lines) > 1 and len(numbers) == len(lines)


def _plain_text(text: str) -> str | None:
    """The defect of words without any JSON among them; None where there may be a value."""
    first = text.lstrip().split("\n", 1)[0].strip()
    kind = line_kind(first)
    if kind == "json-toml" and _is_json(text):
        return None  # ["a"] names a TOML table, too; alone in its file it is a JSON array
    if kind == "json-toml" or _INI_LINE.fullmatch(first):
        return "json-toml"
    if "{" in text or "[" in text or first[:1] in _VALUE_STARTS or not first[:1].isprintable():
        return None
    if kind == "json-trailing-text":
        return "json-plain-text" if len(first.split()) > 1 else None
    return kind


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_yaml(text: str) -> bool:
    lines = _lines(text)
    if not lines or text.lstrip()[:1] in _VALUE_STARTS:
        return False
    if lines[0].strip() == "---":
        return True
    if line_kind(lines[0]) != "json-trailing-text" or _MESSAGE.match(lines[0]):
        return False
    return bool(_YAML_KEY.match(lines[0])) and not lines[0].rstrip().endswith(("{", "[", ","))
