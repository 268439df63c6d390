"""One piece of text of the corpus."""

from dataclasses import dataclass

__all__ = ["Document"]


@dataclass(frozen=True, slots=True)
class Document:
    """A request and its answer, or a stretch of real text that is to be continued."""

    kind: str
    prompt: str
    response: str
    is_chat: bool
    """Whether prompt and response are messages; else the response continues the prompt as it stands."""
