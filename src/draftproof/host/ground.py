"""What the two programs that run on a host stand on: framed talk, facts about the machine, digests.

Standard library only, for any Python from 3.8 on; it travels inside the command line (host.program). One
frame in is ``draftproof/1 <length> <sha256>``, a line feed, and that many bytes of fields, one a line:
``name i 12`` or ``name s <base64>``. One frame out is a line ``<nonce> <kind> <JSON>``. Whatever else a login
shell or a message of the day prints is not a frame. The json and base64 modules stay out: they would double
the start-up time.
"""

# Descriptors and names relative to them; pathlib follows links and costs start-up time.
# ruff: noqa: PTH115, PTH123
from __future__ import annotations

import binascii
import hashlib
import os
import select
import sys
import time

TYPE_CHECKING = False  # typing itself is not imported: it would double the start-up time
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Failed", "Refused", "Wire", "file_system", "identity", "machine", "sha256_of", "xattrs_of"]

MAX_DOCUMENT = 1 << 20
MAX_HEAD = 200  # bytes of "draftproof/1 <length> <sha256>"; the longest is 90
HEAD_WORDS = 3
CHUNK = 1 << 20
LAST_OF_ONE_UNIT = 0xFFFF  # UTF-16; JSON writes what lies beyond as a pair


class Refused(Exception):
    """The request must not be carried out; nothing was changed."""

    def __init__(self, code: str, **facts: Any) -> None:
        """Name the refusal and what was seen."""
        super().__init__(code)
        self.code = code
        self.facts = facts


class Failed(Exception):
    """The machine could not do a step."""

    def __init__(self, step: str, error: OSError) -> None:
        """Keep the step's name and the operating system's answer."""
        super().__init__(step)
        self.step = step
        self.error = f"{error.__class__.__name__}: {error.strerror}"
        self.errno = error.errno


class Wire:
    """Standard input and output, framed. Input is waited for only until ``until`` (monotonic seconds)."""

    def __init__(self, patience_s: float) -> None:
        """Start with ``patience_s`` seconds for the first frame."""
        self.until = time.monotonic() + patience_s
        self.nonce = ""
        self.is_heard = True
        self._held = b""

    def document(self) -> dict[str, Any]:
        """The next frame's fields, whole and undamaged. Raises Refused for anything less."""
        while b"\n" not in self._held:
            if len(self._held) > MAX_HEAD or not self._more():
                raise Refused("request-cut", found=len(self._held))
        head, self._held = self._held.split(b"\n", 1)
        words = head.split(b" ")
        if len(words) != HEAD_WORDS or words[0] != b"draftproof/1" or not words[1].isdigit():
            raise Refused("request-damaged", found=head[:80].decode("latin-1"))
        length = int(words[1])
        if length > MAX_DOCUMENT:
            raise Refused("request-damaged", found=length)
        data = self.exactly(length)
        if hashlib.sha256(data).hexdigest().encode() != words[2]:
            raise Refused("request-damaged", found=length)
        return dict(map(field, data.decode("ascii").splitlines()))

    def exactly(self, length: int) -> bytes:
        """The next ``length`` bytes. Raises Refused where the input ends, or time does, before them."""
        parts = [self._held[:length]]
        self._held = self._held[length:]
        missing = length - len(parts[0])
        while missing:
            if not self._more():
                raise Refused("request-cut", expected=length, found=length - missing)
            parts.append(self._held[:missing])
            self._held = self._held[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    def end(self) -> None:
        """Nothing more may come: the sender closes its side after the last byte. Raises Refused otherwise."""
        if self._held or self._more():
            raise Refused("request-long", found=len(self._held))

    def say(self, kind: str, **facts: Any) -> None:
        """Write one frame. A closed pipe is remembered, not raised: the work must still come to its end."""
        frame = f"{self.nonce} {kind} {json_text(facts)}\n"
        data = frame.encode("ascii")
        try:
            while data:
                data = data[os.write(1, data) :]
        except BrokenPipeError:
            self.is_heard = False

    def _more(self) -> bool:
        """Take in what has come; False at the end of the input. Raises Refused when time is up."""
        ready, _, _ = select.select([0], [], [], max(0.0, self.until - time.monotonic()))
        if not ready:
            raise Refused("request-late", found=len(self._held))
        data = os.read(0, CHUNK)
        self._held += data
        return bool(data)


def field(line: str) -> tuple[str, Any]:
    """Name and value of one line of a frame."""
    name, kind, value = line.split(" ")
    if kind == "i":
        return name, int(value)
    return name, binascii.a2b_base64(value).decode("utf-8", "surrogateescape")


def json_text(value: Any) -> str:
    """A value as JSON in ASCII; any text, half surrogates of file names included."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
            return f'"{value}"'
        return '"' + "".join(map(json_character, value)) + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json_text(name)}: {json_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return str(value)


def json_character(character: str) -> str:
    """One character inside a JSON string."""
    code = ord(character)
    if character.isascii() and character.isprintable() and character not in '"\\':
        return character
    if code > LAST_OF_ONE_UNIT:
        return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"


def sha256_of(descriptor: int, keep_bytes: int) -> tuple[str, int, bytes]:
    """Digest, length and bytes of an open file, read from its beginning; no bytes where they are too many."""
    parts: list[bytes] = []
    digest, at = hashlib.sha256(), 0
    while True:
        part = os.pread(descriptor, CHUNK, at)
        if not part:
            return digest.hexdigest(), at, b"".join(parts)
        digest.update(part)
        at += len(part)
        parts.append(part)
        if at > keep_bytes:
            parts.clear()


def identity(status: os.stat_result) -> dict[str, int]:
    """What tells one file from another: an inode number alone is reused, ctime cannot be set by hand."""
    return {
        "dev": status.st_dev,
        "ino": status.st_ino,
        "ctime_ns": status.st_ctime_ns,
        "mtime_ns": status.st_mtime_ns,
        "size": status.st_size,
        "mode": status.st_mode & 0o7777,
        "uid": status.st_uid,
        "gid": status.st_gid,
        "nlink": status.st_nlink,
    }


def xattrs_of(descriptor: int) -> dict[str, str]:
    """Extended attributes (access lists among them), values as hex; empty where the file system has none."""
    try:
        names = os.listxattr(descriptor)
    except OSError:
        return {}
    return {name: os.getxattr(descriptor, name).hex() for name in names}


def machine() -> dict[str, Any]:
    """Which machine, which boot, which mount namespace, whose process. The machine id only as a digest."""
    return {
        "boot_id": _word("/proc/sys/kernel/random/boot_id"),
        "machine": hashlib.sha256(_word("/etc/machine-id").encode()).hexdigest()[:16],
        "hostname": os.uname().nodename,
        "uid": os.geteuid(),
        "mount_namespace": os.readlink("/proc/self/ns/mnt"),
        "monotonic_ms": time.monotonic_ns() // 1_000_000,
        "python": ".".join(map(str, sys.version_info[:3])),
        "preload": os.environ.get("LD_PRELOAD", ""),
    }


def file_system(descriptor: int) -> dict[str, str]:
    """The mount that holds an open file, by mount id: type, mount point, options."""
    mount_id = "?"
    for line in _text(f"/proc/self/fdinfo/{descriptor}").splitlines():
        if line.startswith("mnt_id:"):
            mount_id = line.split()[1]
    for line in _text("/proc/self/mountinfo").splitlines():
        words = line.split(" ")
        if words[0] == mount_id:
            dash = words.index("-")
            return {
                "type": words[dash + 1],
                "mount_point": words[4],
                "root": words[3],
                "device": words[2],
                "options": words[5],
                "super_options": words[dash + 3],
            }
    return {
        "type": "unknown",
        "mount_point": "",
        "root": "",
        "device": "",
        "options": "",
        "super_options": "",
    }


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except OSError as error:
        return f"unknown: {error.strerror}"


def _word(path: str) -> str:
    return _text(path).strip()
