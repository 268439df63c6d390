"""What a document is made of: invented names and values, from one of two spaces that share none.

A name is a row of syllables; it belongs to the held-out space when the numbers of its syllables sum to a
multiple of five. A value belongs to it exactly when it is 3 modulo 7. So no held-out name or value can be
drawn for training, whatever the seed.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Draws", "is_held_out_name", "is_held_out_value"]

T = TypeVar("T")

_LETTERS = """
beldorfengalhuljaskemlunmarnoppirrussoltamvexwim
xanyorzetcudbimdaxfolguphinjekkodlarmipnespogras
suttigvunwofyalzimcedqorpemfupyebvadwegyatwodhop
bissekjurbetlelhonjixdobhiptomhigvimsisjusloxxad
""".replace("\n", "")

SYLLABLES = tuple(_LETTERS[at : at + 3] for at in range(0, len(_LETTERS), 3))
"""All of three letters, each begun and ended by a consonant: a tokenizer cuts names between them."""

_SKEW = ((1.0,), (0.72, 0.28), (0.64, 0.24, 0.12), (0.6, 0.22, 0.12, 0.06))
"""How likely each of so many ways is: with a clear favourite, text is uncertain yet predictable."""


def is_held_out_name(numbers: Sequence[int]) -> bool:
    """Whether the name of these syllables is kept from training."""
    return sum(numbers) % 5 == 0


def is_held_out_value(value: int) -> bool:
    """Whether this value is kept from training."""
    return value % 7 == 3  # noqa: PLR2004 - the rule itself


@dataclass(slots=True)
class Draws:
    """Random draws of one document."""

    random: random.Random
    held_out: bool
    """Which of the two spaces names and values come from."""

    def name(self) -> str:
        """An invented word of two or three syllables."""
        while True:
            count = self.random.choice((2, 2, 3))
            numbers = [self.random.randrange(len(SYLLABLES)) for _ in range(count)]
            if is_held_out_name(numbers) == self.held_out:
                return "".join(SYLLABLES[number] for number in numbers)

    def names(self, count: int) -> list[str]:
        """So many different names."""
        found: dict[str, None] = {}
        while len(found) < count:
            found[self.name()] = None
        return list(found)

    def value(self, low: int, high: int) -> int:
        """An invented number from ``low`` up to ``high``."""
        while True:
            found = self.random.randint(low, high)
            if is_held_out_value(found) == self.held_out:
                return found

    def say(self, *ways: str) -> str:
        """One of up to four ways to say something, the first by far the likeliest."""
        return self.random.choices(ways, _SKEW[len(ways) - 1])[0]

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all alike."""
        return self.random.choice(options)

    def count(self, low: int, high: int) -> int:
        """How many of something; counts are no values and belong to both spaces."""
        return self.random.randint(low, high)
