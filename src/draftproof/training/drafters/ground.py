"""What every drafter's training stands on: the frozen target, its answers, and the rows it made of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from draftproof.errors import RefusedInput
from draftproof.models.decoder import Decoder
from draftproof.names import HiddenIndex
from draftproof.training.drafters.frozen import freeze
from draftproof.training.drafters.prompts import prompts_of
from draftproof.training.drafters.recipe import Responses
from draftproof.training.drafters.responses import Example, Speaker, regenerate
from draftproof.training.drafters.rows import Rows

__all__ = ["Ground", "lay_ground"]

_CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Ground:
    """A target in 32-bit floats with its answers."""

    target: Decoder
    head: Tensor
    """[V, H]"""

    examples: tuple[Example, ...]
    """One for each prompt, in their order."""

    digest: str
    """Of the target's weights."""

    @property
    def answered(self) -> tuple[Example, ...]:
        """Those with an answer of two tokens or more: there is a token to guess behind one that was said."""
        return tuple(example for example in self.examples if len(example.tokens) > example.num_prompt + 1)

    def rows(self, taps: tuple[HiddenIndex, ...]) -> Rows:
        """The answered texts with these hidden states."""
        return Rows(self.target, self.answered, taps)


def lay_ground(
    directory: Path,
    said: Responses,
    beside: Path,
    kept: Path,
    *,
    on_answer: Callable[[int], None],
    device: torch.device = _CPU,
) -> Ground:
    """Load the target and have it answer.

    Args:
        directory: the target's, or its GGUF file.
        said: what it is asked.
        beside: directory that paths in the recipe are meant from.
        kept: file the answers are kept in.
        on_answer: called with the number of answers there are.
        device: where the target computes, and where its rows are kept.

    Raises:
        CouldNotLook, RefusedInput: target or prompts are not what they must be.
    """
    frozen = freeze(directory, device)
    speaker = Speaker(frozen.decoder.shape, frozen.weights, frozen.endings, said.max_new_tokens)
    prompts = prompts_of(said, beside, frozen.codec)
    examples = regenerate(speaker, prompts, kept, made_of=frozen.digest, on_answer=on_answer)
    ground = Ground(frozen.decoder, frozen.head, tuple(examples), frozen.digest)
    if not ground.answered:
        raise _nothing_said(len(examples), kept)
    return ground


def _nothing_said(count: int, kept: Path) -> RefusedInput:
    return RefusedInput(
        "responses",
        expected="answers of two tokens or more",
        found=f"none among {count}",
        where=str(kept),
        means="there is nothing to learn from",
        next_step="ask the target something else",
    )
