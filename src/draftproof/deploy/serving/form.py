"""Form: one way to write a rendering down, as named texts."""

from collections.abc import Callable
from dataclasses import dataclass

from draftproof.deploy.serving.rendering import Rendering
from draftproof.errors import UsageError

__all__ = ["Form", "Text", "no_form"]


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


def no_form(form: str, why: str) -> UsageError:
    """The plan does not fit into a form."""
    return UsageError(
        "--format",
        expected="a form that can hold this plan",
        found=f"{form}: {why}",
        where="command line",
        means="nothing was rendered",
        next_step="draftproof render --help",
    )
