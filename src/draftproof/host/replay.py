"""A recorded conversation as a Host: for bug reports, and for machines that a test cannot have.

A transcript is JSON. Program texts are left out of it, and the nonce of each request is put into the recorded
replies, so that a transcript outlives releases; everything else must be said again as it was recorded.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from draftproof.errors import CouldNotLook
from draftproof.host.program import fields_of
from draftproof.host.protocol import Answer, CommandResult, Host

__all__ = ["RecordingHost", "ReplayHost", "ReplayMismatch"]

_SCHEMA = "draftproof.transcript/1"


class ReplayMismatch(CouldNotLook):
    """Something else was asked than what was recorded."""

    id = "replay-mismatch"


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One run: what was asked, in digests, and what came back."""

    argv: list[str]
    request_sha256: str
    """Of the input without its nonce and its frame."""

    nonce: str
    answer_sha256: str
    """Of what ``answer`` gave; ``""`` where it was not asked or gave nothing."""

    exit_code: int
    stdout: str
    stderr: str
    is_timed_out: bool
    host_key: str = ""


@dataclass(slots=True)
class RecordingHost:
    """Another host, everything said to it and by it written down."""

    inner: Host
    exchanges: list[_Exchange] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The recorded host's."""
        return self.inner.name

    @property
    def python(self) -> str:
        """The recorded host's."""
        return self.inner.python

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """Run on the inner host and keep the exchange. Raises as it does."""
        given = b""

        def listening(line: bytes) -> bytes | None:
            nonlocal given
            rest = answer(line) if answer else None
            given = rest or given
            return rest

        result = self.inner.run(argv, stdin=stdin, answer=listening if answer else None, timeout_s=timeout_s)
        digest, nonce = _request_of(stdin)
        self.exchanges.append(
            _Exchange(
                argv=_without_program(argv),
                request_sha256=digest,
                nonce=nonce,
                answer_sha256=_sha256(given) if given else "",
                exit_code=result.exit_code,
                stdout=base64.b64encode(result.stdout).decode("ascii"),
                stderr=base64.b64encode(result.stderr).decode("ascii"),
                is_timed_out=result.is_timed_out,
                host_key=result.host_key,
            )
        )
        return result

    def failure(self, result: CommandResult) -> CouldNotLook:
        """The inner host's explanation."""
        return self.inner.failure(result)

    def transcript(self) -> str:
        """What was recorded, as JSON."""
        fields = _Exchange.__dataclass_fields__
        exchanges = [{name: getattr(each, name) for name in fields} for each in self.exchanges]
        document = {"schema": _SCHEMA, "host": self.name, "python": self.python, "exchanges": exchanges}
        return json.dumps(document, indent=1)


@dataclass(slots=True)
class ReplayHost:
    """The recorded host again: each run must be the next one of the transcript."""

    name: str
    python: str
    exchanges: list[_Exchange]
    _next: int = 0

    @classmethod
    def of(cls, transcript: str) -> "ReplayHost":
        """The host of a transcript. Raises ReplayMismatch where it is none."""
        document: dict[str, Any] = json.loads(transcript)
        if "schema" not in document or document["schema"] != _SCHEMA:
            raise _mismatch("transcript", _SCHEMA, "another document")
        exchanges = [_Exchange(**each) for each in document["exchanges"]]
        return cls(document["host"], document["python"], exchanges)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        answer: Answer | None = None,
        timeout_s: float,  # noqa: ARG002 - the protocol's; a recording takes no time
    ) -> CommandResult:
        """The recorded result of the next run.

        Raises:
            ReplayMismatch: the command, the request or the answer differs from the recorded one.
        """
        if self._next >= len(self.exchanges):
            raise _mismatch("run", f"{len(self.exchanges)} runs", "one more")
        exchange = self.exchanges[self._next]
        self._next += 1
        digest, nonce = _request_of(stdin)
        asked = (_without_program(argv), digest)
        if asked != (exchange.argv, exchange.request_sha256):
            raise _mismatch("request", str(exchange.argv), str(asked[0]))
        stdout = base64.b64decode(exchange.stdout)
        if nonce:
            stdout = stdout.replace(exchange.nonce.encode(), nonce.encode())
        self._answered(exchange, stdout, answer)
        stderr = base64.b64decode(exchange.stderr)
        end = (exchange.exit_code, stdout, stderr, exchange.is_timed_out, exchange.host_key)
        return CommandResult(tuple(argv), *end)

    def _answered(self, exchange: _Exchange, stdout: bytes, answer: Answer | None) -> None:
        given = b""
        for line in stdout.split(b"\n"):
            rest = answer(line) if answer else None
            if rest is not None:
                given = rest
                break
        if (_sha256(given) if given else "") != exchange.answer_sha256:
            raise _mismatch("answer", exchange.answer_sha256 or "none", _sha256(given) if given else "none")

    def failure(self, result: CommandResult) -> CouldNotLook:
        """No reply was recorded, or it was cut."""
        return _mismatch(result.argv[0], "a framed reply", f"exit {result.exit_code} without one")


def _request_of(stdin: bytes) -> tuple[str, str]:
    """Digest of a request without its nonce, and the nonce; for any other input its digest and ``""``."""
    fields = fields_of(stdin)
    if "nonce" not in fields:
        return _sha256(stdin), ""
    nonce = str(fields.pop("nonce"))
    return _sha256(json.dumps(fields, sort_keys=True).encode()), nonce


def _without_program(argv: Sequence[str]) -> list[str]:
    return ["(program)" if index and argv[index - 1] == "-c" else word for index, word in enumerate(argv)]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _mismatch(subject: str, expected: str, found: str) -> ReplayMismatch:
    return ReplayMismatch(
        subject,
        expected=expected,
        found=found,
        where="recorded transcript",
        means="the recording answers only what was asked when it was made",
        next_step="record it again",
    )
