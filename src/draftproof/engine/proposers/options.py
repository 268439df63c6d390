"""What a request for drafts says beside the method's name."""

from dataclasses import dataclass
from pathlib import Path

from draftproof.errors import UsageError
from draftproof.speculation.rules import Rule

__all__ = ["DraftOptions"]

_MOST = 4096
"""Nodes of a draft: the largest budget published is 1024."""


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """The options of drafting, as given; a method refuses those it has no use for."""

    target: Path
    """The target's directory or GGUF file."""

    drafter: Path | None = None
    """The drafter's directory."""

    num_draft_tokens: int | None = None
    """Depth of a draft at most; None for the method's own."""

    budget: int | None = None
    """Nodes of a tree at most, the root not counted; None for the method's own."""

    spine: bool = False
    """Whether a tree begins with the most probable chain, whatever its chance."""

    rule: Rule | None = None
    """How drafts are judged; None for the method's own."""

    @property
    def is_sized(self) -> bool:
        """Whether the size of a draft was given and no controller chooses it."""
        return self.num_draft_tokens is not None or self.budget is not None

    def __post_init__(self) -> None:
        """Refuse numbers that describe no draft.

        Raises:
            UsageError: fewer than one token or node, or more than any verification can hold.
        """
        for name, value in (("--num-draft-tokens", self.num_draft_tokens), ("--budget", self.budget)):
            if value is not None and not 1 <= value <= _MOST:
                raise UsageError(
                    name,
                    expected="1 or more" if value < 1 else f"{_MOST} at most",
                    found=str(value),
                    where="drafting options",
                    means="there is nothing to draft; plain decoding is --method ar"
                    if value < 1
                    else "a verification grows with the square of its nodes",
                    next_step="draftproof generate --help",
                )

    @property
    def given(self) -> frozenset[str]:
        """The options that were given, by their names on the command line."""
        said = {
            "--drafter": self.drafter,
            "--num-draft-tokens": self.num_draft_tokens,
            "--budget": self.budget,
            "--spine": self.spine or None,
            "--verify": self.rule,
        }
        return frozenset(name for name, value in said.items() if value is not None)
