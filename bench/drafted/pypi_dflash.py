"""PyPI's ``dflash`` in this process: ``python -m drafted.pypi_dflash`` in an environment that has it."""

import time
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from speed.worker import Refused, serve


class PypiDflash:
    """Its own loop over a transformers target; without a drafter there is nothing it does."""

    def __init__(self, ask: dict[str, Any]) -> None:
        """Load both models."""
        if ask["drafter"] is None:
            raise Refused("it has no plain decoding: that is transformers'")
        torch.set_num_threads(ask["threads"])
        self._peer: Any = import_module("dflash.model")
        self._peer._cuda_time = time.perf_counter  # noqa: SLF001 - it waits for a GPU otherwise
        transformers: Any = import_module("transformers")
        load: dict[str, Any] = {"dtype": getattr(torch, ask["dtype"])}
        self._target = transformers.AutoModelForCausalLM.from_pretrained(ask["path"], **load).eval()
        self._drafter = self._peer.DFlashDraftModel.from_pretrained(ask["drafter"], **load).eval()
        asked, holds = ask["num_draft_tokens"], self._drafter.block_size - 1
        if asked != holds:
            raise Refused(f"it drafts what a block holds, {holds}, not {asked}")
        self._lengths: list[int] = []
        self.about = f"{Path(self._peer.__file__).parent.name} {version('dflash')}, torch {torch.__version__}"

    def generate(self, prompt: Sequence[int], tokens: int) -> Sequence[int]:
        """Greedy tokens of one request."""
        made = self._peer.dflash_generate(
            self._drafter,
            self._target,
            torch.tensor([list(prompt)]),
            tokens,
            None,
            temperature=0.0,
            return_stats=True,
        )
        self._lengths = [int(length) for length in made.acceptance_lengths]
        found: list[int] = made.output_ids[0, len(prompt) :].tolist()
        return found

    def notes(self) -> dict[str, Any]:
        """Tokens each step emitted, the bonus token counted."""
        return {"lengths": self._lengths}


if __name__ == "__main__":
    serve(PypiDflash)
