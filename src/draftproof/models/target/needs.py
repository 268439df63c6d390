"""What a forward pass needs to know of a config: every value, or one error that names all that is missing."""

from typing import TypeVar

from draftproof.config.source import Source, Sourced, Unknown
from draftproof.errors import RefusedInput

__all__ = ["Needs"]

T = TypeVar("T")


class Needs:
    """Collects values; what is not known is kept by name, to be reported all at once."""

    def __init__(self, subject: str, origin: str) -> None:
        """``subject`` and ``origin`` name what is read, and the file, in the error."""
        self.subject, self.origin = subject, origin
        self.missing: list[str] = []
        self.sources: list[tuple[str, Source]] = []

    def value(self, name: str, said: Sourced[T], stand_in: T) -> T:
        """The value, or ``stand_in`` and a complaint that will be raised before anything is built."""
        self.sources.append((name, said.source))
        if said.value is None:
            reason = said.source.reason if isinstance(said.source, Unknown) else "null"
            self.missing.append(f"{name} ({reason})")
            return stand_in
        return said.value

    def positive(self, name: str, said: Sourced[int]) -> int:
        """An integer of 1 or more."""
        value = self.value(name, said, 1)
        if value < 1:
            self.missing.append(f"{name} ({value}, not 1 or more)")
            return 1
        return value

    def complain(self, what: str) -> None:
        """Add a complaint in words."""
        self.missing.append(what)

    def done(self) -> None:
        """Go on if nothing is missing.

        Raises:
            RefusedInput: naming everything that is.
        """
        if self.missing:
            raise RefusedInput(
                self.subject,
                expected="every field the forward pass needs, and none it does not know",
                found="; ".join(self.missing),
                where=self.origin,
                means="the model cannot be run as it was trained",
                next_step=f"draftproof check {self.origin}",
            )
