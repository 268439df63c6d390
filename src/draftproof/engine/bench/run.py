"""The runs of a bench: every arm on every prompt, round after round, taking turns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from draftproof.engine.bench.arms import Arm
from draftproof.engine.bench.prompts import BenchPrompt, encoded
from draftproof.engine.generation import Generation
from draftproof.engine.text.stopping import Stopping

__all__ = ["Run", "run_all"]


@dataclass(frozen=True, slots=True)
class Run:
    """One request of one arm."""

    arm: str
    prompt: str
    round: int
    generation: Generation


def run_all(
    arms: Sequence[Arm], prompts: Sequence[BenchPrompt], *, rounds: int, max_new_tokens: int
) -> Iterator[Run]:
    """Every run but those that warm up: each arm answers the first prompt once before anything counts.

    Which arm goes first changes from prompt to prompt and from round to round.
    """
    requests = [(prompt, *_request(arms[0], prompt, max_new_tokens)) for prompt in prompts]
    _, ids, stopping = requests[0]
    for arm in arms:
        arm.engine.generate(ids, stopping=stopping)
    for number in range(rounds):
        for place, (prompt, ids, stopping) in enumerate(requests):
            first = (number + place) % len(arms)
            for arm in (*arms[first:], *arms[:first]):
                yield Run(arm.name, prompt.name, number, arm.engine.generate(ids, stopping=stopping))


def _request(arm: Arm, prompt: BenchPrompt, max_new_tokens: int) -> tuple[list[int], Stopping]:
    codec = arm.engine.text
    stopping = Stopping(max_new_tokens)
    if prompt.is_chat and codec is not None and codec.eos_id is not None:
        stopping = replace(stopping, token_ids=frozenset({codec.eos_id}))
    return encoded(prompt, codec), stopping
