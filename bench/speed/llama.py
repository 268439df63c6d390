"""llama.cpp in this process: ``python -m speed.llama`` in an environment that has ``xllamacpp``.

That is llama.cpp's own server, called without a socket; its kernels are chosen for the processor at run time.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from speed.worker import Refused, serve


class Llama:
    """One GGUF file."""

    def __init__(self, ask: dict[str, Any]) -> None:
        """Load it."""
        binding: Any = import_module("xllamacpp")
        params = binding.CommonParams()
        params.model.path = ask["path"]
        params.n_ctx, params.n_parallel = 1024, 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = ask["threads"]
        self._server = binding.Server(params)
        self.about = f"llama.cpp of xllamacpp {version('xllamacpp')}, weights of {ask['dtype']}"

    def generate(self, prompt: Sequence[int], tokens: int) -> Sequence[int]:
        """Greedy tokens of one request."""
        request = {"prompt": list(prompt), "n_predict": tokens, "temperature": 0, "ignore_eos": True}
        # Ids are not of the answer's own form; they stand in what the server adds for those who debug it.
        options = {"cache_prompt": False, "return_tokens": True, "verbose": True}
        answer = self._server.handle_completions({**request, **options})
        if "tokens" not in answer.get("__verbose", {}):
            raise Refused(f"an answer without tokens: {sorted(answer)}")
        return [int(token) for token in answer["__verbose"]["tokens"]]

    def forward(self, prompt: Sequence[int], rows: int) -> Callable[[], object]:
        """Not to be had: its server runs requests, no forwards of a size one chooses."""
        raise Refused(f"no forward of {rows} tokens behind {len(prompt)} can be asked of llama.cpp's server")


if __name__ == "__main__":
    serve(Llama)
