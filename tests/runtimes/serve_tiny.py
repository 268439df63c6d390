"""Run in vLLM's Python: starts each engine that is asked for here and lets its worker tell its record.

Request on standard input: ``[{"name", "target", "speculative", "dtype", "more"}]``, ``more`` being further
arguments of the engine; answer: one JSON line per start. One that loads numba (n-gram) must come last: vLLM
0.32.0 looks at every module for kernels at the next start, and a wrapper of llvmlite's ends that.
"""

import gc
import importlib
import json
import os
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"


def start(one: dict[str, Any]) -> Any:
    """The workers' records, before one short greedy request; what it raised, and the counters after it."""
    vllm = importlib.import_module("vllm")  # not of this environment but of the one it runs in
    prometheus = importlib.import_module("prometheus_client")
    parallel = importlib.import_module("vllm.distributed.parallel_state")
    llm = vllm.LLM(
        model=one["target"],
        speculative_config=one["speculative"],
        load_format="dummy",
        dtype=one["dtype"],
        skip_tokenizer_init=True,
        enforce_eager=True,
        max_model_len=256,
        max_num_seqs=2,
        max_num_batched_tokens=256,
        kv_cache_memory_bytes=64 << 20,
        enable_prefix_caching=False,
        disable_log_stats=False,
        worker_extension_cls="draftproof_vllm.DraftproofExtension",
        **one["more"],
    )
    answer = {"records": llm.collective_rpc("draftproof_effective")}
    prompt = {"prompt_token_ids": list(range(5, 25))}
    sampling = vllm.SamplingParams(temperature=0, max_tokens=8, detokenize=False, ignore_eos=True)
    with ThreadPoolExecutor(1) as pool:
        raised = pool.submit(llm.generate, [prompt], sampling, use_tqdm=False).exception()
    answer["first_draft"] = None if raised is None else f"{type(raised).__name__}: {raised}"
    answer["page"] = prometheus.generate_latest().decode()
    del llm
    parallel.cleanup_dist_env_and_memory()
    gc.collect()
    return answer


def main() -> None:
    """One line for each start, whatever happens in it."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for one in json.load(sys.stdin):
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(start, one)
            raised = future.exception()
        told = {"refused": f"{type(raised).__name__}: {raised}"} if raised else future.result()
        if raised:
            traceback.print_exception(raised)
        print(json.dumps({"name": one["name"], **told}), file=out, flush=True)


if __name__ == "__main__":
    main()
