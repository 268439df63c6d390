"""A write without the write: every refusal that can be known before, and what would change."""

import difflib
import re
import secrets
from base64 import b64decode
from dataclasses import dataclass

from draftproof.config.raw import JsonValue
from draftproof.deploy.hosts import KEEP_BYTES
from draftproof.deploy.ledger.objects import sha256_hex
from draftproof.deploy.place import Place
from draftproof.deploy.writing.content import check_content
from draftproof.deploy.writing.receipt import ABSENT, OldDigest
from draftproof.deploy.writing.refusals import refusal
from draftproof.deploy.writing.write import WriteOrder, conflict
from draftproof.host.calling import call
from draftproof.host.program import frames_of, request
from draftproof.host.protocol import Host
from draftproof.names import Sha256
from draftproof.printable import MASKED, is_secret_key

__all__ = ["Rehearsal", "rehearse"]

_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:')


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What the write would do; nothing was done."""

    place: Place
    sha256: Sha256
    old_sha256: OldDigest
    diff: tuple[str, ...]
    """Unified, secrets masked; empty where nothing would change or the old content is no text."""

    @property
    def would(self) -> str:
        """create, replace, or nothing where the file holds these bytes already."""
        if self.old_sha256 == ABSENT:
            return "create"
        return "nothing" if self.old_sha256 == self.sha256 else "replace"

    @property
    def told(self) -> str:
        """The same in words."""
        return "in place already" if self.would == "nothing" else f"would {self.would} the file"

    def as_dict(self) -> dict[str, JsonValue]:
        """For ``--json``."""
        return {
            "schema": "draftproof.rehearsal/1",
            "target": str(self.place),
            "sha256": self.sha256,
            "old_sha256": self.old_sha256,
            "would": self.would,
            "diff": list(self.diff),
        }


def rehearse(host: Host, order: WriteOrder) -> Rehearsal:
    """Look at the target through the program that would write it, and send it no order.

    Raises:
        WriteRefused, Conflict, CouldNotLook: as the write itself would.
    """
    check_content(order.content, order.place.path)
    nonce = secrets.token_hex(16)
    ask = {
        "nonce": nonce,
        "path": order.place.path,
        "root": order.root,
        "patience_ms": int(order.patience_s * 1000),
        "keep_bytes": KEEP_BYTES,
    }
    result = call(host, "helper", stdin=request(ask), timeout_s=order.patience_s + 30)
    frames = frames_of(result.stdout, nonce)
    shown = str(order.place)
    if "preimage" not in frames:
        if "refused" in frames:
            error = refusal(frames["refused"]["code"], frames["refused"]["facts"], shown=shown, expected="")
            if error is not None:
                raise error
        raise host.failure(result)
    preimage = frames["preimage"]
    old: OldDigest = Sha256(preimage["old"]["sha256"]) if preimage["old"] else ABSENT
    if order.expected_old is not None and order.expected_old != old:
        raise conflict(shown, order.expected_old, old)
    data = b64decode(preimage["data"]) if preimage["data"] is not None else b""
    return Rehearsal(order.place, sha256_hex(order.content), old, _diff(data, order.content, shown))


def _diff(old: bytes, new: bytes, name: str) -> tuple[str, ...]:
    try:
        before, after = old.decode("utf-8").splitlines(), new.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return ()
    lines = difflib.unified_diff(before, after, f"{name} (now)", f"{name} (would be)", lineterm="")
    return tuple(_masked(line) for line in lines)


def _masked(line: str) -> str:
    """The line, cut after the first key that names a secret."""
    for match in _KEY.finditer(line):
        if is_secret_key(match.group(1)):
            return line[: match.end()] + " " + MASKED
    return line
