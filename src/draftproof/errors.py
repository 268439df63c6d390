"""Every error a user can meet, in one tree.

::

    DraftproofError                 id                exit
    |-- UsageError                  usage             2     the call itself is wrong
    |-- CouldNotLook                could-not-look    3     the subject or a named input cannot be read
    `-- RefusedInput                refused           1     it was read, and it is not what it must be
        (config.raw adds RefusedConfig: bytes that are not one strict JSON value)

A message always says what was expected, what was found, where, what that means and what to do next.
"""

from typing import ClassVar

__all__ = ["EXIT_CODES", "CouldNotLook", "DraftproofError", "RefusedInput", "UsageError"]

EXIT_CODES: dict[int, str] = {
    0: "holds: everything asked was looked at and agrees (notes alone stay 0)",
    1: "findings or drift: at least one error or warning, or two things differ",
    2: "usage: the call itself is wrong",
    3: "could not look: the subject, or an input named by an option, cannot be read",
    4: "conflict: the file to be replaced is not what was expected; nothing was changed",
    5: "outcome unknown: a write may or may not have happened; the text says how that is resolved",
    10: "a fault in draftproof itself; please report it with the text shown",
}


class DraftproofError(Exception):
    """Base of all errors meant for the user; never raised itself."""

    id: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 10

    def __init__(
        self, subject: str, *, expected: str, found: str, where: str, means: str, next_step: str
    ) -> None:
        """Keep the five parts apart, so that text and JSON say the same."""
        self.subject = subject
        self.expected = expected
        self.found = found
        self.where = where
        self.means = means
        self.next_step = next_step
        super().__init__(f"{self.id} {subject}: expected {expected}, found {found}")

    def as_dict(self) -> dict[str, object]:
        """The error for ``--json``, in the same words as the text."""
        return {
            "id": self.id,
            "exit": self.exit_code,
            "subject": self.subject,
            "expected": self.expected,
            "found": self.found,
            "where": self.where,
            "means": self.means,
            "next": self.next_step,
        }


class UsageError(DraftproofError):
    """The call itself is wrong: an option's value, a combination of options."""

    id = "usage"
    exit_code = 2


class CouldNotLook(DraftproofError):
    """The subject, or an input named by an option, could not be read at all."""

    id = "could-not-look"
    exit_code = 3


class RefusedInput(DraftproofError):
    """The input was read and is not what it must be."""

    id = "refused"
    exit_code = 1
