"""The verification rules by the names users give them."""

from enum import StrEnum

__all__ = ["Rule"]


class Rule(StrEnum):
    """How a draft is judged when tokens are drawn; at temperature 0 all of them keep the largest logits."""

    MATCH = "match"
    """The target's own draws, kept while they were drafted; the text is that of plain decoding."""

    REJECTION = "rejection"
    """Tokens drawn by the drafter, kept one by one with probability min(1, p / q)."""

    BLOCK = "block"
    """Tokens drawn by the drafter, judged as a whole; keeps at least as many."""

    TYPICAL_LOSSY = "typical-lossy"
    """Tokens kept for being likely: the output is no longer the target's."""

    @property
    def draws(self) -> bool:
        """Whether it judges tokens by the distributions they were drawn from."""
        return self in {Rule.REJECTION, Rule.BLOCK}

    @property
    def is_lossless(self) -> bool:
        """Whether the output has the target's distribution."""
        return self is not Rule.TYPICAL_LOSSY
