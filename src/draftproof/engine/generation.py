"""What a request gave back, and how its steps went."""

from dataclasses import dataclass, field

from draftproof.engine.text.stopping import Finish
from draftproof.speculation.stats import Step, Summary, summary

__all__ = ["Generation", "Piece", "Seconds"]


@dataclass(slots=True)
class Seconds:
    """Wall time of one request by what it was spent on."""

    prefill: float = 0.0
    """Reading the prompt, all but its last token."""

    draft: float = 0.0
    verify: float = 0.0
    """The target's forward passes."""

    accept: float = 0.0
    commit: float = 0.0
    other: float = 0.0
    """Stopping, text, bookkeeping."""

    @property
    def decode(self) -> float:
        """Everything after the prefill."""
        return self.draft + self.verify + self.accept + self.commit + self.other


@dataclass(frozen=True, slots=True)
class Piece:
    """What one step added."""

    tokens: tuple[int, ...]
    text: str | None
    """The text that became certain; None where the request has no tokenizer."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A finished request."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    """The new tokens alone, a stop token included."""

    text: str | None
    """The text of the new tokens, cut before a stop string; None without a tokenizer."""

    finish: Finish
    steps: tuple[Step, ...]
    seconds: Seconds = field(compare=False)
    """Wall time; two equal generations may differ in it."""

    def acceptance(self) -> Summary:
        """The statistics of the steps."""
        return summary([self.steps])

    @property
    def tokens_per_s(self) -> float:
        """New tokens per second of decoding; the prefill is not counted."""
        return len(self.token_ids) / self.seconds.decode
