"""This product's engine with a drafter: ``python -m drafted.ours``."""

from collections.abc import Sequence
from typing import Any

import torch
from speed.worker import serve

import draftproof
from draftproof.engine.engine import Engine
from draftproof.engine.text.stopping import Stopping


class Ours:
    """One engine; drafts have the size asked for, as the peers' have."""

    def __init__(self, ask: dict[str, Any]) -> None:
        """Load it."""
        torch.set_num_threads(ask["threads"])
        drafter = ask["drafter"]
        self._engine = Engine.load(
            ask["path"],
            drafter,
            dtype=ask["dtype"],
            method="ar" if drafter is None else "dflash",
            num_draft_tokens=None if drafter is None else ask["num_draft_tokens"],
            with_text=False,
        )
        self._lengths: list[int] = []
        self.about = f"draftproof {draftproof.__version__}, torch {torch.__version__}"

    def generate(self, prompt: Sequence[int], tokens: int) -> Sequence[int]:
        """Greedy tokens of one request."""
        made = self._engine.generate(list(prompt), stopping=Stopping(tokens, ignore_eos=True))
        self._lengths = [step.num_emitted for step in made.steps]
        return made.token_ids

    def notes(self) -> dict[str, Any]:
        """Tokens each step emitted, the bonus token counted."""
        return {"lengths": self._lengths}


if __name__ == "__main__":
    serve(Ours)
