"""When a request ends, and what of its last step it keeps: by a stop token, a stop string or a length."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from draftproof.errors import UsageError

__all__ = ["Detokeniser", "Finish", "Stopping", "TextStream"]

Decode = Callable[[list[int]], str]
"""Token ids to text."""

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"


class Finish(StrEnum):
    """Why a request ended."""

    STOP = "stop"
    """A stop token, or a stop string."""

    LENGTH = "length"
    """As many tokens as asked for."""

    CONTEXT = "context"
    """The model's context is full."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """What ends one request."""

    max_new_tokens: int
    """Tokens emitted at most, the stop token included."""

    token_ids: frozenset[int] = frozenset()
    """Each ends the request and is its last token."""

    strings: tuple[str, ...] = ()
    """Each ends the request where it begins; the token that completes it is the last one kept."""

    ignore_eos: bool = False
    """Whether the model's own end tokens end nothing."""

    def __post_init__(self) -> None:
        """Refuse what could never end or always would.

        Raises:
            UsageError: no token asked for, or an empty stop string.
        """
        if self.max_new_tokens < 1:
            raise _usage("--max-new-tokens", "1 or more", self.max_new_tokens)
        if "" in self.strings:
            raise _usage("--stop", "text", "")


class Detokeniser:
    """Text of a growing list of tokens, as far as it is certain.

    Bytes of one character may be spread over several tokens; they are held until it is whole.
    """

    def __init__(self, decode: Decode) -> None:
        """Start with no token."""
        self._decode = decode
        self._tokens: list[int] = []
        self._from = 0  # tokens before this one are left out: their text no longer matters to what follows
        self._shown = 0  # tokens whose text has been given

    def add(self, token: int) -> str:
        """The text that became certain with this token; empty while a character is incomplete."""
        self._tokens.append(token)
        whole = self._decode(self._tokens[self._from :])
        if whole.endswith(_INCOMPLETE):
            return ""
        return self._advance(whole)

    def rest(self) -> str:
        """The text still held, incomplete as it is."""
        return self._advance(self._decode(self._tokens[self._from :]))

    def _advance(self, whole: str) -> str:
        known = self._decode(self._tokens[self._from : self._shown])
        self._from, self._shown = self._shown, len(self._tokens)
        return whole[len(known) :]


class TextStream:
    """The text to show so far, with any stop string found the moment it is complete."""

    def __init__(self, decode: Decode, stops: Sequence[str]) -> None:
        """Start with no token."""
        self._detokeniser = Detokeniser(decode)
        self._stops = tuple(stops)
        self._held = ""
        self.stopped = False

    def add(self, token: int) -> str:
        """The text this token makes certain; what may yet turn out to be a stop string is held back."""
        self._held += self._detokeniser.add(token)
        return self._release()

    def finish(self) -> str:
        """The text held back, once no token follows."""
        if self.stopped:
            return ""
        self._held += self._detokeniser.rest()
        shown = self._release()
        held, self._held = self._held, ""  # nothing, if a stop string was complete
        return shown + held

    def _release(self) -> str:
        found = [at for at in (self._held.find(stop) for stop in self._stops) if at >= 0]
        if found:
            self.stopped = True
            shown, self._held = self._held[: min(found)], ""
            return shown
        kept = max((_overlap(self._held, stop) for stop in self._stops), default=0)
        shown, self._held = self._held[: len(self._held) - kept], self._held[len(self._held) - kept :]
        return shown


def _overlap(text: str, stop: str) -> int:
    """The longest end of ``text`` that is a beginning of ``stop``, shorter than it."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if stop.startswith(text[len(text) - length :]):
            return length
    return 0


def _usage(subject: str, expected: str, found: object) -> UsageError:
    return UsageError(
        subject,
        expected=expected,
        found=repr(found),
        where="command line",
        means="the request has no meaningful end",
        next_step="draftproof generate --help",
    )
