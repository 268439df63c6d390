"""This product's engine in this process: ``python -m speed.ours``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import draftproof
from draftproof.engine.engine import Engine
from draftproof.engine.text.stopping import Stopping
from speed.worker import serve


class Ours:
    """One engine, decoding plainly or by prompt lookup."""

    def __init__(self, ask: dict[str, Any]) -> None:
        """Load it."""
        torch.set_num_threads(ask["threads"])
        self._engine = Engine.load(
            Path(ask["path"]),
            dtype=ask["dtype"],
            method=ask["method"],
            with_text=False,
            compile=ask["compiled"],
        )
        self._outside = 0.0
        self.about = f"draftproof {draftproof.__version__}, torch {torch.__version__}"

    def generate(self, prompt: Sequence[int], tokens: int) -> Sequence[int]:
        """Greedy tokens of one request."""
        made = self._engine.generate(list(prompt), stopping=Stopping(tokens, ignore_eos=True))
        self._outside = 1 - made.seconds.verify / made.seconds.decode
        return made.token_ids

    def forward(self, prompt: Sequence[int], rows: int) -> Callable[[], object]:
        """One forward over a chain, and its commit; memory grows by it, as it does in the peers."""
        target = self._engine.target
        session = target.new_session(room=len(prompt) + 64 * rows)
        target.prefill(session, list(prompt))
        tokens, path = list(prompt[:rows]), range(rows)

        def call() -> None:
            target.forward(session, tokens)
            session.commit(path)

        return call

    def notes(self) -> dict[str, Any]:
        """Share of the last request's decoding that no forward of the target took."""
        return {"outside_forwards": self._outside}


if __name__ == "__main__":
    serve(Ours)
