"""The error of a session that is used out of order, or whose parts no longer agree."""

from draftproof.errors import DraftproofError

__all__ = ["SessionFault"]


class SessionFault(DraftproofError):
    """A forward, commit or rollback out of turn, or parts of different length: a fault of the program."""

    id = "session-fault"
    exit_code = 10

    @classmethod
    def of(cls, subject: str, *, expected: str, found: str) -> "SessionFault":
        """The fault, with the words that are the same for all of them."""
        return cls(
            subject,
            expected=expected,
            found=found,
            where="the memory of one sequence",
            means="what it remembers can no longer be trusted to be the committed tokens",
            next_step="report the sequence of calls; restore a snapshot or start the sequence anew",
        )
