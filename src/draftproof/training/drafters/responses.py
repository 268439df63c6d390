"""What a target answers to many prompts: the text its drafter is trained on.

Answers are kept in a file of JSON lines as they come, so that a run that was cut goes on where it was. The
first line says what they were made of; a file of other making is refused, not mixed.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from draftproof.errors import RefusedInput
from draftproof.models.target.shape import DecoderShape
from draftproof.training.drafters.lockstep import Lockstep

__all__ = ["Example", "Speaker", "regenerate"]

TOGETHER = 96
"""Texts answered in lockstep."""


@dataclass(frozen=True, slots=True)
class Example:
    """One prompt with the target's answer."""

    tokens: tuple[int, ...]
    num_prompt: int


@dataclass(frozen=True, slots=True)
class Speaker:
    """A target that answers greedily, up to its own end."""

    shape: DecoderShape
    weights: Mapping[str, Tensor]
    """By the checkpoint's names, in 32-bit floats."""

    endings: Collection[int]
    max_new_tokens: int

    def answers(self, prompts: Sequence[Sequence[int]]) -> list[Example]:
        """Every prompt with its answer, in the order of the prompts."""
        texts = [list(prompt) for prompt in prompts]
        alive, steps = list(range(len(texts))), Lockstep(self.shape, self.weights, len(texts))
        position = 0
        while alive:
            logits = steps.step(torch.tensor([texts[number][position] for number in alive]))
            position += 1
            said = logits.argmax(-1).tolist()
            for number, token in zip(alive, said, strict=True):
                if len(texts[number]) == position:  # the prompt has been read: the text grows
                    texts[number].append(token)
            staying = [
                row
                for row, number in enumerate(alive)
                if not self._ended(texts[number], prompts[number], position)
            ]
            if len(staying) < len(alive):
                steps.keep(torch.tensor(staying, dtype=torch.long))
                alive = [alive[row] for row in staying]
        return [Example(tuple(text), len(prompt)) for text, prompt in zip(texts, prompts, strict=True)]

    def _ended(self, text: Sequence[int], prompt: Sequence[int], position: int) -> bool:
        said = len(text) - len(prompt)
        is_full = said >= self.max_new_tokens or len(text) >= self.shape.max_length
        return position >= len(prompt) and (is_full or text[-1] in self.endings)


def regenerate(
    speaker: Speaker,
    prompts: Sequence[Sequence[int]],
    path: Path,
    *,
    made_of: str,
    on_answer: Callable[[int], None] = lambda _: None,
) -> list[Example]:
    """Have the target answer every prompt.

    Args:
        speaker: the target.
        prompts: token ids, one at least of each.
        path: where answers are kept; those there already are not made again.
        made_of: digest of the target's weights.
        on_answer: called with the number of answers there are.

    Raises:
        RefusedInput: the file was made of something else.
    """
    found = _kept(path, {"made_of": _digest(prompts, speaker.max_new_tokens, made_of)})
    with path.open("a", encoding="ascii") as file:
        while len(found) < len(prompts):
            answers = speaker.answers(prompts[len(found) : len(found) + TOGETHER])
            lines = [json.dumps({"prompt": e.num_prompt, "ids": e.tokens}) + "\n" for e in answers]
            file.write("".join(lines))
            file.flush()
            found += answers
            on_answer(len(found))
    return found


def _kept(path: Path, header: dict[str, str]) -> list[Example]:
    """The answers in the file, which is begun where it is not there; a torn last line is cut off."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(header) + "\n", encoding="ascii")
        return []
    text = path.read_text(encoding="ascii")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="ascii")
    said, *lines = [json.loads(line) for line in whole.splitlines()] or [None]
    if said != header:
        raise RefusedInput(
            "responses",
            expected=f"answers made of {header['made_of'][:12]}: these prompts, this target, this length",
            found=str(said)[:60],
            where=str(path),
            means="the drafter would be trained on another target's text",
            next_step="remove the file, or give another output directory",
        )
    return [Example(tuple(line["ids"]), line["prompt"]) for line in lines]


def _digest(prompts: Sequence[Sequence[int]], max_new_tokens: int, made_of: str) -> str:
    said = json.dumps([[list(prompt) for prompt in prompts], max_new_tokens, made_of])
    return hashlib.sha256(said.encode()).hexdigest()
