"""Form: one way to write a rendering down, as named texts."""

from collections.abc import Callable
from dataclasses import dataclass

from draftproof.deploy.serving.rendering import Rendering

__all__ = ["Form", "Text"]


@dataclass(frozen=True, slots=True)
class Text:
    """One file, as it is to be written."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Form:
    """A format of ``render --format``."""

    name: str
    title: str
    write: Callable[[Rendering], list[Text]]
    """Raises UsageError where the plan does not fit into it."""
