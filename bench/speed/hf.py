"""transformers in this process, eager or compiled: ``python -m speed.hf``."""

import shutil
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers

from speed.worker import Refused, serve

COMPILERS = ("c++", "g++", "clang++")


class Transformers:
    """One model and its ``generate``."""

    def __init__(self, ask: dict[str, Any]) -> None:
        """Load it, and compile its forward where that was asked for."""
        if ask["compiled"] and not any(map(shutil.which, COMPILERS)):
            raise Refused(
                f"torch.compile needs a C++ compiler; none of {', '.join(COMPILERS)} is on the PATH"
            )
        torch.set_num_threads(ask["threads"])
        transformers.logging.set_verbosity_error()
        warnings.simplefilter("ignore")
        dtype = getattr(torch, ask["dtype"])
        self._model: Any = transformers.AutoModelForCausalLM.from_pretrained(ask["path"], dtype=dtype).eval()
        self._model.generation_config.eos_token_id = None
        self._how: dict[str, Any] = {"do_sample": False, "pad_token_id": 0}
        if ask["compiled"]:
            self._model.forward = torch.compile(self._model.forward, dynamic=True)
        how = "torch.compile(dynamic=True)" if ask["compiled"] else "eager"
        self.about = f"transformers {transformers.__version__} {how}, torch {torch.__version__}"

    def generate(self, prompt: Sequence[int], tokens: int) -> Sequence[int]:
        """Greedy tokens of one request."""
        ids = torch.tensor([list(prompt)])
        mask = torch.ones_like(ids)
        made = self._model.generate(ids, attention_mask=mask, max_new_tokens=tokens, **self._how)
        return list(made[0, len(prompt) :].tolist())

    def forward(self, prompt: Sequence[int], rows: int) -> Callable[[], object]:
        """One forward over a chain behind a cache that grows by it."""
        with torch.inference_mode():
            cache = self._model(torch.tensor([list(prompt)]), use_cache=True).past_key_values
        ids = torch.tensor([list(prompt[:rows])])

        def call() -> None:
            with torch.inference_mode():
                self._model(ids, past_key_values=cache, use_cache=True)

        return call


if __name__ == "__main__":
    serve(Transformers)
